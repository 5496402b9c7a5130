package typed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"

	"eventsv2/eventqueue"
	"eventsv2/internal/handlingkey"
	"eventsv2/internal/invoke"
)

// keyOf returns the handling key of a typed event. It recovers a panic, which a struct that embeds a
// nil pointer may cause.
func keyOf(e Event) (key string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("its handling key: %w", err)
		}
	}()
	defer func() {
		if value := recover(); value != nil {
			err = &eventqueue.PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	key = e.EventType()
	if action := e.EventAction(); action != "" {
		key += "." + action
	}
	if err := handlingkey.Check(key); err != nil {
		return "", err
	}
	return key, nil
}

// dispatchKey returns the handler to which a typed event is emitted.
func dispatchKey(key string) eventqueue.HandlerKey {
	module, name := handlingkey.Split(key)
	return eventqueue.HandlerKey{Module: module, Name: name, Modifier: handlingkey.None}
}

// HandlingKey returns the handling key of a typed event, even while a handler of a parent key runs
// it. For an event that a Bus did not emit, the result has no meaning.
func HandlingKey(e eventqueue.Event) string {
	switch {
	case e.Modifier != handlingkey.None:
		return e.Modifier
	case e.Name == handlingkey.None:
		return e.Module
	default:
		return e.Module + "." + e.Name
	}
}

// typedHandler is a Handler for a function that On has added.
type typedHandler struct {
	name        string
	kind        *kind // the struct that it decodes, and so its key
	policy      *eventqueue.Policy
	synchronous bool
	strict      bool
	run         func(ctx context.Context, run *eventqueue.Run) error
}

// Handle implements Handler.
func (h *typedHandler) Handle(ctx context.Context, run *eventqueue.Run) error { return h.run(ctx, run) }

// CheckValue says why the handler could not read the value of an event; nil if it could. It does not run it.
// A type of the application's may panic over a value.
func (h *typedHandler) CheckValue(e *eventqueue.Event) (err error) {
	defer invoke.Recovered(&err)
	return concealed(e, h.kind.decode(e.Value, HandlingKey(*e), reflect.New(h.kind.is).Elem(), h.strict))
}

// at returns the key of this handler's own events, for events with a handling key.
func (h *typedHandler) at(key string) eventqueue.HandlerKey {
	return eventqueue.HandlerKey{Module: dispatchKey(key).Module, Name: h.name, Modifier: key}
}

func (b *Bus) add(h *typedHandler) error {
	if slices.ContainsFunc(b.handlers, func(other *typedHandler) bool { return other.name == h.name }) {
		return errors.New("the name is taken: each handler of a bus needs its own")
	}
	switch {
	case h.synchronous && h.policy != nil:
		return errors.New("a synchronous handler has no policy of its own: set Config.Dispatch")
	case h.synchronous:
		h.policy = &b.dispatch
	case h.policy == nil:
		h.policy = &eventqueue.Policy{}
	}
	if err := h.policy.Validate(); err != nil {
		return err
	}
	b.handlers = append(b.handlers, h)
	return nil
}

// Register adds all handlers of the bus to the handlers of a worker. Call it once, after the last On
// and Declare. It refuses an event whose struct lacks a field of a handler of its parents, has it
// with another JSON type, or may leave out what a Strict handler needs. It also refuses a handler with the same name as an action beside
// it. It refuses keys that handlers already has; only then may it have added others.
//
// An event RECORD.CREATE is one row for module RECORD, name CREATE, modifier _. For the handler
// mail it emits one for module RECORD, name mail, modifier RECORD.CREATE. So a pause of
// RECORD/CREATE holds back the events that were not yet dispatched, and a pause of RECORD/mail one
// handler.
func (b *Bus) Register(handlers *eventqueue.Handlers) error {
	switch {
	case handlers == nil:
		return errors.New("typed.Bus: Register: handlers must not be nil")
	case b.registered:
		return errors.New("typed.Bus: Register was called twice")
	}
	var dispatchers []*dispatcher
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(b.kinds)) {
		d, err := b.dispatcher(b.kinds[key])
		dispatchers, problems = append(dispatchers, d), append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("typed.Bus: %w", err)
	}
	b.registered = true
	for _, d := range dispatchers {
		problems = append(problems, handlers.Register(dispatchKey(d.kind.key), d, b.dispatch))
		// A synchronous handler, too: events may be left from a time when it was not synchronous.
		for _, h := range d.handlers {
			problems = append(problems, handlers.Register(h.at(d.kind.key), h, *h.policy))
		}
	}
	return errors.Join(problems...)
}

// dispatcher returns the dispatcher of an event, with all of its handlers.
func (b *Bus) dispatcher(k *kind) (*dispatcher, error) {
	d := &dispatcher{kind: k}
	beside := dispatchKey(k.key)
	for _, h := range b.handlers {
		if h.at(h.kind.key).Module == beside.Module && h.name == beside.Name {
			return nil, fmt.Errorf("handler %q is called like the action of the event %s: a pause could not distinguish them", h.name, k.key)
		}
	}
	for _, key := range handlingkey.Chain(k.key) {
		for _, h := range b.handlers {
			if h.kind.key != key {
				continue
			}
			if lack := h.kind.plans.lack(h.kind.is, k.plans, k.is, h.strict); lack != "" {
				return nil, fmt.Errorf("%s (%s) has no field %s, which handler %q reads into %s (%s)",
					k.is, k.key, lack, h.name, h.kind.is, key)
			}
			d.handlers = append(d.handlers, h)
			if !h.synchronous {
				d.emits = append(d.emits, h.at(k.key))
			}
		}
	}
	return d, nil
}

// dispatcher is the handler of one typed event. It runs the synchronous handlers, and then emits an
// event for each other handler in the transaction that completes the typed event.
type dispatcher struct {
	kind     *kind
	handlers []*typedHandler // parents first
	emits    []eventqueue.HandlerKey
}

// CheckValue says why the value does not fit the event's struct, or a synchronous handler's; nil if it does.
func (d *dispatcher) CheckValue(e *eventqueue.Event) (err error) {
	defer invoke.Recovered(&err)
	if err := d.kind.check(e.Value); err != nil {
		return concealed(e, err)
	}
	for _, h := range d.handlers {
		if err := h.CheckValue(e); err != nil {
			return fmt.Errorf("handler %s: %w", h.name, err)
		}
	}
	return nil
}

// Handle implements Handler.
func (d *dispatcher) Handle(ctx context.Context, run *eventqueue.Run) error {
	if err := d.kind.check(run.Value); err != nil {
		return eventqueue.Permanent(concealed(&run.Event, err))
	}
	within := &eventqueue.Run{Event: run.Event, Attempt: run.Attempt, ClaimID: run.ClaimID} // without a worker, so it cannot complete the event
	for _, h := range d.handlers {
		if !h.synchronous {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := invoke.Handler(ctx, h, within); err != nil { // a panic is an error, too, and names the handler
			return fmt.Errorf("synchronous handler %s: %w", h.name, err)
		}
	}
	if len(d.emits) == 0 {
		return nil
	}
	events := make([]eventqueue.NewEvent, len(d.emits))
	for i, at := range d.emits {
		events[i] = eventqueue.NewEvent{Canvas: run.Canvas, Module: at.Module, Name: at.Name, Modifier: at.Modifier, Value: run.Value}
	}
	return run.CompleteTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		_, err := tx.EmitHeirs(ctx, events...)
		return err
	})
}
