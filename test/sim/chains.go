package sim

import (
	"context"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/typed"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/oracle"
)

// record and recordMade are typed events; the handlers of the first get both. Their
// fields are those of payload: see there.
type record struct {
	Serial int           `json:"serial"`
	Depth  int           `json:"depth"`
	Delay  time.Duration `json:"delay"`
}

// EventType implements typed.Event.
func (record) EventType() string { return typedModule }

// EventAction implements typed.Event.
func (record) EventAction() string { return "" }

type recordMade struct {
	Serial int           `json:"serial"`
	Depth  int           `json:"depth"`
	Delay  time.Duration `json:"delay"`
	Text   string        `json:"text"`
}

// EventType implements typed.Event.
func (recordMade) EventType() string { return typedModule }

// EventAction implements typed.Event.
func (recordMade) EventAction() string { return "CREATE" }

// typedChildren are the handlers that an event's completion emits events for, by its name.
func typedChildren(name string) []eventqueue.HandlerKey {
	switch name {
	case "_":
		return []eventqueue.HandlerKey{{Module: typedModule, Name: "mail", Modifier: typedModule}}
	case "CREATE":
		key := typedModule + ".CREATE"
		return []eventqueue.HandlerKey{{Module: typedModule, Name: "mail", Modifier: key}, {Module: typedModule, Name: "index", Modifier: key}}
	default:
		return nil
	}
}

// family notes which event another one comes of, and which come of it: those of a chain
// carry one serial number.
func (w *world) family(r *oracle.Record) {
	if r.Handler.Module != typedModule {
		return
	}
	serial := serialOf(r.Value)
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Handler.Modifier == "_" {
		r.Children = typedChildren(r.Handler.Name)
		w.parents[serial] = r.Event
		return
	}
	r.Parent = w.parents[serial]
	r.Due = r.At // the delay in its value is its parent's
	w.faults["child of a typed event"]++
}

// drawTyped draws a typed event.
func (p *process) drawTyped(d dice, canvas eventqueue.CanvasID, serial int) eventqueue.NewEvent {
	var delay time.Duration
	if d.chance(0.2) {
		delay = d.between(time.Millisecond, time.Minute)
	}
	var t typed.Event = record{Serial: serial, Delay: delay}
	if d.chance(0.6) {
		t = recordMade{Serial: serial, Delay: delay, Text: "ä€😀"}
	}
	e, err := p.bus(nil, eventqueue.Policy{}).NewEvent(canvas, t)
	if err != nil {
		panic(err)
	}
	e.Delay = delay
	return e
}

// bus has the typed events and their handlers; with handlers it registers them there.
func (p *process) bus(handlers *eventqueue.Handlers, policy eventqueue.Policy) *typed.Bus {
	bus, err := typed.New(p.queue, typed.Config{Dispatch: policy})
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	must(err)
	own := typed.WithPolicy(policy)
	must(typed.On(bus, "mail", func(ctx context.Context, _ record, run *eventqueue.Run) error {
		return p.handle(ctx, run, policy.Timeout)
	}, own))
	must(typed.On(bus, "index", func(ctx context.Context, _ recordMade, run *eventqueue.Run) error {
		return p.handle(ctx, run, policy.Timeout)
	}, own))
	must(typed.On(bus, "audit", func(ctx context.Context, _ record, run *eventqueue.Run) error {
		return p.audit(ctx, run, policy.Timeout)
	}, typed.Synchronous()))
	must(typed.Declare[recordMade](bus))
	if handlers != nil {
		must(bus.Register(handlers))
	}
	return bus
}

// audit is the synchronous handler: it is called within the run of a typed event, before
// that emits its children. What becomes of them decides how a good run ends.
func (p *process) audit(ctx context.Context, run *eventqueue.Run, timeout time.Duration) error {
	pl := p.plan(run, timeout)
	pl.emit, pl.inTx = false, false
	return p.follow(ctx, run, timeout, pl, func(result oracle.Result) error {
		if result != oracle.OK {
			return p.mark(run, oracle.RunEnded, func() oracle.Result { return result })
		}
		key := fmt.Sprintf("%s#%d", run.ID, run.Attempt)
		return p.do(context.Background(), call{op: "audited", key: key}, func() (string, error) {
			p.w.audited[run.ID] = run.Attempt
			return "", nil
		})
	})
}

// failDispatch notes the end of a run of a typed event that failed though its handlers
// had not: its children could not be emitted. Whether it can be written is another matter.
func (w *world) failDispatch(p *process, end *worker.Completion) {
	if attempt, audited := w.audited[end.Event]; !audited || attempt != end.Attempt {
		return
	}
	if end.Label == machine.RetryAllowed || end.Label == machine.RetryTooMany {
		delete(w.audited, end.Event) // a write that was refused is tried again
		w.faults["children of a typed event could not be emitted"]++
		w.add(oracle.Record{Kind: oracle.RunEnded, Actor: p.name, Event: end.Event, Attempt: end.Attempt, Result: oracle.Failed})
	}
}
