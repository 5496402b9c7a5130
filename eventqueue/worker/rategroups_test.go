package worker_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// An event that a rate limit puts off stays the current event of its group: the order of
// its key is preserved, and the limit is not asked about the events behind it. With an
// OrderHold these go first.
func TestRateLimitPreservesOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		hold *time.Duration
		want []string
	}{
		{"the order is kept", nil, []string{`"limited 1"`, `"limited 2"`, `"free"`}},
		{"others go first", new(time.Duration(0)), []string{`"limited 1"`, `"free"`, `"limited 2"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newClockRig(t)
			var ran ran
			note := eventqueue.HandlerFunc(func(_ context.Context, run *eventqueue.Run) error {
				ran.begin(string(run.Value))
				defer ran.end()
				return nil
			})
			policy := rig.Quick()
			policy.OrderHold = c.hold
			free := rig.Key
			free.Name = "free"
			r.Handle(note, policy)
			if err := r.Handlers.Register(free, note, policy); err != nil {
				t.Fatal(err)
			}
			r.limit(operate.RateLimit{Scope: handlerScope(), PerMinute: 1})
			r.Start(worker.Config{})
			last := r.InOrder("k", `"free"`)
			last.Name = free.Name
			r.Emit(r.InOrder("k", `"limited 1"`), r.InOrder("k", `"limited 2"`), last)
			r.Outcomes.Await(t, machine.OverLimit, 1)
			if c.hold != nil {
				r.Outcomes.Await(t, machine.ExecutesToCompletion, 2)
			}
			r.nextMinute()
			r.Outcomes.Await(t, machine.ExecutesToCompletion, 3)
			if !slices.Equal(ran.values, c.want) {
				t.Errorf("they ran in the order %v, want %v", ran.values, c.want)
			}
		})
	}
}
