package eventqueue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/test/testenv"
)

// inOrder is an event of a line.
func (r *rig) inOrder(orderingKey, value string) eventqueue.NewEvent {
	e := r.event(value)
	e.OrderingKey = orderingKey
	return e
}

// ran records which events run, and how many at once.
type ran struct {
	mu     sync.Mutex
	values []string
	now    int
	most   int
}

func (r *ran) begin(value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values = append(r.values, value)
	r.now++
	r.most = max(r.most, r.now)
}

func (r *ran) running() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *ran) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now--
}

// TestOrder has two workers run the events of three keys, some of which fail
// once: each key in its order, and never two of it at once.
func TestOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const keys, each = 3, 40
	lines := map[string]*ran{}
	for k := range keys {
		lines[strconv.Itoa(k)] = &ran{}
	}
	r.handle(func(_ context.Context, run *eventqueue.Run) error {
		var value struct {
			Line string
			N    int
		}
		if err := json.Unmarshal(run.Value, &value); err != nil {
			return err
		}
		line := lines[value.Line]
		line.begin(fmt.Sprint(value.N))
		defer line.end()
		if value.N%7 == 0 && run.Retries == 0 {
			return errors.New("once")
		}
		return nil
	}, quick())
	r.start(eventqueue.WorkerConfig{Concurrency: 40})
	r.start(eventqueue.WorkerConfig{Concurrency: 4})
	for n := range each {
		var events []eventqueue.NewEvent
		for k := range keys {
			events = append(events, r.inOrder("line "+strconv.Itoa(k), fmt.Sprintf(`{"Line":"%d","N":%d}`, k, n)))
		}
		r.emit(events...)
	}
	r.outcomes.await(t, machine.ExecutesToCompletion, keys*each)

	var want []string
	for n := range each {
		if n%7 == 0 {
			want = append(want, fmt.Sprint(n))
		}
		want = append(want, fmt.Sprint(n))
	}
	for k, line := range lines {
		if line.most != 1 || !slices.Equal(line.values, want) {
			t.Errorf("line %s: at most %d at once, in the order %v", k, line.most, line.values)
		}
	}
	if n := one[int](r, `SELECT count(*) FROM event_lines`); n != 0 {
		t.Errorf("%d places are left in the lines", n)
	}
}

// TestTheNextOfALineNeedsNoBell: events that are emitted together into one line
// have one notification, and the end of each has the next one tried at once.
func TestTheNextOfALineNeedsNoBell(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.handle(func(context.Context, *eventqueue.Run) error { return nil }, quick())
	const n = 50
	events := make([]eventqueue.NewEvent, n)
	for i := range events {
		events[i] = r.inOrder("a", `1`)
	}
	r.emit(events...)
	r.start(eventqueue.WorkerConfig{})
	r.outcomes.await(t, machine.ExecutesToCompletion, n)
	if published := r.notifier.Stats().Published; published != 1 {
		t.Errorf("%d notifications for %d events of one line", published, n)
	}
}

// TestHoldLine: whether an event that failed holds the next one back is its
// handler's choice.
func TestHoldLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		hold *time.Duration
		want []string
	}{
		{"in order", nil, []string{"1", "1", "2"}},
		{"for longer than the wait", new(time.Minute), []string{"1", "1", "2"}},
		{"not at all", new(time.Duration(0)), []string{"1", "2", "1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			line := &ran{}
			second := make(chan struct{})
			policy := eventqueue.Policy{HoldLine: c.hold, Backoff: func(int) time.Duration {
				if c.want[1] == "2" {
					return 300 * time.Millisecond
				}
				return time.Millisecond
			}}
			r.handle(func(_ context.Context, run *eventqueue.Run) error {
				line.begin(string(run.Value))
				defer line.end()
				if string(run.Value) == "2" {
					close(second)
				} else if run.Retries == 0 {
					return errors.New("once")
				}
				return nil
			}, policy)
			r.emit(r.inOrder("a", `1`), r.inOrder("a", `2`))
			r.start(eventqueue.WorkerConfig{})
			<-second
			r.outcomes.await(t, machine.ExecutesToCompletion, 2)
			if !slices.Equal(line.values, c.want) {
				t.Errorf("ran %v, want %v", line.values, c.want)
			}
		})
	}
}

// TestADelayTakesItsPlaceLater: an event with a delay does not hold the line
// before it is due.
func TestADelayTakesItsPlaceLater(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	line := &ran{}
	r.handle(func(_ context.Context, run *eventqueue.Run) error {
		line.begin(string(run.Value))
		line.end()
		return nil
	}, quick())
	late := r.inOrder("a", `1`)
	late.Delay = 300 * time.Millisecond
	r.emit(late, r.inOrder("a", `2`))
	r.start(eventqueue.WorkerConfig{})
	r.outcomes.await(t, machine.ExecutesToCompletion, 2)
	if want := []string{"2", "1"}; !slices.Equal(line.values, want) {
		t.Errorf("ran %v, want %v", line.values, want)
	}
}

// TestRunningLimits: so many of a canvas, and so many of a handler, run at once,
// whatever keys they have; and all of them once the limits are gone.
func TestRunningLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	limits, err := eventqueue.NewRunningLimits(r.store, r.queue)
	if err != nil {
		t.Fatal(err)
	}
	other := eventqueue.HandlerKey{Module: "WORKER", Name: "other", Modifier: "_"}
	ofHandler := eventqueue.RunningLimit{Canvas: canvas, Module: key.Module, Name: key.Name}
	for limit, most := range map[eventqueue.RunningLimit]int{{Canvas: canvas}: 5, ofHandler: 2} {
		limit.Max = most
		if err := limits.Set(testenv.Context(t), limit); err != nil {
			t.Fatal(err)
		}
	}
	all, one, two := &ran{}, &ran{}, &ran{}
	full, let := make(chan struct{}), make(chan struct{})
	var fifth sync.Once
	handle := func(own *ran) eventqueue.HandlerFunc {
		return func(context.Context, *eventqueue.Run) error {
			own.begin("")
			defer own.end()
			if all.begin(""); all.running() == 5 {
				fifth.Do(func() { close(full) })
			}
			defer all.end()
			<-let
			return nil
		}
	}
	r.handle(handle(one), quick())
	if err := r.handlers.Register(other, handle(two), quick()); err != nil {
		t.Fatal(err)
	}
	var events []eventqueue.NewEvent
	for i := range 60 {
		e := r.event(`1`)
		if i%3 == 0 {
			e.OrderingKey = strconv.Itoa(i % 4)
		}
		if i%2 == 0 {
			e.Name = other.Name
		}
		events = append(events, e)
	}
	r.emit(events...)
	r.start(eventqueue.WorkerConfig{})
	r.start(eventqueue.WorkerConfig{})
	<-full
	r.outcomes.await(t, machine.NotItsTurn, 30) // of the 40 without a key, and who has come in between
	close(let)
	r.outcomes.await(t, machine.ExecutesToCompletion, 50)
	list, err := limits.List(testenv.Context(t), canvas)
	if err != nil || len(list) != 2 || list[0] != (eventqueue.RunningLimit{Canvas: canvas, Max: 5}) {
		t.Errorf("%v, %v", list, err)
	}
	for _, limit := range list {
		if was, err := limits.Remove(testenv.Context(t), limit); err != nil || !was {
			t.Errorf("remove the limit of %s: %v, %v", limit, was, err)
		}
	}
	r.outcomes.await(t, machine.ExecutesToCompletion, 60)
	if all.most != 5 || one.most > 2 {
		t.Errorf("%d at once of a canvas with a limit of 5, %d of a handler with a limit of 2", all.most, one.most)
	}
}

// TestAPausedHandlerHoldsNoTurn: its events had the turns of the canvas, and give
// them to those of another handler.
func TestAPausedHandlerHoldsNoTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	limits, err := eventqueue.NewRunningLimits(r.store, r.queue)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := eventqueue.NewRules(r.store, r.queue)
	if err != nil {
		t.Fatal(err)
	}
	if err := limits.Set(ctx, eventqueue.RunningLimit{Canvas: canvas, Max: 1}); err != nil {
		t.Fatal(err)
	}
	began, let := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.handle(func(context.Context, *eventqueue.Run) error {
		once.Do(func() { close(began) })
		<-let
		return nil
	}, quick())
	other := r.event(`2`)
	other.Name = "other"
	if err := r.handlers.Register(other.Handler(), eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error { return nil }), quick()); err != nil {
		t.Fatal(err)
	}
	r.emit(r.event(`1`), r.event(`1`), r.event(`1`))
	r.start(eventqueue.WorkerConfig{})
	<-began
	r.emit(other)
	r.outcomes.await(t, machine.NotItsTurn, 3)
	scope := eventqueue.Scope{Canvas: canvas, Module: key.Module, Name: key.Name}
	if _, err := rules.Add(ctx, eventqueue.PauseRule, scope); err != nil {
		t.Fatal(err)
	}
	close(let)
	r.outcomes.await(t, machine.ExecutesToCompletion, 2)
	if n := one[int](r, `SELECT count(*) FROM events_v2 WHERE name = 'other'`); n != 0 {
		t.Error("the event of the handler that is not paused has not run")
	}
	if _, _, err := rules.Lift(ctx, eventqueue.PauseRule, scope); err != nil {
		t.Fatal(err)
	}
	r.outcomes.await(t, machine.ExecutesToCompletion, 4)
}

// TestATransactionGivesTheTurnOn: the handler completes its event in a transaction
// of its own.
func TestATransactionGivesTheTurnOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.handle(func(ctx context.Context, run *eventqueue.Run) error {
		return run.CompleteTx(ctx, func(context.Context, *eventqueue.Tx) error { return nil })
	}, quick())
	r.emit(r.inOrder("a", `1`), r.inOrder("a", `2`), r.inOrder("a", `3`))
	r.start(eventqueue.WorkerConfig{})
	r.outcomes.await(t, machine.ExecutesToCompletion, 3)
}

// TestLostTurnsAreMended: somebody deletes the event that has the turn, and with it
// some that wait.
func TestLostTurnsAreMended(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	ids := r.emit(r.inOrder("a", `1`), r.inOrder("a", `2`), r.inOrder("a", `3`), r.inOrder("a", `4`))
	if turns, err := r.store.TakeTurns(ctx, nil, ids, time.Minute); err != nil || len(turns) != 1 || turns[0].ID != ids[0] {
		t.Fatalf("the turn is of %v, %v", turns, err)
	}
	r.exec(`DELETE FROM events_v2 WHERE id = ANY ($1)`, []int64{int64(ids[0]), int64(ids[1])})
	r.handle(func(context.Context, *eventqueue.Run) error { return nil }, quick())
	r.notifier.Wipe()
	r.start(eventqueue.WorkerConfig{})
	relay, err := eventqueue.NewRelay(r.store, r.notifier, eventqueue.RelayConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := relay.Pass(ctx); err != nil {
		t.Fatal(err)
	}
	r.outcomes.await(t, machine.ExecutesToCompletion, 2)
	if n := one[int](r, `SELECT count(*) FROM event_lines`); n != 0 {
		t.Errorf("%d places are left in the lines", n)
	}
}
