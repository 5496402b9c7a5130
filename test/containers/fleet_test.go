package containers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/pubsubnotify"
)

// fleetLock is the lock time-out of the fleet: long against a stall of a busy
// machine, short against the test.
const fleetLock = 10 * time.Second

// fleetHandlers sends each group of events through a gate of its own. The worker's
// name is part of the address, so that the gate knows who runs what.
const fleetHandlers = `handlers:
  - {module: FAULT, name: early, modifier: _, url: "http://%[1]s:8080/run/%[2]s/early", timeout: 5m, max_retries: 10}
  - {module: FAULT, name: late, modifier: _, url: "http://%[1]s:8080/run/%[2]s/late", timeout: 5m, max_retries: 10}
  - {module: FAULT, name: quick, modifier: _, url: "http://%[1]s:8080/run/%[2]s/quick", timeout: 5m, max_retries: 10}
`

// fleet is a queue whose every part is a container. The database has a network of
// its own, so that a worker can lose it and nothing else; the emulator and the
// gate are on the other one.
type fleet struct {
	app, database, pubsub string // the image, and the networks
	postgres, emulator    string // containers
	gate, gateURL         string
	password              string
	databaseIP            string
	pool                  *pgxpool.Pool
	queue                 *eventqueue.Queue
}

// newFleet starts everything but the workers.
func newFleet(ctx context.Context, t *testing.T, app string, base map[string]string) *fleet {
	t.Helper()
	f := &fleet{app: app, database: unique("database"), pubsub: unique("pubsub-network"), postgres: unique("postgres"),
		emulator: unique("pubsub"), gate: unique("gate"), password: unique("password")}
	gateImage := scratchImage(ctx, t, "gate")
	for _, network := range []string{f.database, f.pubsub} {
		docker("network", "create", network).must(ctx, t)
		atEnd(t, docker("network", "rm", network))
	}
	f.start(ctx, t, f.postgres, f.database, "--publish", "127.0.0.1::5432", "--env", "POSTGRES_USER=events", "--env", "POSTGRES_DB=events",
		"--env", "POSTGRES_PASSWORD="+f.password, base["POSTGRES_IMAGE"])
	f.start(ctx, t, f.emulator, f.pubsub, "--publish", "127.0.0.1::8085", base["PUBSUB_EMULATOR_IMAGE"],
		"gcloud", "beta", "emulators", "pubsub", "start", "--host-port=0.0.0.0:8085")
	f.start(ctx, t, f.gate, f.pubsub, "--publish", "127.0.0.1::8080", gateImage)
	f.gateURL = "http://" + published(ctx, t, f.gate, "8080")
	f.databaseIP = docker("inspect", "--format", `{{(index .NetworkSettings.Networks "`+f.database+`").IPAddress}}`, f.postgres).must(ctx, t)
	f.open(ctx, t)
	return f
}

// start runs a container in the background, until the end of the test. Its log is
// printed when the test has failed.
func (f *fleet) start(ctx context.Context, t *testing.T, name, network string, args ...string) {
	t.Helper()
	f.create(ctx, t, name, network, args...)
	docker("start", name).must(ctx, t)
}

func (*fleet) create(ctx context.Context, t *testing.T, name, network string, args ...string) {
	t.Helper()
	docker(append([]string{"create", "--name", name, "--network", network}, args...)...).must(ctx, t)
	atEnd(t, docker("rm", "--force", "--volumes", name))
	t.Cleanup(func() {
		if t.Failed() {
			ctx, cancel := context.WithTimeout(context.Background(), cleanupLimit)
			defer cancel()
			t.Logf("log of %s:\n%s", name, tail(containerLog(ctx, t, name)))
		}
	})
}

// published is where this machine reaches a port of a container.
func published(ctx context.Context, t *testing.T, container, port string) string {
	t.Helper()
	return docker("port", container, port+"/tcp").must(ctx, t)
}

// open waits for Postgres and the emulator, and makes the schema, the record and
// the test's own way to the queue.
func (f *fleet) open(ctx context.Context, t *testing.T) {
	t.Helper()
	url := fmt.Sprintf("postgres://events:%s@%s/events?sslmode=disable", f.password, published(ctx, t, f.postgres, "5432"))
	var err error
	if f.pool, err = pgstore.Open(ctx, url, "test", 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.pool.Close)
	eventually(ctx, t, "Postgres answers", f.pool.Ping)
	docker(append(append([]string{"run", "--rm", "--network", f.database, "--entrypoint", "/eventctl"}, f.environment("migrate")...),
		f.app, "migrate", "up")...).must(ctx, t)
	if _, err := f.pool.Exec(ctx, recordSQL); err != nil {
		t.Fatal(err)
	}
	emulator := published(ctx, t, f.emulator, "8085")
	eventually(ctx, t, "the emulator answers", func(ctx context.Context) error { return get(ctx, "http://"+emulator+"/") })
	notifier, err := pubsubnotify.New(ctx, pubsubnotify.Config{ProjectID: "local", Topic: "events-v2", Subscription: "events-v2-workers",
		Create: true, EmulatorHost: emulator})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := notifier.Close(); err != nil {
			t.Errorf("close the connection to the emulator: %v", err)
		}
	})
	if f.queue, err = eventqueue.New(pgstore.New(f.pool), notifier, eventqueue.QueueConfig{PublishTimeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
}

// environment returns a program's environment. The database is named by its address: a name
// that is not found would be an answer, and whoever is cut off gets none.
func (f *fleet) environment(who string) []string {
	var args []string
	for name, value := range map[string]string{
		"DATABASE_URL": fmt.Sprintf("postgres://events:%s@%s:5432/events?sslmode=disable&application_name=%s",
			f.password, f.databaseIP, who),
		"PUBSUB_EMULATOR_HOST": f.emulator + ":8085",
		"PUBSUB_CREATE":        "true",
		"LOCK_TIMEOUT":         fleetLock.String(),
		"RELAY_INTERVAL":       "1s",
		"RELAY_LOST_AFTER":     "1s",
		"HANDLERS_FILE":        "/handlers.yaml",
	} {
		args = append(args, "--env", name+"="+value)
	}
	return args
}

// program starts a program of the image on both networks and waits until its log
// says that it has started.
func (f *fleet) program(ctx context.Context, t *testing.T, who, program string, args ...string) (container string) {
	t.Helper()
	container = unique(who)
	args = append(append([]string{"--read-only", "--cap-drop", "ALL", "--entrypoint", "/" + program}, args...), f.environment(who)...)
	f.create(ctx, t, container, f.pubsub, append(args, f.app)...)
	docker("network", "connect", f.database, container).must(ctx, t)
	docker("start", container).must(ctx, t)
	eventually(ctx, t, who+" has started", func(ctx context.Context) error {
		if log := containerLog(ctx, t, container); !strings.Contains(log, program+" started") {
			return fmt.Errorf("its log is %q", log)
		}
		return nil
	})
	return container
}

// worker starts a worker with handlers that carry its name.
func (f *fleet) worker(ctx context.Context, t *testing.T, who string) (container string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "handlers.yaml")
	// The worker in its container is another user.
	if err := os.WriteFile(file, fmt.Appendf(nil, fleetHandlers, f.gate, who), 0o644); err != nil { //nolint:gosec // nothing secret
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // nothing secret
		t.Fatal(err)
	}
	return f.program(ctx, t, who, "worker", "--volume", file+":/handlers.yaml:ro")
}

// stop ends a program with SIGTERM, which must be orderly.
func (*fleet) stop(ctx context.Context, t *testing.T, container string) {
	t.Helper()
	docker("stop", "--time", "30", container).must(ctx, t)
	if status := docker("inspect", "--format", "{{.State.ExitCode}}", container).must(ctx, t); status != "0" {
		t.Errorf("%s ended with status %s after SIGTERM: want 0", container, status)
	}
}

// emit emits events of one group.
func (f *fleet) emit(ctx context.Context, t *testing.T, group string, count int) []eventqueue.EventID {
	t.Helper()
	events := make([]eventqueue.NewEvent, count)
	for i := range events {
		events[i] = eventqueue.NewEvent{Canvas: eventqueue.CanvasID{1}, Module: "FAULT", Name: group, Modifier: "_",
			Value: json.RawMessage(fmt.Sprint(i))}
	}
	ids, err := f.queue.EmitMany(ctx, events)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// ended waits until the events are no longer in the queue.
func (f *fleet) ended(ctx context.Context, t *testing.T, ids []eventqueue.EventID) {
	t.Helper()
	eventually(ctx, t, "the events end", func(ctx context.Context) error {
		var left int
		err := f.pool.QueryRow(ctx, `SELECT count(*) FROM events_v2 WHERE id = ANY ($1::bigint[])`, ids).Scan(&left)
		if err == nil && left > 0 {
			err = fmt.Errorf("%d are there", left)
		}
		return err
	})
}

// run is a request that the gate has got.
type run struct{ Worker, Group, Event, State string }

// runs asks the gate for its list.
func (f *fleet) runs(ctx context.Context) ([]run, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.gateURL+"/requests", nil)
	if err != nil {
		return nil, err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var all []run
	return all, json.NewDecoder(response.Body).Decode(&all)
}

// awaitRuns waits until so many events of a group have come to a state at a
// worker.
func (f *fleet) awaitRuns(ctx context.Context, t *testing.T, worker, group, state string, count int) {
	t.Helper()
	eventually(ctx, t, fmt.Sprintf("%d events of group %s are %s at %s", count, group, state, worker), func(ctx context.Context) error {
		all, err := f.runs(ctx)
		events := map[string]bool{}
		for _, r := range all {
			if r.Worker == worker && r.Group == group && r.State == state {
				events[r.Event] = true
			}
		}
		if err == nil && len(events) < count {
			err = fmt.Errorf("%d are", len(events))
		}
		return err
	})
}

// unlock opens the gate of a worker for a group.
func (f *fleet) unlock(ctx context.Context, t *testing.T, worker, group string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.gateURL+"/open/"+worker+"/"+group, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusNoContent {
		t.Fatalf("the gate of %s for %s answers %s (%v)", worker, group, response.Status, err)
	}
}
