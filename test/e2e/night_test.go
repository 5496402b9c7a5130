package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"eventsv2/test/testenv"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestLogOfANightIsShort: what a person has to know at 3 a.m. stands in the logs of the programs, says where
// it is and what to do, and nothing else stands there.
func TestLogOfANightIsShort(t *testing.T) {
	t.Parallel()
	theLogOfANight(t, func(r *rig, name string, change map[string]string) asleep { return r.start(name, change) })
}

// TestSlogOfANightIsShort: who embeds worker and cron, and gives them a logger of log/slog, reads of the same
// night what the logs of the built programs say of it, line by line and field by field.
func TestSlogOfANightIsShort(t *testing.T) {
	t.Parallel()
	theLogOfANight(t, func(r *rig, name string, change map[string]string) asleep { return r.startSlog(name, change) })
}

// asleep is a program that nobody looks at before something is wrong.
type asleep interface {
	name() string
	text() string // of its log
	await(text string)
	terminate() (status int)
}

func theLogOfANight(t *testing.T, start func(r *rig, name string, change map[string]string) asleep) {
	t.Helper()
	r := newRig(t)
	roles := withRoles(r)
	r.environment["HANDLERS_FILE"] = r.handlersFile([]string{"greet", "flaky", "broken"})
	r.environment["LOG_LEVEL"] = "info"
	r.environment["RELAY_INTERVAL"] = "1s"
	r.target.failOnce("flaky")
	flaky := r.target.answer
	r.target.answerWith(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/broken" {
			http.Error(w, "no such order", http.StatusBadRequest)
			return
		}
		flaky(w, request)
	})
	n := newNight(t)

	r.emit(event("greet", `1`))
	roles.exec(`UPDATE events_v2 SET enqueued_at = enqueued_at - interval '5 min', delay_until = delay_until - interval '5 min', notified_at = notified_at - interval '5 min'`)
	cron := start(r, "cron", map[string]string{"DATABASE_URL": roles.as("cron")})
	cron.await("nothing has run for a minute")
	cron.await("published notifications")
	n.phase("No worker runs, and an event has been due for five minutes", cron)

	worker := start(r, "worker", map[string]string{"DATABASE_URL": roles.as("worker")})
	r.target.await(t, 1)
	r.emit(event("greet", `1`), event("greet", `2`))
	r.target.await(t, 3)
	n.phase("A worker starts, and events succeed", worker, cron)

	r.emit(event("flaky", `1`), event("broken", `1`))
	r.target.await(t, 6)
	worker.await("the event is FAILED")
	r.awaitSQL("everything has ended", `SELECT count(*) = 0 FROM events_v2`)
	n.phase("A run fails and is tried again, and one fails for good", worker, cron)

	r.eventctl("pause", "--canvas", canvas.String(), "--module", "WORKER", "--name", "greet")
	r.emit(event("greet", `1`))
	r.eventctl("unpause", "--canvas", canvas.String(), "--module", "WORKER", "--name", "greet")
	r.target.await(t, 7)
	n.phase("A handler is paused for a while", worker, cron)

	roles.exec(fmt.Sprintf(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, enqueued_at, delay_until, notified_at)
		SELECT '%s', 'WORKER', 'greet', '_', '1', t, t, t FROM (SELECT clock_timestamp() - interval '5 min' AS t) AS t`, canvas))
	r.target.await(t, 8)
	testenv.Eventually(t, "cron says that it has published it again", func() bool { return strings.Count(cron.text(), "published notifications") == 2 })
	n.phase("A notification was lost", worker, cron)

	if w, c := worker.terminate(), cron.terminate(); w != 0 || c != 0 {
		t.Errorf("the worker ended with %d, cron with %d", w, c)
	}
	n.phase("The programs are stopped", worker, cron)
	n.compare("testdata/night.golden")
}

// night holds the logs of programs, phase by phase.
type night struct {
	t     *testing.T
	lines map[asleep]int // that were read
	text  strings.Builder
}

func newNight(t *testing.T) *night { return &night{t: t, lines: map[asleep]int{}} }

// phase adds the lines that have come since the last phase, in the order of their texts and each once:
// the parts of a program run side by side.
func (n *night) phase(name string, of ...asleep) {
	fmt.Fprintf(&n.text, "# %s\n\n", name)
	for _, p := range of {
		all := strings.Split(strings.TrimSpace(p.text()), "\n")
		var lines []string
		for _, line := range all[n.lines[p]:] {
			if text := n.plain(p, line); text != "" {
				lines = append(lines, text)
			}
		}
		n.lines[p] = len(all)
		slices.Sort(lines)
		for _, line := range slices.Compact(lines) {
			n.text.WriteString(line + "\n")
		}
	}
}

// What differs from night to night.
var differs = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`(topic|subscription)-[0-9a-z]+`), "$1"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+|\[::\]:\d+`), "<address>"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(µs|ms|s)\b|\b\d+m\d+(\.\d+)?s\b`), "<time>"},
	{regexp.MustCompile(`(rpc error: code|context deadline exceeded).*`), "<what gRPC says>"},
	{regexp.MustCompile(`publish \d+ notifications`), "publish <some> notifications"},
	{regexp.MustCompile(`(claim_id): \d+`), "$1: <number>"},
}

// sometimes are the lines of which there are none or several, as it happens: in each minute that a night
// takes, and for what was under way when something broke.
var sometimes = []string{"runs of the last minute", "runs that have ended",
	"could not acknowledge notifications; they come again", "could not requeue notifications; they come again when their lease ends"}

// ofASlowDatabase reports whether a line is true of a machine that is busy with other things: nothing of a night
// keeps the database from answering in time.
func ofASlowDatabase(message, cause string) bool {
	return message == "the database can be used" || strings.HasSuffix(cause, "context deadline exceeded") && !strings.Contains(cause, "Pub/Sub")
}

// plain is a line for comparison: with each of its fields on a line of its own.
func (n *night) plain(p asleep, line string) string {
	n.t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		n.t.Errorf("not a line of our log: %s", line)
		return ""
	}
	message := fmt.Sprint(fields["message"])
	if slices.Contains(sometimes, message) || ofASlowDatabase(message, fmt.Sprint(fields["error"])) {
		return ""
	}
	text := fmt.Sprintf("%s %s: %s\n", p.name(), fields["severity"], message)
	for _, key := range []string{"severity", "message", "time", "logging.googleapis.com/labels"} {
		delete(fields, key)
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		text += fmt.Sprintf("    %s: %v\n", key, fields[key])
	}
	for _, d := range differs {
		text = d.pattern.ReplaceAllString(text, d.by)
	}
	return text
}

func (n *night) compare(path string) {
	n.t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(n.text.String()), 0o600); err != nil {
			n.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		n.t.Fatal(err)
	}
	if n.text.String() != string(want) {
		n.t.Errorf("the log is\n%s\nwant\n%s\n(go test ./test/e2e -run Night -update writes it anew)", n.text.String(), want)
	}
}
