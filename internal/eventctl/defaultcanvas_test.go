package eventctl

import (
	"maps"
	"strings"
	"testing"

	"eventsv2/eventqueue/pgsession"
)

// in is a command line with variables of the environment beside those of c.
func (c *cli) in(variables map[string]string) *cli {
	with := *c
	with.env = maps.Clone(c.env)
	maps.Copy(with.env, variables)
	return &with
}

// EVENTS_CANVAS stands in for --canvas, whether the command needs one or selects by it, and a flag wins.
func TestCanvasOfEnvironmentIsTheDefault(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.exec(`INSERT INTO canvas_names (canvas_id, name) VALUES ($1, 'Acme Ltd')`, canvasA)
	for _, value := range []string{canvasA, "Acme Ltd"} {
		c.in(map[string]string{"EVENTS_CANVAS": value}).run("emit", "--no-notify", "--module", "WORKER", "--name", "greet", "--value", "1").is(exitOK, "emitted 1", "")
	}
	acme := c.in(map[string]string{"EVENTS_CANVAS": canvasA})
	acme.run("emit", "--no-notify", "--canvas", canvasB, "--module", "WORKER", "--name", "greet", "--value", "2").is(exitOK, "emitted 1", "")
	acme.runWith(c.ctx, strings.NewReader(`{"canvas_id":"`+canvasB+`","module":"WORKER","name":"greet","modifier":"_","value":3}`), "emit", "--no-notify", "--file", "-").is(exitOK, "emitted 1", "")
	for _, command := range []string{
		"pause --module WORKER --name greet", "rule list", "limit rate set --no-notify --per-day 5", "limit concurrency list",
		"cron set --name nightly --schedule every,day", "cron preview --name nightly", "cron preview --schedule every,day", "stats", "log list",
		"token create --name t --verbs read",
	} {
		words := strings.Fields(command)
		for i, word := range words {
			words[i] = strings.ReplaceAll(word, ",", " ")
		}
		acme.run(words...).is(exitOK, "", "")
	}
	acme.run("retry", "--no-notify", "--all", "--module", "WORKER", "--name", "greet").is(exitOK, "moved 0 events", "0 events to move")
	var canvases string
	if err := c.pool.QueryRow(c.ctx, `SELECT string_agg(canvas, ' ') FROM (SELECT canvas_id::text FROM events_v2 UNION ALL SELECT canvas_id::text FROM scheduling_rules
		UNION ALL SELECT canvas_id::text FROM rate_limits UNION ALL SELECT canvas_id::text FROM cron_definitions
		UNION ALL SELECT coalesce(cardinality(canvases), 0)::text FROM access_tokens) AS of (canvas)`).Scan(&canvases); err != nil {
		t.Fatal(err)
	}
	if want := strings.Join([]string{canvasA, canvasA, canvasB, canvasB, canvasA, canvasA, canvasA, "0"}, " "); canvases != want {
		t.Errorf("the canvases are %s, not %s", canvases, want)
	}
	if out := acme.run("list").is(exitOK, canvasA, "").out; strings.Contains(out, canvasB) {
		t.Errorf("events of another canvas are listed:\n%s", out)
	}
	if out := acme.run("list", "--canvas", canvasB).is(exitOK, canvasB, "").out; strings.Contains(out, canvasA) {
		t.Errorf("the flag does not win:\n%s", out)
	}
}

// Who changes many events has to say which: the variable narrows a filter, and is none.
func TestCanvasOfEnvironmentIsNoFilter(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	for _, canvas := range []string{canvasA, canvasB} {
		c.run("emit", "--no-notify", "--canvas", canvas, "--module", "WORKER", "--name", "greet", "--value", "1").is(exitOK, "", "")
	}
	acme := c.in(map[string]string{"EVENTS_CANVAS": canvasA})
	acme.run("cancel", "--no-notify", "--yes").is(exitBadInput, "", "give the ids of events that wait, or a filter")
	acme.run("log", "delete", "--status", "failed", "--yes").is(exitBadInput, "", "the filter is empty")
	acme.run("cancel", "--no-notify", "--name", "greet", "--yes").is(exitOK, "cancelled 1 event", "1 event to cancel")
	acme.run("cancel", "--no-notify", "2").is(exitOK, "cancelled 1 event", "") // an id needs no canvas
	c.run("cron", "preview", "--name", "nightly").is(exitBadInput, "", "--canvas is missing")
}

func TestInvalidCanvasOfEnvironmentIsNamed(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	for value, problem := range map[string]string{
		"Acme Ltd":                             `EVENTS_CANVAS: canvas_id "Acme Ltd" is not a uuid, and no canvas has this name`,
		"00000000-0000-0000-0000-000000000000": "EVENTS_CANVAS: canvas_id: is missing: the zero uuid names no canvas",
		"a\tb":                                 "EVENTS_CANVAS: canvas_id",
	} {
		bad := c.in(map[string]string{"EVENTS_CANVAS": value})
		bad.run("emit", "--no-notify", "--module", "WORKER", "--name", "greet", "--value", "1").is(exitBadInput, "", problem)
		bad.run("list").is(exitBadInput, "", problem)
		bad.run("list", "--canvas", canvasA).is(exitOK, "no events\n", "")
		bad.run("show", "1").is(exitNotFound, "", "")
	}
	c.in(map[string]string{"EVENTS_CANVAS": ""}).run("list").is(exitOK, "no events\n", "")
}

// Who emits to a handler that no worker has, or pauses it, is asked about one of a similar name.
func TestSimilarHandlerIsSuggested(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.exec(`INSERT INTO event_workers (number, host, pid, version, handlers) VALUES (11, 'worker-11', 1, 'v1', '[{"module":"WORKER","name":"order_placed","modifier":"_"}]')`)
	conn, err := c.pool.Acquire(c.ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Release)
	if _, err := conn.Exec(c.ctx, `SELECT pg_try_advisory_lock_shared(`+pgsession.WorkerLockClass+`, 11)`); err != nil {
		t.Fatal(err)
	}
	acme := c.in(map[string]string{"EVENTS_CANVAS": canvasA})
	const question = "did you mean order_placed?"
	acme.run("emit", "--no-notify", "--module", "WORKER", "--name", "order_placd", "--value", "1").is(exitOK, "id 1", "no live worker has the handler WORKER/order_placd/_: "+question)
	acme.run("explain", "1").is(exitOK, "Or "+question, "")
	acme.run("pause", "--module", "WORKER", "--name", "order_plced").is(exitOK, "paused", question)
	acme.run("emit", "--no-notify", "--module", "WORKER", "--name", "order_placed", "--value", "1").is(exitOK, "id 2", "")
	acme.run("emit", "--no-notify", "--module", "WORKER", "--name", "refund", "--value", "1").is(exitOK, "id 3", "")
	acme.run("pause", "--module", "WORKER", "--prefix", "order_placd_").is(exitOK, "paused", "check the spelling")
}
