package cronchecker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
)

// TestMiddlewareStopsNoOtherDefinition than those whose events it refuses, in whatever way (I15). They are named in the log, and
// emit all of their slots when they can.
func TestMiddlewareStopsNoOtherDefinition(t *testing.T) {
	t.Parallel()
	refuse := func(err error) func([]eventqueue.NewEvent, int) ([]eventqueue.NewEvent, error) {
		return func([]eventqueue.NewEvent, int) ([]eventqueue.NewEvent, error) { return nil, err }
	}
	for name, bad := range map[string]func(events []eventqueue.NewEvent, i int) ([]eventqueue.NewEvent, error){
		"an error":             refuse(errors.New("retired")),
		"an invalid event":     refuse(&eventqueue.InvalidError{Field: "name", Problem: "is retired"}),
		"an outage of its own": refuse(context.DeadlineExceeded),
		"what is not valid": func(events []eventqueue.NewEvent, i int) ([]eventqueue.NewEvent, error) {
			events[i].Attributes["a"] = strings.Repeat("x", 1<<20)
			return events, nil
		},
		"leaving it out": func(events []eventqueue.NewEvent, i int) ([]eventqueue.NewEvent, error) {
			return slices.Delete(events, i, i+1), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			refuses := true
			store := r.store(func(ctx context.Context, events []eventqueue.NewEvent, next eventqueue.EmitFunc) ([]eventqueue.Emitted, error) {
				if i := slices.IndexFunc(events, func(e eventqueue.NewEvent) bool { return strings.HasPrefix(e.Name, "fax") }); i >= 0 && refuses {
					changed, err := bad(events, i)
					if err != nil {
						return nil, err
					}
					events = changed
				}
				return next(ctx, events)
			})
			core, logs := observer.New(zap.ErrorLevel)
			r.checker = newChecker(t, store, Config{Logger: zap.New(core)})
			for _, name := range []string{"fax 1", "fax 2", "good 1", "fax 3", "good 2"} {
				r.add(canvasA, name, "every hour", MissedAll, 10*time.Hour)
			}
			named := func() (names []string) {
				for _, line := range logs.TakeAll() {
					names = append(names, line.ContextMap()[logName].(string))
				}
				slices.Sort(names)
				return names
			}
			if result := r.check(); result.Emitted != 20 || result.Broken != 3 || result.More {
				t.Errorf("beside the refused definitions: %+v", result)
			}
			if names := named(); !slices.Equal(names, []string{"fax 1", "fax 2", "fax 3"}) {
				t.Errorf("the log names %v", names)
			}
			// Nothing else is due: that is no failure of the pass, after which others would be late.
			if result := r.check(); result.Emitted != 0 || result.Broken != 3 || len(named()) != 3 {
				t.Errorf("the refused definitions alone: %+v", result)
			}
			refuses = false
			if result := r.check(); result.Emitted != 30 || result.Broken != 0 {
				t.Errorf("when nothing is refused any more: %+v", result)
			}
		})
	}
}
