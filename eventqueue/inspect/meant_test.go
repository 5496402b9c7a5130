package inspect

import (
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

func TestDidYouMean(t *testing.T) {
	t.Parallel()
	key := func(module, name, modifier string) eventqueue.HandlerKey {
		return eventqueue.HandlerKey{Module: module, Name: name, Modifier: modifier}
	}
	acme, other := eventqueue.CanvasID{1}, eventqueue.CanvasID{2}
	workers := []Worker{
		{State: WorkerLive, Handlers: eventqueue.HandlerSet{
			Everywhere: []eventqueue.HandlerKey{key("WORKER", "order_placed", "_"), key("WORKER", "order_paid", "_"), key("WORKER", "order_paid", "euro"), key("WORKER", "x\x1by_long", "_")},
			OnCanvas:   []eventqueue.CanvasHandler{{Canvas: acme, Key: key("WORKER", "greetings", "_")}}}},
		{State: WorkerDead, Handlers: eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{key("WORKER", "shipping", "_")}}},
	}
	for _, c := range []struct {
		canvas eventqueue.CanvasID
		asked  eventqueue.HandlerKey
		want   string
	}{
		{acme, key("WORKER", "order_placd", "_"), "did you mean order_placed?"},
		{acme, key("WORKER", "order_placed", "_"), ""},
		{acme, key("WORKER", "order_placd", ""), "did you mean order_placed?"},
		{acme, key("WORKER", "order_placed", ""), ""},
		{acme, key("WORKER", "order_pajd", "_"), "did you mean order_paid?"}, // and not order_placed, with more mistakes
		{acme, key("worker", "order_placed", "_"), "did you mean WORKER/order_placed/_?"},
		{acme, key("WORKERS", "order_place", "_"), "did you mean WORKER/order_placed/_?"},
		{acme, key("WORKER", "order_paid", "euros"), "did you mean WORKER/order_paid/euro?"},
		{acme, key("WORKER", "refund", "_"), ""},
		{acme, key("WORKER", "shippping", "_"), ""}, // of a worker that is dead
		{acme, key("WORKER", "greeting", "_"), "did you mean greetings?"},
		{other, key("WORKER", "greeting", "_"), ""},
		{acme, key("WORKER", "xy_long", "_"), `did you mean "x\x1by_long"?`},
	} {
		if got := DidYouMean(c.asked, c.canvas, workers); got != c.want {
			t.Errorf("%s on %s: %q, want %q", c.asked, c.canvas, got, c.want)
		}
	}
	workers[0].Unreadable = true // it may have the handler
	if got := DidYouMean(key("WORKER", "order_placd", "_"), acme, workers); got != "" {
		t.Errorf("a worker may have the handler: %q", got)
	}
}

// An event whose handler no worker has is explained with the handler that may have been meant.
func TestExplainAsksWhichHandlerWasMeant(t *testing.T) {
	t.Parallel()
	f := free()
	f.live, f.knowing = 0, 0
	f.countWorkers([]Worker{{State: WorkerLive, Handlers: eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{{Module: "WORKER", Name: "great", Modifier: "_"}}}}})
	f.reasons()[0].has(t, machine.HandlerUnknown, "deploy a version that has it. Or did you mean great?")
}
