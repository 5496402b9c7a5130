package service

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/batch"
	"eventsv2/eventqueue/typed"
)

// Register makes h the handler of a key on every canvas that has none of its own, as
// [eventqueue.Handlers.Register] does. A key without a module or a modifier has those of
// Config.Queue. Call it before Run; later it is an error.
func (s *Service) Register(key eventqueue.HandlerKey, h eventqueue.Handler, policy eventqueue.Policy) error {
	if err := s.mayRegister(s.filled(key).String()); err != nil {
		return err
	}
	return s.handlers.Register(s.filled(key), h, policy)
}

// RegisterOn is Register for one canvas.
func (s *Service) RegisterOn(canvas eventqueue.CanvasID, key eventqueue.HandlerKey, h eventqueue.Handler, policy eventqueue.Policy) error {
	if err := s.mayRegister(s.filled(key).String() + " on " + canvas.String()); err != nil {
		return err
	}
	return s.handlers.RegisterOn(canvas, s.filled(key), h, policy)
}

// mayRegister refuses a handler that the worker would not run.
func (s *Service) mayRegister(name string) error {
	if s.complete.Load() {
		return fmt.Errorf("service.Service: register the handler %s before Run: a Service that runs takes no more handlers", name)
	}
	return nil
}

func (s *Service) filled(key eventqueue.HandlerKey) eventqueue.HandlerKey {
	return eventqueue.HandlerKey{Module: cmp.Or(key.Module, s.config.Queue.Module), Name: key.Name,
		Modifier: cmp.Or(key.Modifier, s.config.Queue.Modifier)}
}

// On adds a handler of the typed event T, and of all events below its key, as
// [typed.On] does. name identifies its events in the database, so it stays as it is from
// version to version. Call it before Run; later it is an error.
func On[T typed.Event](s *Service, name string, f func(ctx context.Context, event T, run *eventqueue.Run) error, options ...typed.HandlerOption) error {
	if err := s.mayRegister(name); err != nil {
		return err
	}
	return typed.On(s.bus, name, f, options...)
}

// OnBatch is On for a handler that gets up to size events at once, of which the first has waited no longer than wait for the others; see
// package batch. Each event has its own retries, limits and end.
func OnBatch[T typed.Event](s *Service, name string, size int, wait time.Duration, f batch.Func[T], options ...typed.HandlerOption) error {
	together, err := batch.New(size, wait, f)
	if err != nil {
		return fmt.Errorf("service.OnBatch[%s] handler %q: %w", reflect.TypeFor[T](), name, err)
	}
	return On(s, name, together.Run, options...)
}

// Declare makes a typed event known that is only emitted, or only handled by handlers of
// its parents, as [typed.Declare] does.
func Declare[T typed.Event](s *Service) error { return typed.Declare[T](s.bus) }

// EmitTyped is EmitMany for typed events, on the canvas of Config.Queue. It refuses one
// that neither On nor Declare has made known. See Bus for other canvases.
func (s *Service) EmitTyped(ctx context.Context, events ...typed.Event) ([]eventqueue.EventID, error) {
	return s.bus.Emit(ctx, s.config.Queue.Canvas, events...)
}

// EmitTypedIn is EmitTyped within a unit of work ([eventqueue.Queue.InTx],
// [eventqueue.Run.CompleteTx]): the events exist, and are notified, once it has committed.
func (s *Service) EmitTypedIn(ctx context.Context, tx *eventqueue.Tx, events ...typed.Event) ([]eventqueue.EventID, error) {
	return s.bus.EmitIn(ctx, tx, s.config.Queue.Canvas, events...)
}

// Bus is the bus of On and Declare. It emits typed events for any canvas, and in
// transactions of the caller's. Run registers its handlers.
func (s *Service) Bus() *typed.Bus { return s.bus }
