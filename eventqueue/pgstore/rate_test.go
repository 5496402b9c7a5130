package pgstore_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

func (r *rig) setLimit(scope eventqueue.Scope, perMinute, perDay int) {
	r.t.Helper()
	limit := operate.RateLimit{Scope: scope, PerMinute: perMinute, PerDay: perDay, Mode: ratelimit.Exact}
	if _, err := r.store.SetRateLimit(testenv.Context(r.t), limit); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) take(asks ...worker.RateAsk) []ratelimit.Answer {
	r.t.Helper()
	answers, err := r.store.TakeRate(testenv.Context(r.t), asks)
	if err != nil {
		r.t.Fatal(err)
	}
	return answers
}

func ask(scope eventqueue.Scope, want int) worker.RateAsk {
	return worker.RateAsk{Scope: scope, Want: want}
}

func onCanvas(canvas eventqueue.CanvasID) eventqueue.Scope { return eventqueue.Scope{Canvas: canvas} }

func named(name string) eventqueue.Scope {
	return eventqueue.Scope{Canvas: canvas, Module: key.Module, Name: name}
}

// TestConcurrentTakesStayWithinTheLimit, of a day, in which nothing begins anew.
func TestConcurrentTakesStayWithinTheLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.setLimit(onCanvas(canvas), 0, 100)
	r.setLimit(named("greet"), 0, 60)
	var mu sync.Mutex
	granted := map[string]int{}
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			for asks := []worker.RateAsk{ask(named("greet"), 7), ask(named("other"), 4)}; len(asks) > 0; {
				answers, err := r.store.TakeRate(testenv.Context(t), asks)
				if err != nil {
					t.Error(err)
					return
				}
				var again []worker.RateAsk // whoever had to wait too long asks again, as a worker does
				mu.Lock()
				for i, a := range answers {
					if a.Busy {
						again = append(again, asks[i])
					}
					granted[asks[i].Name] += a.Granted
				}
				mu.Unlock()
				asks = again
			}
		})
	}
	wait.Wait()
	if granted["greet"]+granted["other"] != 100 || granted["greet"] > 60 {
		t.Errorf("granted %v, want 100 in all, and 60 to greet at most", granted)
	}
	if n := one[int](r, `SELECT day_count FROM rate_counters WHERE module = ''`); n != 100 {
		t.Errorf("%d are counted on the canvas", n)
	}
	if n := one[int](r, `SELECT day_count FROM rate_counters WHERE module <> ''`); n != granted["greet"] {
		t.Errorf("%d are counted, and %d granted", n, granted["greet"])
	}
}

// TestTakeThatWaitedCountsOnTopOfTheOther, whether another take has counted or
// was rolled back.
func TestTakeThatWaitedCountsOnTopOfTheOther(t *testing.T) {
	t.Parallel()
	inPlans(t, func(r *rig) {
		r.setLimit(named("greet"), 0, 20)
		used := r.take(ask(named("greet"), 1))[0].Granted
		for _, c := range []struct {
			end     string
			others  int
			granted int
		}{
			{`ROLLBACK`, 18, 7},
			{`COMMIT`, 10, 2},
		} {
			first := r.begin()
			first.exec(`UPDATE rate_counters SET day_count = day_count + $1`, c.others)
			second := beside(r, func(ctx context.Context) ([]ratelimit.Answer, error) {
				return r.store.TakeRate(ctx, []worker.RateAsk{ask(named("greet"), 7)})
			})
			first.endWhenWaitedFor(c.end)
			if c.end == `COMMIT` {
				used += c.others
			}
			used += c.granted
			if a := (<-second)[0]; a.Busy || a.Granted != c.granted || a.Handler.DayUsed != int64(used) {
				r.t.Errorf("after a %s: %+v %+v, want %d granted and %d used", c.end, a, a.Handler, c.granted, used)
			}
			if n := one[int](r, `SELECT day_count FROM rate_counters`); n != used {
				r.t.Errorf("after a %s %d are counted, want %d", c.end, n, used)
			}
		}
	})
}

// TestRefusedTakeIsCountedByNeitherLimit, whichever of the two it is.
func TestRefusedTakeIsCountedByNeitherLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.setLimit(onCanvas(canvas), 0, 5)
	r.setLimit(named("greet"), 0, 3)
	a := r.take(ask(named("greet"), 4))[0]
	if a.Granted != 3 || a.Handler.Refused != 1 || a.Canvas.Refused != 0 || a.Canvas.DayUsed != 3 {
		t.Errorf("%+v: %+v %+v", a, a.Canvas, a.Handler)
	}
	r.exec(`UPDATE rate_limits SET per_day = 10 WHERE module <> ''`)
	a = r.take(ask(named("greet"), 4))[0]
	if a.Granted != 2 || a.Handler.Refused != 0 || a.Canvas.Refused != 2 || a.Handler.DayUsed != 5 {
		t.Errorf("%+v: %+v %+v", a, a.Canvas, a.Handler)
	}
	if free := r.take(ask(eventqueue.Scope{Canvas: another, Module: key.Module, Name: key.Name}, 9))[0]; free.Granted != 9 || free.Canvas != nil {
		t.Errorf("another canvas: %+v", free)
	}
}

// TestOvershootIsSubtractedFromTheNextWindow to the windows after it, until they have had room for it all.
func TestOvershootIsSubtractedFromTheNextWindow(t *testing.T) {
	t.Parallel()
	r := newRigWithClock(t, 0)
	r.setLimit(named("greet"), 10, 0)
	now := r.now()
	begins := now.Truncate(time.Minute).Add(time.Minute + time.Second).Sub(now) // and is not over soon
	for _, c := range []struct {
		minute, ran, want int
		granted, used     int
	}{
		{0, 45, 0, 0, 45},
		{1, 0, 3, 0, 35},
		{3, 0, 3, 0, 15}, // nobody has looked in the second
		{4, 0, 8, 5, 10},
		{5, 0, 8, 8, 8},
	} {
		r.setClock(begins + time.Duration(c.minute)*time.Minute)
		a := r.take(worker.RateAsk{Scope: named("greet"), Ran: c.ran, Want: c.want})[0]
		if a.Granted != c.granted || a.Handler.MinuteUsed != int64(c.used) {
			t.Errorf("minute %d: %d granted and %d used, want %d and %d", c.minute, a.Granted, a.Handler.MinuteUsed, c.granted, c.used)
		}
	}
}

// TestConcurrentTakesDoNotDeadlock, in whatever order they name them: one that waits
// for the first of its counters has locked none of the others.
func TestConcurrentTakesDoNotDeadlock(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var asks []worker.RateAsk
	for i := range 8 {
		scope := named(fmt.Sprint("handler_", i))
		r.setLimit(scope, 1000, 0)
		asks = append([]worker.RateAsk{ask(scope, 1)}, asks...)
	}
	ctx := testenv.Context(t)
	for range 5 {
		err := pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT FROM rate_counters WHERE name = 'handler_0' FOR UPDATE`); err != nil {
				return err
			}
			taken := make(chan struct{})
			go func() {
				defer close(taken)
				if _, err := r.store.TakeRate(ctx, asks); err != nil {
					t.Errorf("take: %v", err)
				}
			}()
			testenv.Eventually(t, "the take waits, or has ended", func() bool {
				select {
				case <-taken:
					return true
				default:
					return r.waits(1)
				}
			})
			free := one[int](r, `SELECT count(*) FROM (SELECT FROM rate_counters WHERE name <> 'handler_0' FOR UPDATE SKIP LOCKED) AS free`)
			if r.waits(1) && free != 7 { // it has waited all the time
				t.Errorf("the take waits for its first counter, and holds %d others", 7-free)
			}
			<-taken
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestLockedCounterDelaysNoOther limit (I15).
func TestLockedCounterDelaysNoOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.setLimit(named("greet"), 10, 0)
	r.setLimit(named("other"), 10, 0)
	ctx := testenv.Context(t)
	err := pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT FROM rate_counters WHERE name = 'greet' FOR UPDATE`); err != nil {
			return err
		}
		answers := r.take(ask(named("greet"), 3), ask(named("other"), 3))
		if !answers[0].Busy || answers[0].Granted != 0 || answers[1].Busy || answers[1].Granted != 3 {
			t.Errorf("%+v", answers)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if a := r.take(ask(named("greet"), 3))[0]; a.Busy || a.Granted != 3 || a.Handler.MinuteUsed != 3 {
		t.Errorf("%+v", a)
	}
}

// TestClaimReportsRateLimitedEvents, and whether one of the limits is exact.
func TestClaimReportsRateLimitedEvents(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits []eventqueue.Scope
		want   bool
	}{
		"none":                   {nil, false},
		"of the handler":         {[]eventqueue.Scope{scope}, true},
		"of the canvas":          {[]eventqueue.Scope{onCanvas(canvas)}, true},
		"of another handler":     {[]eventqueue.Scope{named("other")}, false},
		"of another canvas":      {[]eventqueue.Scope{onCanvas(another), {Canvas: another, Module: key.Module, Name: key.Name}}, false},
		"both, and of a third":   {[]eventqueue.Scope{scope, onCanvas(canvas), onCanvas(another)}, true},
		"the name, not the rest": {[]eventqueue.Scope{{Canvas: canvas, Module: "OTHER", Name: key.Name}}, false},
	} {
		r := newRig(t)
		for _, l := range c.limits {
			r.setLimit(l, 1, 1)
		}
		id := r.insert(event())[0]
		if f := r.look(id)[id]; f.Limited != c.want || f.Exact != c.want || !f.Facts.Claimed {
			t.Errorf("a limit %s: %+v", name, f)
		}
		if _, err := r.pool.Exec(testenv.Context(t), `UPDATE rate_limits SET mode = 'approximate' WHERE module <> ''`); err != nil {
			t.Fatal(err)
		}
		id = r.insert(event())[0]
		if f := r.look(id)[id]; f.Limited != c.want || f.Exact != slices.Contains(c.limits, onCanvas(canvas)) {
			t.Errorf("an approximate limit %s: %+v", name, f)
		}
	}
}

// TestOnlyRateLimitedEventsAreReleased, and only until the next claim.
func TestOnlyRateLimitedEventsAreReleased(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	release := func(scope eventqueue.Scope) (n int) {
		t.Helper()
		for after := (operate.RatePlace{}); ; {
			due, next, err := r.store.TakeLimited(testenv.Context(t), scope, after, 2)
			if err != nil {
				t.Fatal(err)
			}
			if n += len(due); next == (operate.RatePlace{}) {
				return n
			}
			after = next
		}
	}
	off, snoozed, foreign := event(), event(), event()
	foreign.Canvas = another
	ids := r.insert(off, snoozed, foreign, off, off)
	for i, id := range ids {
		label := machine.OverLimit
		if i == 1 {
			label = machine.Snoozed
		}
		r.complete(r.claim(id), label, time.Hour, false)
	}
	if n := release(named("other")); n != 0 {
		t.Errorf("%d of another handler", n)
	}
	if n := release(scope); n != 3 {
		t.Errorf("%d of 3 are released", n)
	}
	if n := release(onCanvas(canvas)); n != 0 {
		t.Errorf("%d once more", n)
	}
	r.complete(r.claim(ids[0]), machine.RetryAllowed, time.Hour, false)
	r.complete(r.claim(ids[3]), machine.OverLimit, time.Hour, false)
	if n := release(onCanvas(canvas)); n != 1 {
		t.Errorf("%d are released; one was put off, and one waits for its retry", n)
	}
	if n := one[int](r, `SELECT count(*) FROM events_v2 WHERE delay_until > clock_timestamp() AND notified_at IS NULL`); n != 3 {
		t.Errorf("%d still wait, want the snoozed one, that of another canvas and the retry", n)
	}
}

// TestReleaseWaitsForAConcurrentRefusal, for a moment: otherwise it would neither see
// the event put off, nor tell the end that the limit is another by now.
func TestReleaseWaitsForAConcurrentRefusal(t *testing.T) {
	t.Parallel()
	inPlans(t, func(r *rig) {
		id := r.insert(event())[0]
		end := worker.Completion{Claim: r.claim(id), Label: machine.OverLimit, Delay: time.Hour}
		o := r.begin()
		if written, err := r.store.Complete(testenv.Context(r.t), o.conn, []worker.Completion{end}, false); err != nil || len(written.Done) != 1 {
			r.t.Fatalf("%+v, %v", written, err)
		}
		released := beside(r, func(ctx context.Context) (int, error) {
			due, _, err := r.store.TakeLimited(ctx, scope, operate.RatePlace{}, 10)
			return len(due), err
		})
		o.endWhenWaitedFor(`COMMIT`)
		if n := <-released; n != 1 {
			r.t.Errorf("%d of 1 are released", n)
		}
	})
}

// TestReleaseWaitIsBounded for a locked row (I15), and releases the others.
func TestReleaseWaitIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.insert(event(), event())
	for _, id := range ids {
		r.complete(r.claim(id), machine.OverLimit, time.Hour, false)
	}
	o := r.begin()
	o.lock(ids[0])
	due, _, err := r.store.TakeLimited(testenv.Context(t), scope, operate.RatePlace{}, 10)
	if err != nil || len(due) != 1 || due[0].Event != ids[1] {
		t.Errorf("%+v, %v", due, err)
	}
	o.end(`ROLLBACK`)
}

// TestCheckCountsNothing and locks nothing.
func TestCheckCountsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.setLimit(named("greet"), 0, 1)
	ctx := testenv.Context(t)
	limits, err := operate.NewRateLimits(r.store, r.queue(memnotify.New(memnotify.Config{})))
	if err != nil {
		t.Fatal(err)
	}
	err = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT FROM rate_counters FOR UPDATE`); err != nil {
			return err
		}
		for range 3 {
			if wait, err := limits.Check(ctx, canvas, key); wait != 0 || err != nil {
				t.Errorf("wait %s, %v", wait, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if a := r.take(ask(named("greet"), 1))[0]; a.Granted != 1 {
		t.Errorf("%+v", a)
	}
	if wait, err := limits.Check(ctx, canvas, key); wait <= 0 || wait > 24*time.Hour || err != nil {
		t.Errorf("wait %s, %v", wait, err)
	}
}
