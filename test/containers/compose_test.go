package containers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// composeHandlers sends the event of the test to the container of command target.
const composeHandlers = `handlers:
  - module: demo
    name: hello
    modifier: _
    url: http://target:8080/events
`

// composeTarget adds that container to the compose file.
const composeTarget = `services:
  target:
    image: %s
    networks: [events]
`

// project is one "up" of docker-compose.yml under a name of its own.
type project struct {
	name    string
	command []string
	env     []string
}

// newProject skips the test where there is no compose.
func newProject(ctx context.Context, t *testing.T, env map[string]string, override string) *project {
	t.Helper()
	p := &project{name: unique("compose")}
	switch {
	case exec.CommandContext(ctx, "docker", "compose", "version").Run() == nil:
		p.command = []string{"docker", "compose"}
	case exec.CommandContext(ctx, "docker-compose", "version").Run() == nil:
		p.command = []string{"docker-compose"}
	default:
		t.Skip(skipped + "docker-compose.yml needs docker-compose or the compose plugin of docker, and there is neither")
	}
	p.command = append(p.command, "--project-name", p.name, "--file", "docker-compose.yml", "--file", override)
	for name, value := range env {
		p.env = append(p.env, name+"="+value)
	}
	return p
}

func (p *project) call(args ...string) call {
	return call{name: p.command[0], args: append(append([]string{}, p.command[1:]...), args...), env: p.env}
}

// testCompose takes an event from eventctl to a target through everything that
// docker-compose.yml starts.
func testCompose(ctx context.Context, t *testing.T, app string, base map[string]string) {
	dir := t.TempDir()
	handlers, override := filepath.Join(dir, "handlers.yaml"), filepath.Join(dir, "target.yml")
	target := scratchImage(ctx, t, "target")
	for path, text := range map[string]string{handlers: composeHandlers, override: fmt.Sprintf(composeTarget, target)} {
		// The worker in its container is another user.
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // nothing secret
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // nothing secret
		t.Fatal(err)
	}
	p := newProject(ctx, t, map[string]string{
		"EVENTSV2_IMAGE": app, "POSTGRES_IMAGE": base["POSTGRES_IMAGE"], "PUBSUB_EMULATOR_IMAGE": base["PUBSUB_EMULATOR_IMAGE"],
		"PROMETHEUS_IMAGE": base["PROMETHEUS_IMAGE"], "HANDLERS_FILE": handlers,
		"POSTGRES_PORT": "0", "PUBSUB_PORT": "0", "WORKER_PORT": "0", "DASHBOARD_PORT": "0", "PROMETHEUS_PORT": "0",
	}, override)
	t.Cleanup(func() { p.remove(t) })

	p.call("up", "--detach", "--no-build").must(ctx, t)
	p.testUp(ctx, t)
	const value = `{"n": 1,  "text":"Grüße"}`
	p.call("run", "--rm", "-T", "eventctl", "emit", "--canvas", "6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11",
		"--module", "demo", "--name", "hello", "--value", value).must(ctx, t)
	p.testDelivered(ctx, t, value)
	p.testDashboard(ctx, t)
	p.testPrometheus(ctx, t)
	p.testStop(ctx, t)
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

// testDelivered waits until the target has the event, byte for byte (I8), and
// the queue is empty.
func (p *project) testDelivered(ctx context.Context, t *testing.T, value string) {
	t.Helper()
	var lines string
	eventually(ctx, t, "the target gets the event", func(ctx context.Context) error {
		id := p.inspect(ctx, t, "target", "{{.Id}}")
		if lines = docker("logs", id).must(ctx, t); lines == "" {
			return fmt.Errorf("it has got nothing")
		}
		return nil
	})
	var got struct{ ID, Type, Body string }
	if err := json.Unmarshal([]byte(lines), &got); err != nil {
		t.Fatalf("the target printed %q, want one event: %v", lines, err)
	}
	if got.Body != value || got.Type != "demo.hello" {
		t.Errorf("the target got %+v: want demo.hello with %s", got, value)
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
