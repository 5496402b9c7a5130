package worker_test

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
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

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

// TestEventsOfAKeyRunInOrder has two workers run the events of three keys, some of which fail
// once: each key in its order, and never two of it at once.
func TestEventsOfAKeyRunInOrder(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	const keys, each = 3, 40
	groups := map[string]*ran{}
	for k := range keys {
		groups[strconv.Itoa(k)] = &ran{}
	}
	r.Handle(func(_ context.Context, run *eventqueue.Run) error {
		var value struct {
			Group string
			N     int
		}
		if err := json.Unmarshal(run.Value, &value); err != nil {
			return err
		}
		group := groups[value.Group]
		group.begin(fmt.Sprint(value.N))
		defer group.end()
		if value.N%7 == 0 && run.Retries == 0 {
			return errors.New("once")
		}
		return nil
	}, rig.Quick())
	r.Start(worker.Config{Concurrency: 40})
	r.Start(worker.Config{Concurrency: 4})
	for n := range each {
		var events []eventqueue.NewEvent
		for k := range keys {
			events = append(events, r.InOrder("line "+strconv.Itoa(k), fmt.Sprintf(`{"Group":"%d","N":%d}`, k, n)))
		}
		r.Emit(events...)
	}
	r.Outcomes.Await(t, machine.ExecutesToCompletion, keys*each)

	var want []string
	for n := range each {
		if n%7 == 0 {
			want = append(want, fmt.Sprint(n))
		}
		want = append(want, fmt.Sprint(n))
	}
	for k, group := range groups {
		if group.most != 1 || !slices.Equal(group.values, want) {
			t.Errorf("line %s: at most %d at once, in the order %v", k, group.most, group.values)
		}
	}
	if n := rig.One[int](r, `SELECT count(*) FROM event_groups`); n != 0 {
		t.Errorf("%d places are left in the groups", n)
	}
}

// TestNextEventOfAGroupNeedsNoNotification: events that are emitted together into one group
// have one notification, and the end of each has the next one tried at once. An emit whose answer
// comes late has a few more.
func TestNextEventOfAGroupNeedsNoNotification(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Handle(func(context.Context, *eventqueue.Run) error { return nil }, rig.Quick())
	const n = 50
	events := make([]eventqueue.NewEvent, n)
	for i := range events {
		events[i] = r.InOrder("a", `1`)
	}
	r.Emit(events...)
	r.Start(worker.Config{})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, n)
	if published := r.Notifier.Stats().Published; published > n/5 {
		t.Errorf("%d notifications for %d events of one line", published, n)
	}
}

// TestOrderHoldDecidesWhetherAFailureBlocks: whether an event that failed holds the next one back is its
// handler's choice.
func TestOrderHoldDecidesWhetherAFailureBlocks(t *testing.T) {
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
			r := rig.New(t)
			group := &ran{}
			second := make(chan struct{})
			policy := eventqueue.Policy{OrderHold: c.hold, Backoff: func(int) time.Duration {
				if c.want[1] == "2" {
					return 300 * time.Millisecond
				}
				return time.Millisecond
			}}
			r.Handle(func(_ context.Context, run *eventqueue.Run) error {
				group.begin(string(run.Value))
				defer group.end()
				if string(run.Value) == "2" {
					close(second)
				} else if run.Retries == 0 {
					return errors.New("once")
				}
				return nil
			}, policy)
			r.Emit(r.InOrder("a", `1`), r.InOrder("a", `2`))
			r.Start(worker.Config{})
			<-second
			r.Outcomes.Await(t, machine.ExecutesToCompletion, 2)
			if !slices.Equal(group.values, c.want) {
				t.Errorf("ran %v, want %v", group.values, c.want)
			}
		})
	}
}

// TestDelayedEventBlocksNoGroupBeforeItIsDue: an event with a delay does not hold the line
// before it is due.
func TestDelayedEventBlocksNoGroupBeforeItIsDue(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	group := &ran{}
	r.Handle(func(_ context.Context, run *eventqueue.Run) error {
		group.begin(string(run.Value))
		group.end()
		return nil
	}, rig.Quick())
	late := r.InOrder("a", `1`)
	late.Delay = time.Hour
	ids := r.Emit(late, r.InOrder("a", `2`))
	r.Start(worker.Config{})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
	r.Exec(`UPDATE events_v2 SET delay_until = clock_timestamp() WHERE id = $1`, ids[0])
	if err := r.Notifier.Publish(testenv.Context(t), []eventqueue.Notification{{Event: ids[0], Canvas: rig.Canvas}}); err != nil {
		t.Fatal(err)
	}
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 2)
	if want := []string{"2", "1"}; !slices.Equal(group.values, want) {
		t.Errorf("ran %v, want %v", group.values, want)
	}
}

// TestConcurrencyLimitsHoldPerCanvasAndHandler: so many of a canvas, and so many of a handler, run at once,
// whatever keys they have; and all of them once the limits are gone.
func TestConcurrencyLimitsHoldPerCanvasAndHandler(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	limits, err := operate.NewConcurrencyLimits(r.Store, r.Queue)
	if err != nil {
		t.Fatal(err)
	}
	other := eventqueue.HandlerKey{Module: "WORKER", Name: "other", Modifier: "_"}
	ofHandler := operate.ConcurrencyLimit{Canvas: rig.Canvas, Module: rig.Key.Module, Name: rig.Key.Name}
	for limit, most := range map[operate.ConcurrencyLimit]int{{Canvas: rig.Canvas}: 5, ofHandler: 2} {
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
	r.Handle(handle(one), rig.Quick())
	if err := r.Handlers.Register(other, handle(two), rig.Quick()); err != nil {
		t.Fatal(err)
	}
	var events []eventqueue.NewEvent
	for i := range 60 {
		e := r.Event(`1`)
		if i%3 == 0 {
			e.OrderingKey = strconv.Itoa(i % 4)
		}
		if i%2 == 0 {
			e.Name = other.Name
		}
		events = append(events, e)
	}
	r.Emit(events...)
	r.Start(worker.Config{})
	r.Start(worker.Config{})
	<-full
	r.Outcomes.Await(t, machine.NotItsTurn, 30) // of the 40 without a key, and who has come in between
	close(let)
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 50)
	list, err := limits.List(testenv.Context(t), rig.Canvas)
	if err != nil || len(list) != 2 || list[0] != (operate.ConcurrencyLimit{Canvas: rig.Canvas, Max: 5}) {
		t.Errorf("%v, %v", list, err)
	}
	for _, limit := range list {
		if was, err := limits.Remove(testenv.Context(t), limit); err != nil || !was {
			t.Errorf("remove the limit of %s: %v, %v", limit, was, err)
		}
	}
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 60)
	if all.most != 5 || one.most > 2 {
		t.Errorf("%d at once of a canvas with a limit of 5, %d of a handler with a limit of 2", all.most, one.most)
	}
}

// TestPausedHandlerBlocksNoGroup: its events had the places of the canvas' limit, and give
// them up to the events of another handler.
func TestPausedHandlerBlocksNoGroup(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	limits, err := operate.NewConcurrencyLimits(r.Store, r.Queue)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := operate.NewRules(r.Store, r.Queue)
	if err != nil {
		t.Fatal(err)
	}
	if err := limits.Set(ctx, operate.ConcurrencyLimit{Canvas: rig.Canvas, Max: 1}); err != nil {
		t.Fatal(err)
	}
	began, let := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.Handle(func(context.Context, *eventqueue.Run) error {
		once.Do(func() { close(began) })
		<-let
		return nil
	}, rig.Quick())
	other := r.Event(`2`)
	other.Name = "other"
	if err := r.Handlers.Register(other.Handler(), eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error { return nil }), rig.Quick()); err != nil {
		t.Fatal(err)
	}
	r.Emit(r.Event(`1`), r.Event(`1`), r.Event(`1`))
	r.Start(worker.Config{})
	<-began
	r.Emit(other)
	r.Outcomes.Await(t, machine.NotItsTurn, 3)
	scope := eventqueue.Scope{Canvas: rig.Canvas, Module: rig.Key.Module, Name: rig.Key.Name}
	if _, err := rules.Add(ctx, operate.PauseRule, scope); err != nil {
		t.Fatal(err)
	}
	close(let)
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 2)
	if n := rig.One[int](r, `SELECT count(*) FROM events_v2 WHERE name = 'other'`); n != 0 {
		t.Error("the event of the handler that is not paused has not run")
	}
	if _, _, err := rules.Lift(ctx, operate.PauseRule, scope); err != nil {
		t.Fatal(err)
	}
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 4)
}

// TestCompleteTxAdvancesTheGroup: the handler completes its event in its own
// transaction.
func TestCompleteTxAdvancesTheGroup(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Handle(func(ctx context.Context, run *eventqueue.Run) error {
		return run.CompleteTx(ctx, func(context.Context, *eventqueue.Tx) error { return nil })
	}, rig.Quick())
	r.Emit(r.InOrder("a", `1`), r.InOrder("a", `2`), r.InOrder("a", `3`))
	r.Start(worker.Config{})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 3)
}

// TestLostAdvancesAreRepaired: the current event of a group is deleted by hand, together
// with some waiting ones.
func TestLostAdvancesAreRepaired(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	ids := r.Emit(r.InOrder("a", `1`), r.InOrder("a", `2`), r.InOrder("a", `3`), r.InOrder("a", `4`))
	if turns, err := r.Store.Advance(ctx, nil, ids); err != nil || len(turns) != 1 || turns[0].ID != ids[0] {
		t.Fatalf("the turn is of %v, %v", turns, err)
	}
	r.Exec(`DELETE FROM events_v2 WHERE id = ANY ($1)`, []int64{int64(ids[0]), int64(ids[1])})
	r.Handle(func(context.Context, *eventqueue.Run) error { return nil }, rig.Quick())
	r.Notifier.Wipe()
	r.Start(worker.Config{})
	relay, err := maintenance.NewRelay(r.Store, r.Notifier, maintenance.RelayConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := relay.Pass(ctx); err != nil {
		t.Fatal(err)
	}
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 2)
	if n := rig.One[int](r, `SELECT count(*) FROM event_groups`); n != 0 {
		t.Errorf("%d places are left in the groups", n)
	}
}
