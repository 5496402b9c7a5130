package grid_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/grid"
	"eventsv2/test/testenv"
)

// expire makes the lock of the only event one that ran out, as if its worker had
// been silent for long, and rings for it.
func (r *rig) expire() {
	r.Helper()
	r.publish(one[int64](r, `UPDATE events_v2 SET locked_at = clock_timestamp() - interval '1 hour' RETURNING id`)) // a worker may end it at once
}

func (r *rig) publishAgain() {
	r.Helper()
	r.publish(one[int64](r, `SELECT id FROM events_v2`))
}

func (r *rig) publish(id int64) {
	r.Helper()
	if err := r.notifier.Publish(testenv.Context(r), []eventqueue.Notification{{Event: eventqueue.EventID(id), Canvas: canvas}}); err != nil {
		r.Fatal(err)
	}
}

// Two workers have the same event, because the lock of the first has expired. What
// the first one finishes after that is refused (I5), and changes nothing.
func TestStaleAttemptSavesNoOutput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	began, proceed := make(chan struct{}), make(chan struct{})
	times := 0 // the second call begins when the first has begun
	said := make(chan string, 1)
	r.on("slow", func(context.Context, call) (string, error) {
		if times++; times > 1 {
			return "second", nil
		}
		close(began)
		<-proceed // frozen: deaf to its context
		return "first", nil
	})
	r.on("last", func(_ context.Context, c call) (string, error) {
		said <- echo(c)
		<-proceed
		return "last", nil
	})
	g := r.definition("a", "slow a=a", "last a=slow")
	hour := worker.Config{LockTimeout: time.Hour, Heartbeat: time.Minute}
	r.start(g, grid.Config{}, hour)
	r.emit(1)
	<-began
	r.start(g, grid.Config{}, worker.Config{})
	r.expire()
	if got := <-said; got != "last(second)" {
		t.Errorf("the last action took %s", got)
	}
	r.wantOutputs(`a/1 "a()"`, `slow/2 "second"`)
	close(proceed)
	// Either may be the first to end.
	labels := map[machine.Label]int{}
	for range 2 {
		labels[r.await(machine.ExecutesToCompletion, machine.LockLost).Label]++
	}
	if labels[machine.ExecutesToCompletion] != 1 {
		t.Errorf("the runs ended as %v, want one completion", labels)
	}
	r.wantCalls("a", "slow", "slow", "last")
	r.completed()
}

// Every output is refused once the event is claimed anew, given back, or gone.
func TestSaveIsFenced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, change string
		kept         bool
	}{
		{"held", `SELECT`, true},
		{"renewed", `UPDATE events_v2 SET locked_at = clock_timestamp()`, true},
		{"claimed by another", `UPDATE events_v2 SET attempts = attempts + 1, locked_at = clock_timestamp()`, false},
		{"given back", `UPDATE events_v2 SET locked_at = NULL`, false},
		{"gone", `DELETE FROM events_v2`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.on("a", func(context.Context, call) (string, error) {
				r.exec(c.change)
				return "done", nil
			})
			r.on("b", func(context.Context, call) (string, error) {
				r.wantOutputs(`a/1 "done"`)
				return "", eventqueue.Permanent(errors.New("the end"))
			})
			r.start(r.definition("a", "b a=a"), grid.Config{}, worker.Config{})
			r.emit(1)
			if c.kept {
				r.await(machine.FailedForGood)
				r.wantCalls("a", "b")
				return
			}
			if out := r.await(machine.LockLost); !errors.Is(out.Err, eventqueue.ErrLockLost) {
				t.Errorf("the outcome is %+v", out)
			}
			r.wantCalls("a")
			r.wantOutputs()
		})
	}
}

// A claim and an output at the same time: whoever comes second waits, and then
// sees what the first has done.
func TestOutputWaitsForAConcurrentClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	other, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r.on("a", func(context.Context, call) (string, error) {
		_, err := other.Exec(ctx, `UPDATE events_v2 SET attempts = attempts + 1, locked_at = clock_timestamp()`)
		return "done", err
	})
	r.start(r.definition("a"), grid.Config{}, worker.Config{})
	r.emit(1)
	testenv.Eventually(t, "the output waits", func() bool {
		return one[int](r, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%grid_outputs%'`) == 1
	})
	if err := other.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	r.await(machine.LockLost)
	r.wantOutputs()
}

// The database fails for a moment while an output is to be kept: it waits, and the
// action does not run again.
func TestOutputWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	// The first writes fail like those of a server that fails over, one of each class of passing errors.
	r.exec(`CREATE SEQUENCE tries`)
	r.exec(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
		DECLARE passing text := ('{25006,40001,53300,55P03,57P01,58030}'::text[])[nextval('tries')]; BEGIN
		IF passing IS NOT NULL THEN RAISE 'not now' USING ERRCODE = passing; END IF;
		RETURN NEW; END $$`)
	r.exec(`CREATE TRIGGER fail BEFORE INSERT ON grid_outputs FOR EACH ROW EXECUTE FUNCTION fail()`)
	r.start(r.definition("a"), grid.Config{}, worker.Config{})
	r.emit(1)
	r.await(machine.ExecutesToCompletion)
	r.wantCalls("a")
	if n := one[int](r, `SELECT last_value FROM tries`); n != 7 {
		t.Errorf("%d tries to keep the output, want 7", n)
	}
	r.completed()
}

// lossy is a database whose first answer to a row query is lost after the commit.
type lossy struct {
	eventqueue.DB
	meanwhile func()
	tries     int
}

func (l *lossy) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	row := l.DB.QueryRow(ctx, sql, args...)
	if l.tries++; l.tries > 1 {
		return row
	}
	var held bool
	if err := row.Scan(&held); err != nil {
		return row
	}
	l.meanwhile()
	return lost{}
}

type lost struct{}

func (lost) Scan(...any) error { return io.ErrUnexpectedEOF }

// An output whose answer was lost is there already: the second try leaves it as
// it is.
func TestCompletedActionIsNotOverwritten(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	db := &lossy{DB: r.pool, meanwhile: func() { r.exec(`UPDATE grid_outputs SET output = '"before"'`) }}
	r.db = db
	r.on("b", func(context.Context, call) (string, error) { return "", eventqueue.Permanent(errors.New("the end")) })
	r.start(r.definition("a", "b a=a"), grid.Config{}, worker.Config{})
	r.emit(1)
	r.await(machine.FailedForGood)
	r.wantOutputs(`a/1 "before"`)
	r.wantCalls("a", "b")
	if db.tries != 2 {
		t.Errorf("%d tries to keep the output, want 2", db.tries)
	}
}

// A refusal that time does not mend is not waited for.
func TestPermanentRefusalOfAnOutputIsNotRetried(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(`ALTER TABLE grid_outputs ADD CHECK (output <> '"a()"')`)
	never := 0
	r.start(r.definition("a"), grid.Config{Policy: eventqueue.Policy{MaxRetries: &never}}, worker.Config{})
	r.emit(1)
	r.await(machine.RetryTooMany)
	if got := r.lastError(); !strings.HasPrefix(got, "grid g: actions.a (do): store its output: ") {
		t.Errorf("the error is %s", got)
	}
}

// The end of a run is one transaction: when it fails, nothing is removed, and the
// next attempt runs no action.
func TestOutputsAreDeletedWithTheirEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(`CREATE SEQUENCE tries`)
	r.exec(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF nextval('tries') = 1 THEN RAISE 'no'; END IF;
		RETURN OLD; END $$`)
	r.exec(`CREATE TRIGGER fail BEFORE DELETE ON events_v2 FOR EACH ROW EXECUTE FUNCTION fail()`)
	looked := make(chan struct{})
	config := grid.Config{Policy: eventqueue.Policy{Backoff: func(int) time.Duration {
		r.wantOutputs(`a/1 "a()"`)
		close(looked)
		return time.Millisecond
	}}}
	r.start(r.definition("a"), config, worker.Config{})
	r.emit(1)
	<-looked
	r.await(machine.ExecutesToCompletion)
	r.wantCalls("a")
	r.completed()
}

// crashURL is the database of the process that TestRunContinuesAfterACrash kills.
const crashURL = "GRID_CRASH_DATABASE_URL"

// effect leaves a mark outside of the queue.
func effect(ctx context.Context, pool *pgxpool.Pool, c call) error {
	_, err := pool.Exec(ctx, `INSERT INTO effects (key, pid) VALUES ($1, $2)`, c.Key(), os.Getpid())
	return err
}

const crashDefinition = `grid: g
actions:
  fetch: {use: do, inputs: {a: {origin: event}}}
  count: {use: do, inputs: {a: {origin: action, action: fetch}}}
  charge: {use: do, inputs: {a: {origin: action, action: fetch}, b: {origin: action, action: count}}}
  mail: {use: do, inputs: {a: {origin: action, action: charge}, b: {origin: action, action: fetch}}}
`

// crash is the action of the process that dies.
func crash(t *testing.T, url string) {
	t.Helper()
	ctx := t.Context()
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	r := &rig{T: t, pool: pool, db: pool, store: pgstore.New(pool), notifier: memnotify.New(memnotify.Config{}),
		ended: make(chan worker.Outcome, 1000), does: map[string]does{}}
	if r.queue, err = eventqueue.New(r.store, r.notifier, eventqueue.QueueConfig{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fetch", "count", "charge"} {
		r.on(name, func(ctx context.Context, c call) (string, error) {
			if err := effect(ctx, pool, c); err != nil {
				return "", err
			}
			if c.Action == "charge" {
				// kill -9 of itself: in the middle of the run, with the effect out and
				// the output not kept.
				return "", syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			return echo(c), nil
		})
	}
	g, err := grid.Parse("crash", []byte(crashDefinition), r.actions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.start(g, grid.Config{}, worker.Config{})
	r.publishAgain()
	<-ctx.Done()
}

// The end-to-end test: a worker process is killed (kill -9) in the middle of a
// run. When its lock has run out, another process takes the run over, from where
// it stopped: what had finished ran once, and the rest takes its outputs.
func TestRunContinuesAfterACrash(t *testing.T) {
	t.Parallel()
	if url := os.Getenv(crashURL); url != "" {
		crash(t, url)
		return
	}
	r := newRig(t)
	r.exec(`CREATE TABLE effects (key text, pid int)`)
	id := r.emit("x")
	test, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(testenv.Context(t), test, "-test.run=^TestRunContinuesAfterACrash$", "-test.timeout=2m")
	child.Env = append(os.Environ(), crashURL+"="+r.url)
	said, err := child.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process was not killed: %v\n%s", err, said)
	}
	r.wantOutputs(`count/1 "count(fetch(x))"`, `fetch/1 "fetch(x)"`)

	result := make(chan string, 1)
	for _, name := range []string{"fetch", "count", "charge", "mail"} {
		r.on(name, func(ctx context.Context, c call) (string, error) {
			if c.Action == "mail" {
				result <- echo(c)
			}
			return echo(c), effect(ctx, r.pool, c)
		})
	}
	g, err := grid.Parse("crash", []byte(crashDefinition), r.actions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.start(g, grid.Config{}, worker.Config{})
	r.expire()
	r.await(machine.ExecutesToCompletion)
	if got := <-result; got != "mail(charge(fetch(x),count(fetch(x))),fetch(x))" {
		t.Errorf("the last action took %s", got)
	}
	r.wantCalls("charge", "mail")
	marks := one[json.RawMessage](r, `SELECT json_object_agg(key, n ORDER BY key) FROM (SELECT key, count(*) AS n FROM effects GROUP BY key) e`)
	// What had finished ran once; what was under way ran again, with the same key.
	var counts map[string]int
	if err := json.Unmarshal(marks, &counts); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"fetch": 1, "count": 1, "charge": 2, "mail": 1} {
		if got := counts[id.String()+"/"+name]; got != want {
			t.Errorf("%s left its mark %d times, want %d", name, got, want)
		}
	}
	r.completed()
}
