package service

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/httptarget"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/envelope"
	"eventsv2/migrations"
)

// Fitness finds the waiting events that the program's handlers do not know, or whose values they could not read,
// before it is deployed; see [inspect.Reader.Fitness]. Call it after the handlers are registered, and before
// Run.
func (s *Service) Fitness(ctx context.Context) (inspect.Fitness, error) {
	if err := s.registerTyped(); err != nil {
		return inspect.Fitness{}, err
	}
	handlers, err := s.handlers.Wrap(s.opening)
	if err != nil {
		return inspect.Fitness{}, err
	}
	return inspect.NewIn(s.config.Schema, s.pool).Fitness(ctx, handlers)
}

// opening has a handler that checks values check encrypted ones in the clear, with the codec.
func (s *Service) opening(h eventqueue.Handler) (eventqueue.Handler, error) {
	if checker, is := h.(inspect.ValueChecker); is {
		return openingChecker{h, checker, s.config.Worker.OpenValue}, nil
	}
	return h, nil
}

type openingChecker struct {
	eventqueue.Handler
	checker inspect.ValueChecker
	open    func(*eventqueue.Event) (json.RawMessage, error) // nil without a codec
}

// CheckValue implements inspect.ValueChecker.
func (c openingChecker) CheckValue(e *eventqueue.Event) error {
	key, encrypted := envelope.Key(e.Value)
	if !encrypted {
		return c.checker.CheckValue(e)
	}
	if c.open == nil {
		return fmt.Errorf("the value is encrypted with key %d, and the program has no codec", key)
	}
	value, err := c.open(e)
	if err != nil {
		return err
	}
	opened := *e
	opened.Value, opened.Encrypted = value, true
	return c.checker.CheckValue(&opened)
}

// registerTyped registers the handlers of typed events, once.
func (s *Service) registerTyped() error {
	s.typed.Do(func() { s.typedErr = s.bus.Register(s.handlers) })
	return s.typedErr
}

// fitnessConnects bounds the check of the database.
const fitnessConnects = 10 * time.Second

// HandlersFileFitness finds the events that wait in a database and for which a handlers file has no handler. Its
// role only has to read. The error says what is wrong with the file or the database.
func HandlersFileFitness(ctx context.Context, path, databaseURL string, access pgsession.Access, schema pgsession.Schema) (f inspect.Fitness, err error) {
	file, err := httptarget.Load(path)
	if err != nil {
		return f, err
	}
	handlers := eventqueue.NewHandlers()
	if err := file.Register(handlers, dry); err != nil {
		return f, err
	}
	if err := schema.Validate(); err != nil {
		return f, fmt.Errorf("the schema: %w", err)
	}
	pool, err := pgstore.NewPoolWith(access, databaseURL, "eventsv2-check", 1)
	if err != nil {
		return f, err
	}
	defer pool.Close()
	connecting, cancel := context.WithTimeout(ctx, fitnessConnects)
	defer cancel()
	if err := pgstore.NewIn(schema, pool).Check(connecting); err != nil {
		return f, err
	}
	if err := migrations.In(schema).Check(connecting, pool); err != nil {
		return f, err
	}
	return inspect.NewIn(schema, pool).Fitness(ctx, handlers)
}
