package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"eventsv2/test/testenv"
)

// onHandler are the flags that name a handler of the rig.
func onHandler(name string, more ...string) []string {
	return append([]string{"--canvas", canvas.String(), "--module", "WORKER", "--name", name}, more...)
}

// TestARuleSaysWhyAndEnds: who asks is told who holds a handler back, why and until when; then cron lifts
// the rule, and what has waited runs.
func TestARuleSaysWhyAndEnds(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	worker := r.start("worker", nil)
	worker.await("worker started")
	until := one[time.Time](r, `SELECT clock_timestamp() + interval '8 s'`)
	r.eventctl(append([]string{"pause"}, onHandler("greet", "--actor", "ann", "--reason", "orders come twice", "--until", until.UTC().Format(time.RFC3339Nano))...)...)
	id := r.emit(event("greet", `1`))[0]
	why := fmt.Sprintf("by the user (ann) since %%s until %s: orders come twice", until.UTC().Format(time.RFC3339))
	since := one[time.Time](r, `SELECT created_at::timestamptz FROM scheduling_rules`).UTC().Format(time.RFC3339)
	why = fmt.Sprintf(why, since)
	for _, ask := range [][]string{{"show", id.String()}, append([]string{"pause"}, onHandler("greet", "--reason", "another")...)} {
		if said := r.eventctlSays(ask...); !strings.Contains(said, why) {
			t.Errorf("eventctl %s says %q, want %q in it", ask[0], said, why)
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

// TestRulesOfSomeAndARampOfAll: a rule of a prefix and one of a modifier hold back theirs and no other, explain names
// the one that does, and after a lift at a rate cron lets all run, and the rule is gone.
func TestRulesOfSomeAndARampOfAll(t *testing.T) {
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
