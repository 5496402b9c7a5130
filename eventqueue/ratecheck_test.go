package eventqueue_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/test/testenv"
)

func TestCheckSaysHowLongToWait(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	ctx := testenv.Context(t)
	check := func(handler eventqueue.HandlerKey, want time.Duration) {
		t.Helper()
		if wait, err := r.limits.Check(ctx, canvas, handler); wait != want || err != nil {
			t.Errorf("wait %s, %v; want %s", wait, err, want)
		}
	}
	check(key, 0)
	r.limit(eventqueue.RateLimit{PerMinute: 10, PerDay: 20})
	r.limit(eventqueue.RateLimit{Scope: handlerScope(), PerMinute: 5})
	take := func(want int) {
		t.Helper()
		if _, err := r.store.TakeRate(ctx, []eventqueue.RateAsk{{Scope: handlerScope(), Want: want}}); err != nil {
			t.Fatal(err)
		}
	}
	take(4)
	check(key, 0)
	take(1)
	check(key, 59*time.Second) // it is a second past the minute
	check(eventqueue.HandlerKey{}, 0)
	take(12) // refused: two minutes of it, and the third has begun
	check(key, 59*time.Second+2*time.Minute)
	for minute := range 3 {
		r.setClock(r.now.Add(time.Minute))
		take(5)
		_ = minute
	}
	check(eventqueue.HandlerKey{}, 12*time.Hour-3*time.Minute-time.Second) // the day is full
	r.setClock(r.now.Add(24 * time.Hour))
	check(key, 0)
	if _, err := r.limits.Check(ctx, eventqueue.CanvasID{}, key); err == nil {
		t.Error("a check of no canvas")
	}
	if all, err := r.limits.List(ctx, nil); err != nil || len(all) != 2 || all[0].DayUsed != 0 || all[1].MinuteUsed != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestLimitsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	c := eventqueue.Scope{Canvas: canvas}
	for want, l := range map[string]eventqueue.RateLimit{
		"canvas_id: is missing":        {PerDay: 1},
		"name: is empty":               {Scope: eventqueue.Scope{Canvas: canvas, Module: "M"}, PerDay: 1},
		"module: is empty":             {Scope: eventqueue.Scope{Canvas: canvas, Name: "n"}, PerDay: 1},
		"one of them is needed":        {Scope: c},
		"per_minute: is -1":            {Scope: c, PerMinute: -1},
		"per_day: is 1000000001":       {Scope: c, PerDay: eventqueue.MaxRate + 1},
		`mode: is "rough": it must be`: {Scope: c, PerDay: 1, Mode: "rough"},
	} {
		if err := l.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", l, err, want)
		}
	}
}

// TestALimitCostsAStatementPerClaim at most, and nothing where there is none.
func TestALimitCostsAStatementPerClaim(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	r.needStatements()
	r.handle(done, quick())
	calls := func(text string) int {
		return one[int](r.rig, `SELECT coalesce(sum(calls), 0) FROM pg_stat_statements
			WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND query LIKE '%' || $1 || '%'
			AND query NOT LIKE '%pg_stat_statements%' AND query NOT LIKE 'CREATE%'`, text)
	}
	stop := r.start(eventqueue.WorkerConfig{})
	r.emitTo(key.Name, 500)
	r.outcomes.await(t, machine.ExecutesToCompletion, 500)
	if n := calls("rate_counters"); n != 0 {
		t.Errorf("%d statements about limits, of which there are none", n)
	}
	stop()
	for _, mode := range []eventqueue.RateMode{eventqueue.RateExact, eventqueue.RateApproximate} {
		r.limit(eventqueue.RateLimit{PerMinute: 10_000, Mode: mode})
		takes, claims, ended := calls("rate_counters"), calls("AS marks"), r.outcomes.count(machine.ExecutesToCompletion)
		stop := r.start(eventqueue.WorkerConfig{ClaimBatch: 20})
		r.emitTo(key.Name, 1000)
		r.outcomes.await(t, machine.ExecutesToCompletion, ended+1000)
		stop()
		takes, claims = calls("rate_counters")-takes, calls("AS marks")-claims
		t.Logf("%s: %d statements about limits with %d claims", mode, takes, claims)
		if takes == 0 || takes > claims {
			t.Errorf("%s: %d statements about limits with %d claims", mode, takes, claims)
		}
	}
}

// TestWaitsAreSpreadOverTheirWindow and never come before it.
func TestWaitsAreSpreadOverTheirWindow(t *testing.T) {
	t.Parallel()
	windows := eventqueue.RateWindows{MinuteUsed: 10, DayUsed: 90, MinuteLeft: 20 * time.Second, DayLeft: time.Hour}
	for _, c := range []struct {
		name   string
		answer eventqueue.RateAnswer
		want   []time.Duration // without and with the whole jitter
	}{
		{"the next minute", eventqueue.RateAnswer{Handler: &eventqueue.RateState{PerMinute: 10, RateWindows: windows}},
			[]time.Duration{20 * time.Second, 50 * time.Second}},
		{"the next day", eventqueue.RateAnswer{Handler: &eventqueue.RateState{PerDay: 90, RateWindows: windows}},
			[]time.Duration{time.Hour, time.Hour + 10*time.Minute}},
		{"both are full", eventqueue.RateAnswer{Handler: &eventqueue.RateState{PerMinute: 10, PerDay: 90, RateWindows: windows}},
			[]time.Duration{time.Hour, time.Hour + 30*time.Second}},
		{"the canvas' day is full, too", eventqueue.RateAnswer{Canvas: &eventqueue.RateState{PerDay: 90, RateWindows: windows},
			Handler: &eventqueue.RateState{PerMinute: 10, RateWindows: windows}}, []time.Duration{time.Hour, time.Hour + 10*time.Minute}},
	} {
		none := eventqueue.Waits(c.answer, 1, func(time.Duration) time.Duration { return 0 })
		all := eventqueue.Waits(c.answer, 1, func(spread time.Duration) time.Duration { return spread })
		if got := slices.Concat(none, all); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	far := eventqueue.RateAnswer{Handler: &eventqueue.RateState{PerDay: 1, RateWindows: eventqueue.RateWindows{DayUsed: 1, Waiting: 1 << 62}}}
	if wait := eventqueue.Waits(far, 1, func(time.Duration) time.Duration { return 0 })[0]; wait != 30*24*time.Hour {
		t.Errorf("the last of very many waits for %s", wait)
	}
}
