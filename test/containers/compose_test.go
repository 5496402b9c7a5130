package containers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"eventsv2/test/testenv"
)

// project is one "up" of docker-compose.yml under a name of its own.
type project struct {
	name    string
	command []string
	env     []string
}

// newProject skips the test where there is no compose.
func newProject(ctx context.Context, t *testing.T, env map[string]string) *project {
	t.Helper()
	p := &project{name: unique("compose")}
	switch {
	case exec.CommandContext(ctx, "docker", "compose", "version").Run() == nil:
		p.command = []string{"docker", "compose"}
	case exec.CommandContext(ctx, "docker-compose", "version").Run() == nil:
		p.command = []string{"docker-compose"}
	default:
		testenv.Missing(t, "docker-compose.yml needs docker-compose or the compose plugin of docker, and there is neither")
	}
	p.command = append(p.command, "--project-name", p.name, "--file", "docker-compose.yml")
	for name, value := range env {
		p.env = append(p.env, name+"="+value)
	}
	return p
}

func (p *project) call(args ...string) call {
	return call{name: p.command[0], args: append(append([]string{}, p.command[1:]...), args...), env: p.env}
}

// testCompose follows the commands of docs/install.md in a shell that has the variables of docs/quick-start.md, and takes
// an event from eventctl to a target through everything that docker-compose.yml starts.
func testCompose(ctx context.Context, t *testing.T, app string, base map[string]string) {
	target := unique("target")
	atEnd(t, docker("rmi", "--force", target))
	env := map[string]string{
		"EVENTSV2_IMAGE": app, "EVENTSV2_TARGET_IMAGE": target,
		"EVENTSV2_POSTGRES_PORT": "0", "EVENTSV2_PUBSUB_PORT": "0", "EVENTSV2_WORKER_PORT": "0", "EVENTSV2_DASHBOARD_PORT": "0", "EVENTSV2_PROMETHEUS_PORT": "0",
	}
	maps.Copy(env, base)
	exported := shown(t, "quick-start.md", "export ")
	for _, assignment := range strings.Fields(exported)[1:] {
		name, value, _ := strings.Cut(assignment, "=")
		env[name] = value
	}
	if env["DATABASE_URL"] == "" || env["HANDLERS_FILE"] == "" {
		t.Fatalf("the quick start exports no database or no handlers file: %s", exported)
	}
	p := newProject(ctx, t, env)
	t.Cleanup(func() { p.remove(t) })

	p.call("build", "target").must(ctx, t)
	p.call("up", "--detach", "--no-build").must(ctx, t)
	p.testUp(ctx, t)
	p.shell(shown(t, "install.md", "docker-compose run --rm eventctl emit ")).must(ctx, t)
	p.testDelivered(ctx, t, `{"order": 17}`)
	const value = `{"n": 1,  "text":"Grüße"}`
	p.call("run", "--rm", "-T", "eventctl", "emit", "--canvas", "6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11",
		"--module", "WORKER", "--name", "order_placed", "--value", value).must(ctx, t)
	p.testDelivered(ctx, t, `{"order": 17}`, value)
	p.testDashboard(ctx, t)
	p.testPrometheus(ctx, t)
	p.testStop(ctx, t)
}

// shown is the command of a page that begins so.
func shown(t *testing.T, page, begin string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n$ "+begin)
	if !found {
		t.Fatalf("docs/%s shows no command that begins with %q", page, begin)
	}
	end, _, _ := strings.Cut(rest, "\n")
	return begin + end
}

// shell is a command as a page shows it, for this project. The test has no terminal.
func (p *project) shell(command string) call {
	command = strings.Replace(command, "docker-compose run", strings.Join(p.command, " ")+" run -T", 1)
	return call{name: "sh", args: []string{"-c", command}, env: p.env}
}

// testUp checks that what should run runs, is healthy and has never been
// restarted.
func (p *project) testUp(ctx context.Context, t *testing.T) {
	t.Helper()
	address := p.call("port", "worker", "8080").must(ctx, t)
	eventually(ctx, t, "the worker is ready", func(ctx context.Context) error { return get(ctx, "http://"+address+"/readyz") })
	for service, want := range map[string]string{
		"postgres":   "running healthy 0",
		"pubsub":     "running healthy 0",
		"worker":     "running healthy 0",
		"cron":       "running healthy 0",
		"prometheus": "running healthy 0",
		"dashboard":  "running none 0",
		"target":     "running none 0",
		"migrate":    "exited none 0",
		"access":     "exited none 0",
	} {
		eventually(ctx, t, service+" is "+want, func(ctx context.Context) error {
			got := p.inspect(ctx, t, service, "{{.State.Status}} {{if .State.Health}}{{.State.Health.Status}}{{else}}none{{end}} {{.RestartCount}}")
			if got != want {
				return fmt.Errorf("it is %q", got)
			}
			return nil
		})
	}
	for _, service := range []string{"postgres", "pubsub", "worker", "dashboard", "prometheus"} {
		ports := p.inspect(ctx, t, service, "{{range .NetworkSettings.Ports}}{{range .}}{{.HostIp}} {{end}}{{end}}")
		if ports != "127.0.0.1" {
			t.Errorf("%s is published on %q: want 127.0.0.1 and nothing else", service, ports)
		}
	}
}

// inspect formats the facts of a service's container, also of one that has ended.
func (p *project) inspect(ctx context.Context, t *testing.T, service, format string) string {
	t.Helper()
	id := docker("ps", "--all", "--quiet", "--filter", "label=com.docker.compose.project="+p.name,
		"--filter", "label=com.docker.compose.service="+service, "--filter", "label=com.docker.compose.oneoff=False").must(ctx, t)
	if id == "" {
		t.Fatalf("there is no container of %s", service)
	}
	return strings.TrimSpace(docker("inspect", "--format", format, id).must(ctx, t))
}

// get is an HTTP request on a connection of its own that must be answered with 200.
func get(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// testDelivered waits until the target has the events, byte for byte (I8) and in this order, and
// the queue is empty.
func (p *project) testDelivered(ctx context.Context, t *testing.T, values ...string) {
	t.Helper()
	var lines []string
	eventually(ctx, t, "the target gets the event", func(ctx context.Context) error {
		id := p.inspect(ctx, t, "target", "{{.Id}}")
		if lines = strings.FieldsFunc(docker("logs", id).must(ctx, t), func(r rune) bool { return r == '\n' }); len(lines) < len(values) {
			return fmt.Errorf("it has got %q", lines)
		}
		return nil
	})
	if len(lines) != len(values) {
		t.Fatalf("the target printed %q, want %d events", lines, len(values))
	}
	for i, want := range values {
		var got struct{ ID, Type, Body string }
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil || got.Body != want || got.Type != "WORKER.order_placed" {
			t.Errorf("the target printed %q (%v): want WORKER.order_placed with %s", lines[i], err, want)
		}
	}
	eventually(ctx, t, "the event is deleted", func(ctx context.Context) error {
		count, err := p.call("exec", "-T", "postgres", "psql", "-U", "events", "-d", "events",
			"-tAc", "SELECT count(*) FROM events_v2").output(ctx)
		if err == nil && count != "0" {
			err = fmt.Errorf("events_v2 has %s rows", count)
		}
		return err
	})
}

// testStop checks that SIGTERM ends the programs orderly.
func (p *project) testStop(ctx context.Context, t *testing.T) {
	t.Helper()
	p.call("stop", "worker", "cron", "dashboard", "prometheus").must(ctx, t)
	for _, service := range []string{"worker", "cron", "dashboard", "prometheus"} {
		if status := p.inspect(ctx, t, service, "{{.State.ExitCode}}"); status != "0" {
			t.Errorf("%s ended with status %s after SIGTERM: want 0", service, status)
		}
	}
}

// remove prints the logs of a run that failed and takes everything down.
func (p *project) remove(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupLimit)
	defer cancel()
	if t.Failed() {
		logs, err := p.call("logs", "--no-color").output(ctx)
		t.Logf("logs (%v):\n%s", err, logs)
	}
	if _, err := p.call("down", "--volumes", "--remove-orphans").output(ctx); err != nil {
		t.Errorf("take the project down: %v", err)
	}
	for _, kind := range [][]string{{"ps", "--all"}, {"network", "ls"}, {"volume", "ls"}} {
		list := append(slices.Clone(kind), "--quiet", "--filter", "label=com.docker.compose.project="+p.name)
		if left, err := docker(list...).output(ctx); err != nil || left != "" {
			t.Errorf("after down, docker %s: %q (%v): want nothing left", strings.Join(kind, " "), left, err)
		}
	}
}
