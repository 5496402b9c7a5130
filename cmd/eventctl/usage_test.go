package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/service"
	"eventsv2/test/testenv"
)

func configOf(t *testing.T, c *cli) service.Config {
	t.Helper()
	config, err := (&app{environment: c.env}).config()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func silentBell(c *cli) *doorbell {
	return &doorbell{store: pgstore.New(c.pool), queue: silentQueue(c), silent: true}
}

func TestUsageIsStatus2(t *testing.T) {
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
		{[]string{"ls", "--frobnicate"}, "unknown flag"},
		{[]string{"ls", "stray"}, "stray"},
		{[]string{"ls", "--limit", "0"}, "--limit is 0"},
		{[]string{"ls", "--limit", "-1"}, "--limit is -1"},
		{[]string{"ls", "--limit", "10001"}, "from 1 to 10000"},
		{[]string{"ls", "--limit", "many"}, "--limit"},
		{[]string{"ls", "--after", "-1"}, "--after is -1"},
		{[]string{"ls", "--after", "99999999999999999999"}, "out of range"},
		{[]string{"ls", "--canvas", ""}, "is not a uuid"},
		{[]string{"ls", "--canvas", "7"}, "is not a uuid"},
		{[]string{"ls", "--module", ""}, "module: is empty"},
		{[]string{"ls", "--name", "a\x00b"}, "control character"},
		{[]string{"ls", "--name", "\xff"}, "UTF-8"},
		{[]string{"ls", "--state", "tired"}, `--state "tired" is unknown`},
		{[]string{"log", "--status", ""}, "is unknown"},
		{[]string{"log", "--limit", "0"}, "--limit is 0"},
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
		{[]string{"retry", "1", "--canvas", canvasA}, "--canvas goes with --all"},
		{[]string{"stuck", "--for", "long"}, "invalid argument"},
		{[]string{"stuck", "--for", "-1s"}, "--for is -1s"},
		{[]string{"stuck", "--attempts", "0"}, "--attempts must be at least 1"},
		{[]string{"stuck", "--limit", "0"}, "--limit is 0"},
		{[]string{"stuck", "--canvas", ""}, "is not a uuid"},
		{[]string{"requeue"}, "give the ids"},
		{[]string{"requeue", "1", "2x"}, `"2x" is not the id`},
		{[]string{"prune", "--yes"}, "required flag"},
		{[]string{"prune", "--status", "tired", "--older-than", "1h", "--yes"}, `--status "tired" is unknown`},
		{[]string{"prune", "--status", "failed", "--older-than", "", "--yes"}, `--older-than "" is not a duration`},
		{[]string{"prune", "--status", "failed", "--older-than", "-1h", "--yes"}, `--older-than "-1h" is not a duration`},
		{[]string{"prune", "--status", "failed", "--older-than", "1h"}, "give --yes"},
		{[]string{"prune", "--status", "failed", "--older-than", "1h", "--yes", "--dry-run"}, "not both"},
		{[]string{"pause", "--canvas", canvasA}, "required flag"},
		{scopeArgs("pause", "x", "m", "n"), "is not a uuid"},
		{scopeArgs("block", canvasA, "", "n"), "module"},
		{[]string{"limit"}, "needs a command"},
		{[]string{"limit", "set", "--per-day", "1"}, "required flag"},
		{[]string{"limit", "set", "--canvas", canvasA}, "at least one of the flags"},
		{[]string{"limit", "set", "--canvas", canvasA, "--per-day", "0"}, "--per-day is 0: it must be at least 1"},
		{[]string{"limit", "set", "--canvas", canvasA, "--per-minute", "-1"}, "--per-minute is -1"},
		{[]string{"limit", "set", "--canvas", canvasA, "--per-day", "1000000001"}, "per_day: is 1000000001"},
		{[]string{"limit", "set", "--canvas", canvasA, "--per-day", "1", "--mode", "rough"}, `mode: is "rough"`},
		{[]string{"limit", "set", "--canvas", canvasA, "--per-day", "1", "--mode", ""}, "--mode is empty"},
		{[]string{"limit", "set", "--canvas", canvasA, "--per-day", "1", "--module", "M"}, "module name"},
		{[]string{"limit", "set", "--canvas", canvasA, "--per-day", "1", "--module", "", "--name", ""}, "module: is empty"},
		{[]string{"limit", "remove", "--canvas", "7"}, "is not a uuid"},
		{[]string{"limit", "remove", "--canvas", canvasA, "--module", "", "--name", ""}, "module: is empty"},
		{[]string{"limit", "release", "--canvas", canvasA, "--module", "", "--name", ""}, "module: is empty"},
		{[]string{"limit", "list", "--canvas", ""}, "is not a uuid"},
		{[]string{"migrate", "down"}, "give --yes"},
		{[]string{"migrate", "down", "--yes", "--steps", "0"}, "--steps is 0"},
		{[]string{"cron", "add", "--canvas", canvasA, "--name", "x", "--schedule", "0 0 30 2 *"}, "never comes true"},
		{[]string{"cron", "add", "--canvas", canvasA, "--name", "x", "--schedule", "every day", "--time-zone", "Mars"}, "Mars"},
		{[]string{"cron", "add", "--canvas", canvasA, "--name", "x", "--schedule", "every day", "--missed", "some"}, "missed"},
		{[]string{"cron", "add", "--canvas", canvasA, "--name", "\x1b", "--schedule", "every day"}, "control character"},
		{[]string{"cron", "next", "--canvas", canvasA, "--name", "x", "--count", "0"}, "--count is 0"},
		{[]string{"stats"}, "DATABASE_URL is not set"},
	} {
		r := c.run(test.args...).is(exitBadInput, "", test.want)
		if !strings.HasPrefix(r.err, "eventctl: ") || r.out != "" || strings.Contains(r.err, "\x1b") {
			t.Errorf("%q: stdout %q, stderr %q", test.args, r.out, r.err)
		}
		c.run(append([]string{"--json"}, test.args...)...).is(exitBadInput, "", `{"error":"`)
	}
}

func TestConfigurationAndDatabaseErrors(t *testing.T) {
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
	c.run("stats", "--database-url", testenv.EmptyDatabaseURL(t)).is(exitFailed, "", "run: eventctl migrate up")
}

func TestEveryCommandsHelpNamesTheExitStatuses(t *testing.T) {
	t.Parallel()
	for _, path := range commandPaths() {
		var out, stderr bytes.Buffer
		args := strings.Fields(path + " --help")[1:]
		if status := run(t.Context(), args, nil, strings.NewReader(""), &out, &stderr); status != exitOK {
			t.Errorf("%s --help: exit status %d, %s", path, status, &stderr)
		}
		if !strings.Contains(out.String(), exitStatuses) {
			t.Errorf("%s --help does not name the exit statuses:\n%s", path, &out)
		}
	}
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
	walk((&app{}).command())
	return paths
}

func TestRootHelp(t *testing.T) {
	t.Parallel()
	c := &cli{t: t, ctx: testenv.Context(t)}
	c.run("--help").is(exitOK, "", "").golden("help")
}
