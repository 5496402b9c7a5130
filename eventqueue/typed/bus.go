package typed

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/internal/article"
	"eventsv2/internal/handlingkey"
)

// Event is a struct that describes a change: EventType names the kind of thing that changed
// (RECORD), and EventAction the action (CREATE). Both methods have value receivers and return
// constants, whatever the fields hold. Together they make the handling key, RECORD.CREATE; either
// may contain dots. A struct for the handlers of a parent key, RECORD, has the action "".
//
// The struct decides how much an event carries: a light event has an id, with which its handler
// reads the rest; a heavy one has all that its handlers need.
type Event interface {
	EventType() string
	EventAction() string
}

// Config configures a Bus. The zero value is ready to use.
type Config struct {
	// Dispatch is the policy of the dispatch of an event: it runs the synchronous handlers,
	// one after the other, and emits one event for each other handler. Handlers that are not
	// synchronous have policies of their own.
	Dispatch eventqueue.Policy
}

// Bus is the registry of a program's typed events and their handlers. Declare events and add
// handlers first; after that it is safe for concurrent use. It holds no goroutine and no
// connection.
type Bus struct {
	queue    *eventqueue.Queue
	dispatch eventqueue.Policy
	kinds    map[string]*kind // by handling key
	byType   map[reflect.Type]*kind
	handlers []*typedHandler // in the order of On
	// registered means that Register was called. The worker would not know later events and
	// handlers.
	registered bool
}

// kind is one declared struct.
type kind struct {
	key   string
	is    reflect.Type
	plans plans
}

// New makes a Bus that emits through queue.
func New(queue *eventqueue.Queue, config Config) (*Bus, error) {
	if queue == nil {
		return nil, errors.New("typed.New: queue must not be nil")
	}
	if err := config.Dispatch.Validate(); err != nil {
		return nil, fmt.Errorf("typed.New: Dispatch: %w", err)
	}
	return &Bus{queue: queue, dispatch: config.Dispatch, kinds: map[string]*kind{}, byType: map[reflect.Type]*kind{}}, nil
}

// Declare adds an event to the bus, so that it can be emitted and the handlers of its parent keys
// handle it. On declares its event, too; a second declaration has no effect. Declare refuses a key
// with an empty or reserved part, a key of another struct, and a struct that cannot be encoded as
// JSON and decoded again.
func Declare[T Event](b *Bus) error {
	if _, err := declare[T](b); err != nil {
		return fmt.Errorf("typed.Declare[%s]: %w", reflect.TypeFor[T](), err)
	}
	return nil
}

func declare[T Event](b *Bus) (*kind, error) {
	if b == nil {
		return nil, errors.New("the bus is nil")
	}
	t := reflect.TypeFor[T]()
	if k := b.byType[t]; k != nil {
		return k, nil
	}
	if b.registered {
		return nil, errors.New("comes after Register: declare events and add handlers first")
	}
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("it is %s and must be a struct: give EventType and EventAction receivers that are no pointers", article.With(t.Kind()))
	}
	var zero T
	key, err := keyOf(zero)
	if err != nil {
		return nil, err
	}
	if k := b.kinds[key]; k != nil {
		return nil, fmt.Errorf("the key %s is that of %s already: one struct for each key", key, k.is)
	}
	k := &kind{key: key, is: t, plans: plans{}}
	if err := k.plans.addEvent(t); err != nil {
		return nil, err
	}
	b.kinds[key], b.byType[t] = k, k
	return k, nil
}

// HandlerOption is an option of a typed handler.
type HandlerOption func(*typedHandler)

// Synchronous makes a handler run within the dispatch of the event, instead of by an event of its
// own. If it fails, the whole dispatch is retried: the synchronous handlers before it run again,
// and no events have been emitted for the other handlers yet. Its run cannot be completed with
// CompleteTx.
func Synchronous() HandlerOption { return func(h *typedHandler) { h.synchronous = true } }

// Strict makes a handler refuse values in which a field is missing, or null where the type cannot be nil: the
// event ends as FAILED with a *DecodeError that names the field, without a retry. Fields that are pointers,
// or whose tags have omitempty or omitzero, may be missing. Without Strict, a field that is missing or null
// has its zero value, as with encoding/json. For a Synchronous handler it is the dispatch that ends.
func Strict() HandlerOption { return func(h *typedHandler) { h.strict = true } }

// WithPolicy sets the policy of one handler's events. It is not for synchronous handlers, which
// share Config.Dispatch.
func WithPolicy(p eventqueue.Policy) HandlerOption { return func(h *typedHandler) { h.policy = &p } }

// On adds a handler for T's key and all keys below it: a handler of RECORD also gets RECORD.CREATE,
// decoded into the struct of RECORD, which has fewer fields. [HandlingKey] returns the key of the
// event. Handlers of a parent key come before those of its child; handlers of one key are in the
// order of their On.
//
// Unless the handler is Synchronous, it gets an event of its own for each event, with its own
// retries, so that no other handler is repeated with it. name identifies those events in the
// database. It must be unique on the bus and must not change from version to version.
//
// f is called from many goroutines, with the contract of [eventqueue.Handler]. A value with a field of
// another type never reaches it: the event ends as FAILED with a *DecodeError. A field that is missing
// has its zero value; see [Strict].
func On[T Event](b *Bus, name string, f func(ctx context.Context, event T, run *eventqueue.Run) error, options ...HandlerOption) error {
	if err := on(b, name, f, options); err != nil {
		return fmt.Errorf("typed.On[%s] handler %q: %w", reflect.TypeFor[T](), name, err)
	}
	return nil
}

func on[T Event](b *Bus, name string, f func(context.Context, T, *eventqueue.Run) error, options []HandlerOption) error {
	if f == nil {
		return errors.New("the function is nil")
	}
	if err := handlingkey.CheckPart(name); err != nil {
		return fmt.Errorf("the name %w", err)
	}
	k, err := declare[T](b)
	if err != nil {
		return err
	}
	if b.registered {
		return errors.New("comes after Register: declare events and add handlers first")
	}
	h := &typedHandler{name: name, kind: k}
	h.run = func(ctx context.Context, run *eventqueue.Run) error {
		var event T
		if err := k.decode(run.Value, HandlingKey(run.Event), reflect.ValueOf(&event).Elem(), h.strict); err != nil {
			return eventqueue.Permanent(concealed(&run.Event, err))
		}
		return f(ctx, event, run)
	}
	for _, option := range options {
		option(h)
	}
	return b.add(h)
}

// With returns an event that is emitted with what set sets: a delay, an ordering key, a unique key with its mode and times,
// attributes, a parent. The canvas, the handler and the value stay those of the event.
func With(event Event, set func(*eventqueue.NewEvent)) Event { return with{event, set} }

type with struct {
	Event
	set func(*eventqueue.NewEvent)
}

// NewEvent encodes a typed event, for every form of emit. Set a delay on the result if it should
// have one, or use With. NewEvent refuses an event that was not declared.
func (b *Bus) NewEvent(canvas eventqueue.CanvasID, event Event) (eventqueue.NewEvent, error) {
	if w, ok := event.(with); ok {
		plain, err := b.NewEvent(canvas, w.Event)
		if err != nil {
			return plain, err
		}
		e := plain
		w.set(&e)
		e.Canvas, e.Module, e.Name, e.Modifier, e.Value = plain.Canvas, plain.Module, plain.Name, plain.Modifier, plain.Value
		return e, nil
	}
	v := reflect.ValueOf(event)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if !v.IsValid() {
		return eventqueue.NewEvent{}, errors.New("the typed event is nil")
	}
	k := b.byType[v.Type()]
	if k == nil {
		return eventqueue.NewEvent{}, fmt.Errorf("%s is not known to this bus: call typed.Declare for it", v.Type())
	}
	if key, err := keyOf(event); err != nil || key != k.key {
		return eventqueue.NewEvent{}, fmt.Errorf("%s has the key %q now, and was declared with %q: type and action must not depend on the fields", k.is, key, k.key)
	}
	// Through a pointer, so that fields can be encoded by methods with pointer receivers.
	p := reflect.New(k.is)
	p.Elem().Set(v)
	value, err := json.Marshal(p.Interface())
	if err != nil {
		return eventqueue.NewEvent{}, fmt.Errorf("write event %s as JSON: %w", k.key, err)
	}
	at := dispatchKey(k.key)
	return eventqueue.NewEvent{Canvas: canvas, Module: at.Module, Name: at.Name, Modifier: at.Modifier, Value: value}, nil
}

func (b *Bus) newEvents(canvas eventqueue.CanvasID, events []Event) ([]eventqueue.NewEvent, error) {
	encoded := make([]eventqueue.NewEvent, len(events))
	for i, event := range events {
		var err error
		if encoded[i], err = b.NewEvent(canvas, event); err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
	}
	return encoded, nil
}

// Emit is [eventqueue.Queue.EmitMany] for typed events: all are committed or none.
func (b *Bus) Emit(ctx context.Context, canvas eventqueue.CanvasID, events ...Event) ([]eventqueue.EventID, error) {
	encoded, err := b.newEvents(canvas, events)
	if err != nil {
		return nil, err
	}
	return b.queue.EmitMany(ctx, encoded)
}

// EmitIn adds typed events to a unit of work ([eventqueue.Queue.InTx], [eventqueue.Run.CompleteTx]):
// they exist, and are notified, once it has committed.
func (b *Bus) EmitIn(ctx context.Context, tx *eventqueue.Tx, canvas eventqueue.CanvasID, events ...Event) ([]eventqueue.EventID, error) {
	encoded, err := b.newEvents(canvas, events)
	if err != nil {
		return nil, err
	}
	return tx.Emit(ctx, encoded...)
}

// EmitTx is [eventqueue.Queue.EmitTx] for typed events.
func (b *Bus) EmitTx(ctx context.Context, tx pgx.Tx, canvas eventqueue.CanvasID, events ...Event) (*eventqueue.Pending, error) {
	encoded, err := b.newEvents(canvas, events)
	if err != nil {
		return nil, err
	}
	return b.queue.EmitTx(ctx, tx, encoded...)
}

// EmitSQL is [eventqueue.Queue.EmitSQL] for typed events.
func (b *Bus) EmitSQL(ctx context.Context, tx *sql.Tx, canvas eventqueue.CanvasID, events ...Event) (*eventqueue.Pending, error) {
	encoded, err := b.newEvents(canvas, events)
	if err != nil {
		return nil, err
	}
	return b.queue.EmitSQL(ctx, tx, encoded...)
}
