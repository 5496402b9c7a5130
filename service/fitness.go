package service

import (
	"context"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/httptarget"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/migrations"
)

// Fitness finds the waiting events that the program's handlers do not know, or whose values they could not read,
// before it is deployed; see [inspect.Reader.Fitness]. Call it after the handlers are registered, and before
// Run.
func (s *Service) Fitness(ctx context.Context) (inspect.Fitness, error) {
	if err := s.registerTyped(); err != nil {
		return inspect.Fitness{}, err
	}
	return inspect.NewIn(s.config.Schema, s.pool).Fitness(ctx, s.handlers)
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
