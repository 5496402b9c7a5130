package worker_test

import (
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// TestChangedLimitForgetsNothing: within a window no more events run than the highest limit that was in force in it lets, however often and
// by whatever way the limit is changed meanwhile. And no later window has less room because of it.
func TestChangedLimitForgetsNothing(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	r.Handle(done, rig.Quick())
	r.limit(operate.RateLimit{Scope: handlerScope(), PerDay: 100})
	r.Start(worker.Config{})
	looks := 900
	r.emitTo(rig.Key.Name, looks)
	r.awaitOutcomes(looks)
	ran := func(after string, want int) {
		t.Helper()
		r.awaitOutcomes(looks)
		n, err := r.limits.Release(testenv.Context(t), handlerScope())
		if err != nil {
			t.Fatal(err)
		}
		looks += n
		r.awaitOutcomes(looks)
		if n := r.Outcomes.Count(machine.ExecutesToCompletion); n != want {
			t.Errorf("%d have run after %s, want %d", n, after, want)
		}
	}
	ran("nothing was changed", 100)
	for range 3 {
		for _, way := range []struct {
			name    string
			changes []string
		}{
			{"it was lowered and put back", []string{`UPDATE rate_limits SET per_day = 1`, `UPDATE rate_limits SET per_day = 100`}},
			{"it was replaced by one per minute and put back", []string{`UPDATE rate_limits SET per_day = NULL, per_minute = 1`,
				`UPDATE rate_limits SET per_day = 100, per_minute = NULL`}},
			{"it was deleted and inserted", []string{`DELETE FROM rate_limits`,
				`INSERT INTO rate_limits (canvas_id, module, name, per_day) VALUES ('` + rig.Canvas.String() + `', 'WORKER', '` + rig.Key.Name + `', 100)`}},
		} {
			for _, sql := range way.changes {
				r.Exec(sql)
			}
			ran(way.name, 100)
		}
		r.limit(operate.RateLimit{Scope: handlerScope(), PerDay: 3, PerMinute: 1})
		looks += r.limit(operate.RateLimit{Scope: handlerScope(), PerDay: 100})
		ran("it was set by operate", 100)
	}
	looks += r.limit(operate.RateLimit{Scope: handlerScope(), PerDay: 150})
	ran("it was raised", 150)
	r.limit(operate.RateLimit{Scope: handlerScope(), PerDay: 10})
	ran("it was lowered", 150)
	r.setClock(r.now.Add(24 * time.Hour))
	ran("a day", 160)
	r.Exec(`UPDATE rate_limits SET per_day = 4`)
	r.setClock(r.now.Add(24 * time.Hour))
	r.Exec(`UPDATE rate_limits SET per_day = 7`) // no run has seen the limit of 4
	ran("two days", 167)
}

// TestRemovedLimitKeepsItsCounts for as long as their windows last, and no longer.
func TestRemovedLimitKeepsItsCounts(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	ctx := testenv.Context(t)
	granted := func(limit operate.RateLimit, want int) {
		t.Helper()
		r.limit(limit)
		answers, err := r.Store.TakeRate(ctx, []worker.RateAsk{{Scope: handlerScope(), Want: 50}})
		if err != nil || answers[0].Granted != want {
			t.Errorf("%+v: granted %+v, %v; want %d", limit, answers, err, want)
		}
		if removed, _, err := r.limits.Remove(ctx, limit.Scope); !removed || err != nil {
			t.Errorf("%t, %v", removed, err)
		}
	}
	whole := eventqueue.Scope{Canvas: rig.Canvas}
	granted(operate.RateLimit{Scope: handlerScope(), PerDay: 10}, 10)
	granted(operate.RateLimit{Scope: whole, PerDay: 5}, 5) // another limit, which has counted nothing
	granted(operate.RateLimit{Scope: handlerScope(), PerDay: 12}, 2)
	granted(operate.RateLimit{Scope: handlerScope(), PerMinute: 12}, 0)
	r.setClock(r.now.Add(time.Minute))
	granted(operate.RateLimit{Scope: handlerScope(), PerDay: 11, PerMinute: 12}, 0)
	r.setClock(r.now.Add(72 * time.Hour))
	r.Exec(`UPDATE rate_counters SET removed_at = removed_at - interval '3 days' WHERE module = ''`) // by the true clock, as triggers go by it
	granted(operate.RateLimit{Scope: handlerScope(), PerDay: 11}, 11)
	if n := rig.One[int](r.Rig, `SELECT count(*) FROM rate_counters`); n != 1 {
		t.Errorf("%d counters are left, of which one was used today", n)
	}
}

// TestLimitOfAnotherWindowLeavesRoom: what has run while only the day was limited holds no room of later minutes, and
// whoever asks for what may run gets an answer.
func TestLimitOfAnotherWindowLeavesRoom(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	r.Handle(done, rig.Quick())
	r.limit(operate.RateLimit{Scope: handlerScope(), PerDay: 100})
	r.Start(worker.Config{})
	r.emitTo(rig.Key.Name, 1)
	r.awaitOutcomes(1)
	r.Exec(`UPDATE rate_limits SET per_minute = 10`)
	r.Exec(`UPDATE rate_counters SET minute_at = date_bin('1 minute', clock_timestamp(), 'epoch') - interval '5 minutes', day_at = date_bin('1 day', clock_timestamp(), 'epoch')`)
	if room := rig.One[int](r.Rig, `SELECT events_v2_rate_room(canvas_id, module, name) FROM rate_limits`); room != 10 {
		t.Errorf("there is room for %d, want 10", room)
	}
}
