package emit

import (
	"math/rand/v2"
	"slices"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/rig"
)

func TestEmittedEventsHaveTheKeysOfTheirTask(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	canvases := make([]eventqueue.CanvasID, CanvasCount+1)
	for i := range canvases {
		canvases[i] = eventqueue.CanvasID{byte(i + 1)}
	}
	for _, f := range forms() {
		ordered := 0
		for range 200 {
			event := f.drawEvent(random, canvases, "t")
			job, err := task.Parse(event.Value)
			if err != nil {
				t.Fatal(err)
			}
			if event.OrderingKey != job.OrderingKey || event.UniqueKey != job.UniqueKey || (event.UniqueKey != "") != f.unique {
				t.Fatalf("%s emits %+v for %+v", f.name, event, job)
			}
			if event.OrderingKey != "" {
				ordered++
			}
		}
		if (ordered > 0) == (f.unique || f.keyless) {
			t.Errorf("%s: %d of 200 events have an ordering key", f.name, ordered)
		}
	}
}

// The workers have a handler for each typed event, and for each that it leads to.
func TestTypedEventsHaveTheHandlersOfTheChain(t *testing.T) {
	t.Parallel()
	bus, err := task.Chain(rig.New(t).Queue, nil)
	if err != nil {
		t.Fatal(err)
	}
	event, err := bus.NewEvent(eventqueue.CanvasID{1}, task.Task{Tag: "1-1", Do: task.Succeed})
	if err != nil || event.Handler() != task.Dispatch() || taskOf(event).Tag != "1-1" {
		t.Errorf("a typed event is for %s: %v", event.Handler(), err)
	}
	handlers := eventqueue.NewHandlers()
	if err := bus.Register(handlers); err != nil {
		t.Fatal(err)
	}
	for _, key := range append(task.Links(), task.Dispatch()) {
		if !slices.Contains(handlers.Set().Everywhere, key) {
			t.Errorf("no handler for %s", key)
		}
	}
}
