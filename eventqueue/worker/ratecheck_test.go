package worker_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

func TestCheckReportsTheWait(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	ctx := testenv.Context(t)
	check := func(handler eventqueue.HandlerKey, want time.Duration) {
		t.Helper()
		if wait, err := r.limits.Check(ctx, rig.Canvas, handler); wait != want || err != nil {
			t.Errorf("wait %s, %v; want %s", wait, err, want)
		}
	}
	check(rig.Key, 0)
	r.limit(operate.RateLimit{PerMinute: 10, PerDay: 20})
	r.limit(operate.RateLimit{Scope: handlerScope(), PerMinute: 5})
	take := func(want int) {
		t.Helper()
		if _, err := r.Store.TakeRate(ctx, []worker.RateAsk{{Scope: handlerScope(), Want: want}}); err != nil {
			t.Fatal(err)
		}
	}
	take(4)
	check(rig.Key, 0)
	take(1)
	check(rig.Key, 59*time.Second) // it is a second past the minute
	check(eventqueue.HandlerKey{}, 0)
	take(12) // refused: two minutes of it, and the third has begun
	r.Exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, limited_attempt) SELECT $1, $2, $3, '_', '1', 1 FROM generate_series(1, 12)`,
		[16]byte(rig.Canvas), rig.Key.Module, rig.Key.Name)
	check(rig.Key, 59*time.Second+2*time.Minute)
	for minute := range 3 {
		r.setClock(r.now.Add(time.Minute))
		take(5)
		_ = minute
	}
	check(eventqueue.HandlerKey{}, 12*time.Hour-3*time.Minute-time.Second) // the day is full
	r.setClock(r.now.Add(24 * time.Hour))
	check(rig.Key, 0)
	if _, err := r.limits.Check(ctx, eventqueue.CanvasID{}, rig.Key); err == nil {
		t.Error("a check of no canvas")
	}
	if all, err := r.limits.List(ctx, nil); err != nil || len(all) != 2 || all[0].DayUsed != 0 || all[1].MinuteUsed != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestInvalidRateLimitsAreRefused(t *testing.T) {
	t.Parallel()
	c := eventqueue.Scope{Canvas: rig.Canvas}
	for want, l := range map[string]operate.RateLimit{
		"canvas_id: is missing":        {PerDay: 1},
		"name: is empty":               {Scope: eventqueue.Scope{Canvas: rig.Canvas, Module: "M"}, PerDay: 1},
		"module: is empty":             {Scope: eventqueue.Scope{Canvas: rig.Canvas, Name: "n"}, PerDay: 1},
		"one of them is needed":        {Scope: c},
		"per_minute: is -1":            {Scope: c, PerMinute: -1},
		"per_day: is 1000000001":       {Scope: c, PerDay: ratelimit.MaxRate + 1},
		`mode: is "rough": it must be`: {Scope: c, PerDay: 1, Mode: "rough"},
	} {
		if err := l.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", l, err, want)
		}
	}
}

// TestLimitCostsAStatementPerClaim at most, and nothing where there is none.
func TestLimitCostsAStatementPerClaim(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	r.NeedStatements()
	r.Handle(done, rig.Quick())
	calls := func(text string) int {
		return rig.One[int](r.Rig, `SELECT coalesce(sum(calls), 0) FROM pg_stat_statements
			WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND query LIKE '%' || $1 || '%'
			AND query NOT LIKE '%pg_stat_statements%' AND query NOT LIKE 'CREATE%'`, text)
	}
	stop := r.Start(worker.Config{})
	r.emitTo(rig.Key.Name, 500)
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 500)
	if n := calls("rate_counters"); n != 0 {
		t.Errorf("%d statements about limits, of which there are none", n)
	}
	stop()
	for _, mode := range []ratelimit.Mode{ratelimit.Exact, ratelimit.Approximate} {
		r.limit(operate.RateLimit{PerMinute: 10_000, Mode: mode})
		takes, claims, ended := calls("rate_counters"), calls("AS marks"), r.Outcomes.Count(machine.ExecutesToCompletion)
		stop := r.Start(worker.Config{ClaimBatch: 20})
		r.emitTo(rig.Key.Name, 1000)
		testenv.Eventually(t, "all events have ended", func() bool {
			r.setClock(r.now.Add(100 * time.Millisecond)) // counts that are being written put a batch off for a second or two
			return r.Outcomes.Count(machine.ExecutesToCompletion) >= ended+1000
		})
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
	windows := ratelimit.Windows{MinuteUsed: 10, DayUsed: 90, MinuteLeft: 20 * time.Second, DayLeft: time.Hour}
	for _, c := range []struct {
		name   string
		answer ratelimit.Answer
		want   []time.Duration // without and with the whole jitter
	}{
		{"the next minute", ratelimit.Answer{Handler: &ratelimit.State{PerMinute: 10, Windows: windows}},
			[]time.Duration{20 * time.Second, 23 * time.Second}},
		{"the next day", ratelimit.Answer{Handler: &ratelimit.State{PerDay: 90, Windows: windows}},
			[]time.Duration{time.Hour, time.Hour + 10*time.Minute/90}},
		{"both are full", ratelimit.Answer{Handler: &ratelimit.State{PerMinute: 10, PerDay: 90, Windows: windows}},
			[]time.Duration{time.Hour, time.Hour + 3*time.Second}},
		{"the canvas' day is full, too", ratelimit.Answer{Canvas: &ratelimit.State{PerDay: 90, Windows: windows},
			Handler: &ratelimit.State{PerMinute: 10, Windows: windows}}, []time.Duration{time.Hour, time.Hour + time.Minute}},
	} {
		c.answer.OlderNew = -1
		none := c.answer.Waits(1, 0, func(time.Duration) time.Duration { return 0 })
		all := c.answer.Waits(1, 0, func(spread time.Duration) time.Duration { return spread })
		if got := slices.Concat(none, all); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	far := ratelimit.Answer{Handler: &ratelimit.State{PerDay: 1, Windows: ratelimit.Windows{DayUsed: 1, Waiting: 1 << 62}}, OlderNew: -1}
	if wait := far.Waits(1, 0, func(time.Duration) time.Duration { return 0 })[0]; wait != 30*24*time.Hour {
		t.Errorf("the last of very many waits for %s", wait)
	}
}
