package worker_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// runsOf records the handler and the value of each run.
type runsOf struct {
	mu  sync.Mutex
	all []string
}

func (o *runsOf) handle(_ context.Context, run *eventqueue.Run) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, run.Name+string(run.Value))
	return nil
}

func (o *runsOf) count(prefix string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, run := range o.all {
		if strings.HasPrefix(run, prefix) {
			n++
		}
	}
	return n
}

// minute goes through the next minute in steps, has what is due notified, and has events emitted in it.
func (r *clockRig) minute(looks int, emit func(second int) (emitted int)) int {
	r.T.Helper()
	begins := r.now.Truncate(time.Minute).Add(time.Minute)
	for second := 0; second < 60; second += 5 {
		r.setClock(begins.Add(time.Duration(second)*time.Second + time.Millisecond))
		looks += emit(second)
		r.awaitOutcomes(looks)
		looks += r.notifyDue()
		r.awaitOutcomes(looks)
	}
	return looks
}

// TestRateLimitServesFirstComeFirst: events that wait for a limit run in their windows, though more come all the time than
// the limit lets through, and at the beginning of each window before those.
func TestRateLimitServesFirstComeFirst(t *testing.T) {
	t.Parallel()
	r, runs := newClockRig(t), runsOf{}
	r.Handle(runs.handle, rig.Quick())
	r.limit(operate.RateLimit{Scope: handlerScope(), PerMinute: 10})
	r.Start(worker.Config{})
	r.emitTo(rig.Key.Name, 50)
	looks := 50
	r.awaitOutcomes(looks)
	for minute := 2; minute <= 5; minute++ {
		looks = r.minute(looks, func(int) int {
			newer := make([]eventqueue.NewEvent, 5)
			for i := range newer {
				newer[i] = r.Event(`2`)
			}
			r.Emit(newer...)
			return len(newer)
		})
		if old, newer := runs.count(rig.Key.Name+"1"), runs.count(rig.Key.Name+"2"); old != 10*minute || newer != 0 {
			t.Fatalf("in %d minutes %d of those that came first have run, and %d newer ones; want %d and none", minute, old, newer, 10*minute)
		}
	}
}

// TestOverloadedRateLimitKeepsTheOrder of arrival, but for one window: with half as many events again as the limit lets through,
// none runs after one that came a window later.
func TestOverloadedRateLimitKeepsTheOrder(t *testing.T) {
	t.Parallel()
	r, runs := newClockRig(t), runsOf{}
	r.Handle(runs.handle, rig.Quick())
	const perMinute, minutes = 10, 8
	r.limit(operate.RateLimit{Scope: handlerScope(), PerMinute: perMinute})
	r.Start(worker.Config{})
	looks, emitted := 0, 0
	for range minutes {
		looks = r.minute(looks, func(second int) int {
			if second%20 != 0 {
				return 0
			}
			for range perMinute / 2 {
				r.Emit(r.Event(strconv.Itoa(emitted)))
				emitted++
			}
			return perMinute / 2
		})
	}
	last := 0
	for at, run := range runs.all {
		n, err := strconv.Atoi(strings.TrimPrefix(run, rig.Key.Name))
		if err != nil {
			t.Fatal(err)
		}
		if n < last-perMinute {
			t.Errorf("event %d is the %d. that ran, after event %d", n, at, last)
		}
		last = max(last, n)
	}
	if len(runs.all) != perMinute*minutes {
		t.Errorf("%d have run, want %d", len(runs.all), perMinute*minutes)
	}
}

// quiet is the name of the other handler of sharedCanvas.
const quiet = "quiet"

// sharedCanvas has a worker with two handlers, and a limit of 10 per minute for their canvas.
func sharedCanvas(t *testing.T) (*clockRig, *runsOf) {
	t.Helper()
	r, runs := newClockRig(t), &runsOf{}
	r.Handle(runs.handle, rig.Quick())
	other := rig.Key
	other.Name = quiet
	if err := r.Handlers.Register(other, eventqueue.HandlerFunc(runs.handle), rig.Quick()); err != nil {
		t.Fatal(err)
	}
	r.limit(operate.RateLimit{PerMinute: 10})
	r.Start(worker.Config{})
	return r, runs
}

// TestCanvasLimitServesEveryHandler: a handler with few events runs them in the next window or the one after it, which depends on
// what is claimed together, whatever another one of the canvas has waiting.
func TestCanvasLimitServesEveryHandler(t *testing.T) {
	t.Parallel()
	r, runs := sharedCanvas(t)
	r.emitTo(rig.Key.Name, 50)
	looks := 50
	r.awaitOutcomes(looks)
	for minute := range 6 {
		looks = r.minute(looks, func(second int) int {
			r.emitTo(rig.Key.Name, 5)
			if second != 35 {
				return 5
			}
			r.emitTo(quiet, 2)
			return 7
		})
		if n := runs.count(quiet); n > 2*minute || n < 2*(minute-1) {
			t.Errorf("after minute %d %d events of the quiet handler have run, want %d, or those of one minute fewer", minute, n, 2*minute)
		}
		if all := runs.count(""); all != 10*(minute+2) {
			t.Errorf("after minute %d %d events have run, want %d", minute, all, 10*(minute+2))
		}
	}
}

// TestSharedCanvasLimitKeepsTheOrderOfAHandler: what comes first runs first, also when another handler takes turns, so that some of it
// is put off again and again.
func TestSharedCanvasLimitKeepsTheOrderOfAHandler(t *testing.T) {
	t.Parallel()
	r, runs := sharedCanvas(t)
	emitted := 0
	emit := func(n int) int {
		for range n {
			r.Emit(r.Event(strconv.Itoa(emitted)))
			emitted++
		}
		return n
	}
	const first, shared, together = 50, 13, 5 // what comes together may be claimed in any order
	looks := emit(first)
	r.awaitOutcomes(looks)
	r.emitTo(quiet, shared)
	looks += shared
	r.awaitOutcomes(looks)
	for range (first+shared)/10 + 2 {
		looks = r.minute(looks, func(int) int { return emit(together) })
	}
	at := 0
	for _, run := range runs.all {
		value, loud := strings.CutPrefix(run, rig.Key.Name)
		if !loud {
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil {
			t.Fatal(err)
		}
		if n >= first && at < first-together || n < first && at >= first+together {
			t.Errorf("event %d is the %d. of its handler that ran", n, at)
		}
		at++
	}
	if len(runs.all) < first+shared {
		t.Errorf("%d have run, want %d", len(runs.all), first+shared)
	}
}

// TestCancelledEventsHoldNoPlaces of a limit: what comes later need not wait for their windows.
func TestCancelledEventsHoldNoPlaces(t *testing.T) {
	t.Parallel()
	r, runs := newClockRig(t), runsOf{}
	r.Handle(runs.handle, rig.Quick())
	r.limit(operate.RateLimit{Scope: handlerScope(), PerMinute: 10})
	r.Start(worker.Config{})
	r.emitTo(rig.Key.Name, 300)
	r.awaitOutcomes(300)
	r.Exec(`DELETE FROM events_v2`)
	wait, err := r.limits.Check(t.Context(), rig.Canvas, rig.Key)
	if next := r.now.Truncate(time.Minute).Add(time.Minute).Sub(r.now); wait != next || err != nil {
		t.Errorf("an event would wait for %s, %v; want %s, until the next minute", wait, err, next)
	}
	if all, err := r.limits.List(t.Context(), nil); err != nil || all[0].Waiting != 0 {
		t.Errorf("the list has %+v, %v", all, err)
	}
	r.emitTo(rig.Key.Name, 5)
	r.awaitOutcomes(305)
	if late := rig.One[time.Time](r.Rig, `SELECT max(delay_until) FROM events_v2`); late.After(r.now.Truncate(time.Minute).Add(2 * time.Minute)) {
		t.Errorf("an event waits until %s, at %s", late, r.now)
	}
	r.setClock(r.now.Truncate(time.Minute).Add(time.Minute + time.Second))
	r.emitTo(rig.Key.Name, 5)
	r.awaitOutcomes(310)
	if n := runs.count(rig.Key.Name); n != 15 {
		t.Errorf("%d have run, want 15", n)
	}
}
