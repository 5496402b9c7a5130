package typed_test

import (
	"context"
	"sync"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/typed"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// recordEvent is for the handlers of every RECORD; it is light.
type recordEvent struct {
	ID string `json:"id"`
}

func (recordEvent) EventType() string   { return "RECORD" }
func (recordEvent) EventAction() string { return "" }

// recordCreated is heavy.
type recordCreated struct {
	recordEvent
	Title  string            `json:"title"`
	Labels map[string]string `json:"labels"`
}

func (recordCreated) EventAction() string { return "CREATE" }

// fileEvent is for the handlers of the files of a record.
type fileEvent struct{ recordEvent }

func (fileEvent) EventAction() string { return "FILE" }

type fileAdded struct {
	fileEvent
	Name string `json:"name"`
}

func (fileAdded) EventAction() string { return "FILE.ADD" }

// typedRig is a rig with a bus, and the calls of its handlers.
type typedRig struct {
	*rig.Rig
	bus   *typed.Bus
	mu    sync.Mutex
	calls []string
}

func newTypedRig(t *testing.T) *typedRig {
	t.Helper()
	r := &typedRig{Rig: rig.New(t)}
	var err error
	r.bus, err = typed.New(r.Queue, typed.Config{Dispatch: rig.Quick()})
	r.ok(err)
	return r
}

func (r *typedRig) ok(err error) {
	r.T.Helper()
	if err != nil {
		r.T.Fatal(err)
	}
}

func (r *typedRig) called(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, what)
}

// count is how often a call was noted.
func (r *typedRig) count(what string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if c == what {
			n++
		}
	}
	return n
}

// run registers the bus and starts a worker.
func (r *typedRig) run() (stop func()) {
	r.T.Helper()
	r.ok(r.bus.Register(r.Handlers))
	return r.Start(worker.Config{RetainHistory: true})
}

func (r *typedRig) emitTyped(events ...typed.Event) {
	r.T.Helper()
	_, err := r.bus.Emit(testenv.Context(r.T), rig.Canvas, events...)
	r.ok(err)
}

// note adds a handler that notes its name, the key and the id.
func note[T typed.Event](r *typedRig, name string, id func(T) string, options ...typed.HandlerOption) {
	r.T.Helper()
	r.ok(typed.On(r.bus, name, func(_ context.Context, e T, run *eventqueue.Run) error {
		r.called(name + " " + typed.HandlingKey(run.Event) + " " + id(e))
		return nil
	}, options...))
}
