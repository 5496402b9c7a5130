package e2e_test

import (
	"strings"
	"testing"
	"time"

	"eventsv2/test/testenv"
)

// onHandler are the flags that name a handler of the rig.
func onHandler(name string, more ...string) []string {
	return append([]string{"--canvas", canvas.String(), "--module", "WORKER", "--name", name}, more...)
}

// TestRuleHasAReasonAndEnds: who asks is told who holds a handler back, why and until when; then cron lifts
// the rule, and what has waited runs.
func TestRuleHasAReasonAndEnds(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	worker := r.start("worker", nil)
	worker.await("worker started")
	until := one[time.Time](r, `SELECT clock_timestamp() + interval '8 s'`)
	r.eventctl(append([]string{"pause"}, onHandler("greet", "--actor", "ann", "--reason", "orders come twice", "--until", until.UTC().Format(time.RFC3339Nano))...)...)
	id := r.emit(event("greet", `1`))[0]
	since := "by the user (ann) since " + one[time.Time](r, `SELECT created_at::timestamptz FROM scheduling_rules`).UTC().Format(time.RFC3339)
	for _, ask := range [][]string{{"show", id.String()}, append([]string{"pause"}, onHandler("greet", "--reason", "another")...)} {
		said := r.eventctlSays(ask...)
		for _, why := range []string{since, "until " + until.UTC().Format(time.RFC3339), ": orders come twice"} {
			if !strings.Contains(said, why) {
				t.Errorf("eventctl %s says %q, want %q in it", ask[0], said, why)
			}
		}
	}
	if said := r.eventctlSays("rule", "list"); !strings.Contains(said, "ann") || !strings.Contains(said, "orders come twice") {
		t.Errorf("eventctl rule list says %q", said)
	}
	// Two of them: one lifts it.
	first, second := r.start("cron", nil), r.start("cron", nil)
	r.target.await(t, 1)
	testenv.Eventually(t, "one of the two has lifted the rule", func() bool {
		const line = "lifted a rule whose end has come"
		return strings.Count(first.text()+second.text(), line) == 1
	})
	if n := one[int](r, `SELECT count(*) FROM scheduling_rules`); n != 0 {
		t.Errorf("%d rules are left", n)
	}
}

// TestNarrowRulesAndARampWork: a rule of a prefix and one of a modifier hold back theirs and no other, explain names
// the one that does, and after a lift at a rate cron lets all run, and the rule is gone.
func TestNarrowRulesAndARampWork(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	r.start("worker", nil).await("worker started")
	on := func(more ...string) []string {
		return append([]string{"--canvas", canvas.String(), "--module", "WORKER"}, more...)
	}
	r.eventctl(append([]string{"pause"}, on("--prefix", "gre", "--reason", "orders come twice")...)...)
	r.eventctl(append([]string{"block"}, on("--name", "greet", "--modifier", "another")...)...)
	ids := r.emit(event("greet", `1`), event("greet", `2`), event("greet", `3`))
	if said := r.eventctlSays("explain", ids[2].String()); !strings.Contains(said, "as all whose names begin with gre") || !strings.Contains(said, "orders come twice") ||
		!strings.Contains(said, "--prefix gre") || strings.Contains(said, "block") {
		t.Errorf("eventctl explain says %q", said)
	}
	// One a second: two at most by the command itself, the rest by cron.
	said := r.eventctlSays(append([]string{"unpause"}, on("--prefix", "gre", "--rate", "1/s")...)...)
	if !strings.Contains(said, "cron goes on") {
		t.Errorf("eventctl unpause says %q", said)
	}
	r.start("cron", nil)
	r.target.await(t, 3)
	testenv.Eventually(t, "the rule is gone, and the other is not", func() bool {
		return one[string](r, `SELECT string_agg(rule_type || ' ' || handler_name, ', ') FROM scheduling_rules`) == "block greet"
	})
}

// TestInvalidRuleRowStopsNoOther (I15): times that cannot be read, which only SQL can write, keep no rule from
// being lifted or shown, and one that the database refuses to lift keeps no other one; cron names it.
func TestInvalidRuleRowStopsNoOther(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	r.start("worker", nil).await("worker started")
	ctx := testenv.Context(t)
	execute := func(sql string, args ...any) {
		t.Helper()
		if _, err := r.pool.Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	execute(`ALTER TABLE scheduling_rules DROP CONSTRAINT scheduling_rules_readable`)
	execute(`INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name, created_at, until, rate, released_to, released_at) VALUES
		('pause', $1, 'WORKER', 'refused', now(), now() - interval '1 h', NULL, NULL, NULL),
		('block', $1, 'WORKER', 'refused', now(), NULL, 1, 0, now()),
		('pause', $1, 'WORKER', 'ahead', 'infinity', NULL, 1, 0, 'infinity'),
		('pause', $1, 'WORKER', 'far', '200000-01-01', 'infinity', 1, 0, '200000-01-01'),
		('pause', $1, 'WORKER', 'before', '-infinity', '-infinity', NULL, NULL, NULL),
		('block', $1, 'WORKER', 'before', '4000-01-01 BC', NULL, 1, 0, '-infinity'),
		('pause', $1, 'WORKER', 'greet', 'infinity', now() - interval '1 h', NULL, NULL, NULL),
		('block', $1, 'WORKER', '', now(), now() - interval '1 h', NULL, NULL, NULL)`, canvas.String())
	execute(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no change of %', OLD.handler_name; END $$`)
	execute(`CREATE TRIGGER refuse BEFORE UPDATE OR DELETE ON scheduling_rules FOR EACH ROW WHEN (OLD.handler_name = 'refused') EXECUTE FUNCTION refuse()`)
	id := r.emit(event("greet", `1`))[0]
	for _, ask := range [][]string{{"rule", "list"}, {"rule", "list", "--json"}, {"explain", id.String()}, {"show", id.String()}} {
		if said := r.eventctlSays(ask...); !strings.Contains(said, "9999-12-3") {
			t.Errorf("eventctl %s says %q", ask[0], said)
		}
	}
	if said := r.eventctlSays("explain", id.String()); !strings.Contains(said, "nobody has lifted it") {
		t.Errorf("eventctl explain says %q", said)
	}
	if said := r.eventctlSays("rule", "list"); !strings.Contains(said, "the end of pause WORKER/refused on canvas "+canvas.String()+" has passed, and it is still there") {
		t.Errorf("eventctl rule list says %q", said)
	}
	cron := r.start("cron", nil)
	r.target.await(t, 1)
	testenv.Eventually(t, "all other rules are gone", func() bool {
		return one[string](r, `SELECT string_agg(rule_type || ' ' || handler_name, ', ' ORDER BY id) FROM scheduling_rules`) == "pause refused, block refused, block "
	})
	for _, named := range []string{`no change of refused`, `"rule":"pause"`, `"rule":"block"`, `"scope":"WORKER/ on canvas`} {
		testenv.Eventually(t, "cron says "+named, func() bool { return strings.Contains(cron.text(), named) })
	}
	execute(`DROP TRIGGER refuse ON scheduling_rules`)
	testenv.Eventually(t, "those that were refused are gone", func() bool { return one[int](r, `SELECT count(*) FROM scheduling_rules`) == 1 })
}
