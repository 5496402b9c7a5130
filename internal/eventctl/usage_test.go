package eventctl

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/buildinfo"
	"eventsv2/internal/printing"
	"eventsv2/internal/setup"
	"eventsv2/test/testenv"
)

func configOf(t *testing.T, c *cli) setup.Config {
	t.Helper()
	config, err := (&program{environment: c.env}).config()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func silentConnection(t *testing.T, c *cli) *connection {
	t.Helper()
	store := pgstore.New(c.pool)
	queue, err := silentQueue(store, eventqueue.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return &connection{store: store, queue: queue, silent: true}
}

func TestUsageErrorExitsWithStatus2(t *testing.T) {
	t.Parallel()
	c := &cli{t: t, ctx: testenv.Context(t)} // with nothing at all
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "needs a command"},
		{[]string{"frobnicate"}, "unknown command"},
		{[]string{"migrate"}, "needs a command"},
		{[]string{"cron", "frobnicate"}, "unknown command"},
		{[]string{"list", "--frobnicate"}, "unknown flag"},
		{[]string{"list", "stray"}, "stray"},
		{[]string{"list", "--limit", "0"}, "--limit is 0"},
		{[]string{"list", "--limit", "-1"}, "--limit is -1"},
		{[]string{"list", "--limit", "10001"}, "from 1 to 10000"},
		{[]string{"list", "--limit", "many"}, "--limit"},
		{[]string{"list", "--after", "-1"}, "--after is -1"},
		{[]string{"list", "--after", "99999999999999999999"}, "out of range"},
		{[]string{"list", "--canvas", ""}, "is not a uuid"},
		{[]string{"list", "--canvas", "7"}, "is not a uuid"},
		{[]string{"list", "--module", ""}, "module: is empty"},
		{[]string{"list", "--name", "a\x00b"}, "control character"},
		{[]string{"list", "--name", "\xff"}, "UTF-8"},
		{[]string{"list", "--state", "tired"}, `--state "tired" is unknown`},
		{[]string{"log", "list", "--status", ""}, "is unknown"},
		{[]string{"log", "list", "--limit", "0"}, "--limit is 0"},
		{[]string{"show"}, "accepts 1 arg"},
		{[]string{"show", "0"}, "not the id"},
		{[]string{"show", "x"}, "not the id"},
		{[]string{"show", "--", "-7"}, "not the id"},
		{[]string{"show", "99999999999999999999"}, "not the id"},
		{[]string{"show", "-7"}, "unknown shorthand"},
		{[]string{"retry"}, "give the ids"},
		{[]string{"retry", "1", "2x"}, `"2x" is not the id`},
		{[]string{"retry", "--all"}, "--all needs --canvas"},
		{[]string{"retry", "1", "--all"}, "exclude each other"},
		{[]string{"retry", "1", "--canvas", canvasA}, "ids and a filter exclude each other"},
		{[]string{"retry", "--error", "x"}, "give --yes"},
		{[]string{"retry", "--status", "cancelled", "--yes"}, "the filter is empty"},
		{[]string{"retry", "--status", "completed", "--name", "x", "--yes"}, `--status "completed" is unknown`},
		{[]string{"retry", "--error", "", "--yes"}, "--error is empty"},
		{[]string{"log", "delete"}, "give a filter"},
		{[]string{"log", "delete", "--yes"}, "give a filter"},
		{[]string{"log", "delete", "1", "--yes"}, "unknown command"},
		{[]string{"log", "delete", "--error", "x"}, "give --yes"},
		{[]string{"log", "delete", "--status", "failed", "--yes"}, "the filter is empty"},
		{[]string{"stuck", "--for", "long"}, "invalid argument"},
		{[]string{"stuck", "--for", "-1s"}, "--for is -1s"},
		{[]string{"stuck", "--attempts", "0"}, "--attempts must be at least 1"},
		{[]string{"stuck", "--limit", "0"}, "--limit is 0"},
		{[]string{"stuck", "--canvas", ""}, "is not a uuid"},
		{[]string{"requeue"}, "give the ids"},
		{[]string{"requeue", "1", "2x"}, `"2x" is not the id`},
		{[]string{"log", "prune", "--yes"}, "required flag"},
		{[]string{"log", "prune", "--status", "tired", "--older-than", "1h", "--yes"}, `--status "tired" is unknown`},
		{[]string{"log", "prune", "--status", "failed", "--older-than", "", "--yes"}, `--older-than "" is not a duration`},
		{[]string{"log", "prune", "--status", "failed", "--older-than", "-1h", "--yes"}, `--older-than "-1h" is not a duration`},
		{[]string{"log", "prune", "--status", "failed", "--older-than", "1h"}, "give --yes"},
		{[]string{"log", "prune", "--status", "failed", "--older-than", "1h", "--yes", "--dry-run"}, "not both"},
		{[]string{"pause", "--canvas", canvasA}, "required flag"},
		{scopeArgs("pause", "x", "m", "n"), "is not a uuid"},
		{scopeArgs("block", canvasA, "", "n"), "module"},
		{[]string{"limit"}, "needs a command"},
		{[]string{"limit", "rate", "set", "--per-day", "1"}, "required flag"},
		{[]string{"limit", "rate", "set", "--canvas", canvasA}, "at least one of the flags"},
		{[]string{"limit", "rate", "set", "--canvas", canvasA, "--per-day", "0"}, "--per-day is 0: it must be at least 1"},
		{[]string{"limit", "rate", "set", "--canvas", canvasA, "--per-minute", "-1"}, "--per-minute is -1"},
		{[]string{"limit", "rate", "set", "--canvas", canvasA, "--per-day", "1000000001"}, "per_day: is 1000000001"},
		{[]string{"limit", "rate", "set", "--canvas", canvasA, "--per-day", "1", "--mode", "rough"}, `mode: is "rough"`},
		{[]string{"limit", "rate", "set", "--canvas", canvasA, "--per-day", "1", "--mode", ""}, "--mode is empty"},
		{[]string{"limit", "rate", "set", "--canvas", canvasA, "--per-day", "1", "--module", "M"}, "module name"},
		{[]string{"limit", "rate", "set", "--canvas", canvasA, "--per-day", "1", "--module", "", "--name", ""}, "module: is empty"},
		{[]string{"limit", "rate", "remove", "--canvas", "7"}, "is not a uuid"},
		{[]string{"limit", "rate", "remove", "--canvas", canvasA, "--module", "", "--name", ""}, "module: is empty"},
		{[]string{"limit", "rate", "release", "--canvas", canvasA, "--module", "", "--name", ""}, "module: is empty"},
		{[]string{"limit", "rate", "list", "--canvas", ""}, "is not a uuid"},
		{[]string{"migrate", "down"}, "give --yes"},
		{[]string{"migrate", "down", "--yes", "--steps", "0"}, "--steps is 0"},
		{[]string{"cron", "set", "--canvas", canvasA, "--name", "x", "--schedule", "0 0 30 2 *"}, "never comes true"},
		{[]string{"cron", "set", "--canvas", canvasA, "--name", "x", "--schedule", "every day", "--time-zone", "Mars"}, "Mars"},
		{[]string{"cron", "set", "--canvas", canvasA, "--name", "x", "--schedule", "every day", "--missed", "some"}, "missed"},
		{[]string{"cron", "set", "--canvas", canvasA, "--name", "\x1b", "--schedule", "every day"}, "control character"},
		{[]string{"cron", "show", "--canvas", canvasA, "--name", "x", "--count", "0"}, "--count is 0"},
		{[]string{"stats"}, "DATABASE_URL is not set"},
	} {
		r := c.run(test.args...).is(exitBadInput, "", test.want)
		if !strings.HasPrefix(r.err, "eventctl: ") || r.out != "" || strings.Contains(r.err, "\x1b") {
			t.Errorf("%q: stdout %q, stderr %q", test.args, r.out, r.err)
		}
		c.run(append([]string{"--json"}, test.args...)...).is(exitBadInput, "", `{"error":"`)
	}
}

func TestConfigurationAndDatabaseErrorsAreTold(t *testing.T) {
	t.Parallel()
	c := &cli{t: t, ctx: testenv.Context(t), env: map[string]string{"LOCK_TIMEOUT": "soon"}}
	c.run("stats", "--database-url", "postgres://127.0.0.1:1/none").is(exitBadInput, "", "LOCK_TIMEOUT")
	c.env = nil
	c.run("stats", "--database-url", "postgres://user:secret@host:port/x").is(exitBadInput, "", "DATABASE_URL")
	r := c.run("stats", "--database-url", "postgres://user:secret@127.0.0.1:1/none").is(exitFailed, "", "cannot reach the database")
	if strings.Contains(r.err, "secret") {
		t.Errorf("stderr holds the password: %s", r.err)
	}
	r = c.run("migrate", "up", "--database-url", "postgres://user:secret@127.0.0.1:1/none").is(exitFailed, "", "migrate up")
	if strings.Contains(r.err, "secret") {
		t.Errorf("stderr holds the password: %s", r.err)
	}
	c.run("stats", "--database-url", testenv.EmptyDatabaseURL(t)).is(exitFailed, "", "run eventctl migrate up")
}

func TestEveryCommandsHelpNamesTheExitStatuses(t *testing.T) {
	t.Parallel()
	for _, path := range commandPaths() {
		var out, stderr bytes.Buffer
		args := strings.Fields(path + " --help")[1:]
		if status := Run(t.Context(), args, nil, strings.NewReader(""), &out, &stderr); status != exitOK {
			t.Errorf("%s --help: exit status %d, %s", path, status, &stderr)
		}
		if !strings.Contains(out.String(), exitStatuses) {
			t.Errorf("%s --help does not name the exit statuses:\n%s", path, &out)
		}
	}
}

// newRoot is the command line of a program without anything around it.
func newRoot() *cobra.Command {
	return (&program{Printer: printing.New("eventctl", io.Discard, io.Discard)}).rootCommand()
}

// commandPaths lists every command but help, as it is typed.
func commandPaths() []string {
	var paths []string
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		paths = append(paths, cmd.CommandPath())
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
	return paths
}

// TestHelpMatchesItsGoldenFile holds the help of every command to a file, so that the whole of it can be read.
func TestHelpMatchesItsGoldenFile(t *testing.T) {
	t.Parallel()
	c := &cli{t: t, ctx: testenv.Context(t)}
	var all strings.Builder
	for _, path := range commandPaths() {
		help := c.run(strings.Fields(path + " --help")[1:]...).is(exitOK, "", "").out
		all.WriteString("# " + path + "\n\n" + strings.ReplaceAll(help, "\n"+exitStatuses, "") + "\n")
	}
	result{t: t, out: all.String()}.golden("help")
}

// TestEveryExampleOfTheHelpRuns runs the examples in the order of the commands, on a
// database that has what they name, or not.
func TestEveryExampleOfTheHelpRuns(t *testing.T) {
	c := newCLI(t)
	c.publishing()
	t.Chdir(t.TempDir())
	for name, content := range map[string]string{"order.json": `{"order": 1}`, "events.ndjson": lines(3)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at)
		VALUES (nextval('events_id_seq'), $1, 'WORKER', 'order_placed', '_', '1', 'COMPLETED', 0, 1, now())`, canvasB) // for replay
	root := newRoot()
	for _, path := range commandPaths() {
		cmd, _, err := root.Find(strings.Fields(path)[1:])
		if err != nil {
			t.Fatal(err)
		}
		if cmd.Example == "" && !cmd.HasSubCommands() || cmd.Long == "" && !cmd.HasSubCommands() {
			t.Errorf("the help of %s has no example, or explains nothing", path)
		}
		for example := range strings.Lines(cmd.Example) {
			words, indented := strings.CutPrefix(strings.TrimSuffix(example, "\n"), "  eventctl ")
			if !indented || !strings.HasPrefix("eventctl "+words, path) {
				t.Errorf("an example of %s is %q", path, example)
			}
			if path == "eventctl serve" || path == "eventctl ui" { // which run until they are stopped: TestServeAdmitsByConfiguredAccess, TestUIOpensTheDashboardForThisMachineOnly
				continue
			}
			if r := c.run(shellWords(words)...); r.status != exitOK && r.status != exitNotFound {
				t.Errorf("%s: exit status %d, %s", example, r.status, r.err)
			}
		}
	}
}

// shellWords splits a line as a shell does that knows quotes.
func shellWords(line string) (words []string) {
	for _, word := range regexp.MustCompile(`'[^']*'|"[^"]*"|[^ ]+`).FindAllString(line, -1) {
		words = append(words, strings.Trim(word, `'"`))
	}
	return words
}

func TestVersionAndCompletionArePrinted(t *testing.T) {
	t.Parallel()
	c := &cli{t: t, ctx: testenv.Context(t)}
	c.run("--version").is(exitOK, "eventctl "+buildinfo.Version()+"\n", "")
	for _, shell := range []string{"bash", "zsh", "fish"} {
		c.run("completion", shell).is(exitOK, "eventctl", "")
	}
	c.run("__complete", "limit", "rate", "").is(exitOK, "release\t", "Completion ended")
	c.run("__complete", "list", "--state", "").is(exitOK, "paused\n", "Completion ended")
	c.run("__complete", "settings", "set", "").is(exitOK, "lock-timeout\n", "Completion ended")
}
