package grid_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/grid"
	"eventsv2/test/testenv"
)

// One grid instance runs one input at a time, in the order emitted, on however
// many workers; other instances do not wait for it. A limit of every ordering key
// does not change that.
func TestInputsOfOneInstanceRunOneAtATime(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{"without a limit": 0, "with 3 of every key": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			if limit > 0 {
				r.exec(`INSERT INTO concurrency_limits (canvas_id, group_key, max_running) VALUES ($1, 'keys', $2)`, [16]byte(canvas), limit)
			}
			runInstances(r)
		})
	}
}

func runInstances(r *rig) {
	r.Helper()
	t := r.T
	const inputs, instances = 20, 3
	var mu sync.Mutex
	order, running := map[string][]int{}, map[string]int{}
	together := make(chan struct{})
	var all sync.Once
	actions := grid.NewActions()
	type in struct {
		Event struct {
			Instance string
			Number   int
		} `grid:"event,event"`
	}
	if err := grid.Register(actions, "note", func(ctx context.Context, c grid.Call[in, grid.None, grid.None]) (string, error) {
		event := c.Inputs.Event
		mu.Lock()
		if running[event.Instance]++; running[event.Instance] > 1 {
			t.Errorf("two inputs of instance %s run at once", event.Instance)
		}
		order[event.Instance] = append(order[event.Instance], event.Number)
		if len(order) == instances {
			all.Do(func() { close(together) })
		}
		mu.Unlock()
		select {
		case <-together: // every instance runs its first input at the same time
		case <-ctx.Done():
		}
		mu.Lock()
		running[event.Instance]--
		mu.Unlock()
		return "", context.Cause(ctx)
	}); err != nil {
		t.Fatal(err)
	}
	g, err := grid.Parse("test", []byte("grid: g\nactions:\n  note: {use: note, inputs: {event: {origin: event}}}"), actions, nil)
	if err != nil {
		t.Fatal(err)
	}
	var events []eventqueue.NewEvent
	for number := range inputs {
		for instance := range instances {
			event, err := g.NewInput(canvas, "instance "+strconv.Itoa(instance), map[string]any{"Instance": fmt.Sprint(instance), "Number": number})
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, event)
		}
	}
	r.start(g, grid.Config{}, worker.Config{})
	r.start(g, grid.Config{}, worker.Config{})
	if _, err := r.queue.EmitMany(testenv.Context(t), events); err != nil {
		t.Fatal(err)
	}
	for range events {
		r.await(machine.ExecutesToCompletion)
	}
	for instance, numbers := range order {
		if len(numbers) != inputs || !slices.IsSorted(numbers) {
			t.Errorf("instance %s ran its inputs in the order %v", instance, numbers)
		}
	}
	r.completed()
}

// An input that fails for good lets the next one of its instance run, and so does
// one that does not fit; one that is tried again holds it until it has ended.
func TestFailedInputLetsTheNextOneRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var order []string
	once := 1
	r.on("a", func(_ context.Context, c call) (string, error) {
		order = append(order, c.Inputs.A)
		switch c.Inputs.A {
		case "never":
			return "", eventqueue.Permanent(errors.New("no use"))
		case "bad":
			return "", errors.New("no luck")
		default:
			return "", nil
		}
	})
	events := make([]eventqueue.NewEvent, 0, 5)
	for _, value := range []any{"never", 7, "bad", "good", "last"} {
		event, err := grid.NewInput(canvas, "g", "instance", value)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event)
	}
	r.start(r.definition("a a=event"), grid.Config{Policy: eventqueue.Policy{MaxRetries: &once}}, worker.Config{})
	if _, err := r.queue.EmitMany(testenv.Context(t), events); err != nil {
		t.Fatal(err)
	}
	for _, label := range []machine.Label{machine.FailedForGood, machine.FailedForGood, machine.RetryTooMany, machine.ExecutesToCompletion, machine.ExecutesToCompletion} {
		r.await(label)
	}
	if want := []string{"never", "bad", "bad", "good", "last"}; !slices.Equal(order, want) {
		t.Errorf("the inputs ran in the order %v, want %v", order, want)
	}
}
