package service

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue/locktimeout"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/migrations"
)

// checkTakes bounds one check of the database.
const checkTakes = 10 * time.Second

// Check reports whether the database is fit for the program: it is reached directly or
// through a pooler of sessions, writes, has the schema of this version, grants the rights
// that the parts need, and agrees with the lock timeout. Otherwise the error says what to
// do. It blocks for ten seconds at most. Open and Run call it.
func (s *Service) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTakes)
	defer cancel()
	if err := s.checkDatabase(ctx); err != nil {
		return err
	}
	if kinds[s.config.Notifier].inDatabase {
		if err := s.publisher.Check(ctx); err != nil {
			return err
		}
	} else {
		warnOfMixedNotifiers(ctx, s.pool, s.config.Schema, s.config.Notifier, s.log)
	}
	s.identify(ctx)
	s.fit.Store(true)
	return nil
}

// checkDatabase asks the parts of the database that are the queue's own.
func (s *Service) checkDatabase(ctx context.Context) error {
	if err := s.store.Check(ctx, s.config.works()...); err != nil {
		return err
	}
	if err := migrations.In(s.config.Schema).Check(ctx, s.pool); err != nil {
		return err
	}
	if s.config.emitsOnly() { // who only emits judges no locks
		return nil
	}
	_, err := locktimeout.Agree(ctx, s.store, s.config.LockTimeout)
	return err
}

// works are the uses of the database by the parts.
func (c Config) works() (works []pgstore.Work) {
	if !c.NoWorker {
		works = append(works, pgstore.Working)
	}
	if !c.NoRelay || !c.NoCron || !c.NoPruner {
		works = append(works, pgstore.Relaying)
	}
	if c.emitsOnly() {
		works = append(works, pgstore.Emitting)
	}
	return works
}

// mayPass reports whether the database may become usable by waiting. It logs that, once
// for each time that the database is away.
func (s *Service) mayPass(err error) bool {
	if !pgsession.Unreachable(err) {
		return false
	}
	if !s.waiting.Swap(true) {
		s.log.Warn("the database cannot be used yet; the program starts work when it can", zap.Error(err))
	}
	return true
}

// The waits between checks of a database that cannot be reached.
const (
	awaitFirst = 200 * time.Millisecond
	awaitMost  = 3 * time.Second
)

// await waits until Check returns nil, or an error that waiting cannot resolve, which it
// returns. When ctx ends, await returns its error.
func (s *Service) await(ctx context.Context) error {
	for wait := awaitFirst; ; wait = min(2*wait, awaitMost) {
		err := s.Check(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			if s.waiting.Swap(false) {
				s.log.Info("the database can be used")
			}
			return nil
		case !s.mayPass(err):
			return err
		}
		timer := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// Ready reports whether the program can do its work: whether it has begun, and reaches
// the database and the notifier. Without Pub/Sub it works, through the database: then the
// error is an *ImpairedError, which says why it has to, or that only acknowledgements fail. It sends the database one ping.
func (s *Service) Ready(ctx context.Context) error {
	return s.readyBeside(s.peers(ctx))
}

// peers asks the database and the notifier. What only the notifier says is a *notifierError.
func (s *Service) peers(ctx context.Context) error {
	if !s.fit.Load() {
		return errNotBegun
	}
	if err := s.reaches(ctx); err != nil {
		return err
	}
	if err := s.publisher.Check(ctx); err != nil {
		return &notifierError{err}
	}
	return nil
}

// reaches asks whether the database answers, with an empty query, for which Postgres runs nothing.
func (s *Service) reaches(ctx context.Context) error {
	if err := s.pool.Ping(ctx); err != nil {
		return &databaseError{fmt.Errorf("%s: %w", pgsession.Remedy(err), err)}
	}
	return nil
}

// databaseError is why Postgres cannot be used.
type databaseError struct{ error }

func (e *databaseError) Unwrap() error { return e.error }

// notifierError is why the notifier cannot be used.
type notifierError struct{ error }

func (e *notifierError) Unwrap() error { return e.error }

// readyBeside adds to the answer of peers what the parts of the program know, which costs nothing.
func (s *Service) readyBeside(peers error) error {
	var errs []error
	if notifier := new(notifierError); errors.As(peers, &notifier) {
		errs = append(errs, notifier.error)
	} else if peers != nil {
		return peers
	}
	s.mu.Lock()
	parts := slices.Clone(s.parts)
	s.mu.Unlock()
	for _, failure := range parts {
		errs = append(errs, failure())
	}
	err := errors.Join(errs...)
	replaced := kinds[s.config.Notifier].replaced
	if err == nil || replaced == nil && slices.ContainsFunc(errs, prevents) {
		return err
	}
	return &ImpairedError{cause: err, causes: errs, notifier: replaced, effect: effect(replaced, errs)}
}

// impairment is the error of a part that does its work in another way.
type impairment interface {
	error
	Effect() string // what does not happen, and what happens instead
	Advice() string // what is wrong, without the names of resources
}

func impairs(err error) bool {
	var impaired impairment
	return errors.As(err, &impaired)
}

func prevents(err error) bool { return err != nil && !impairs(err) }

// effect says what a notifier does not do, for these errors of the parts, and what follows from that.
// A notifier that delivers and takes no answers is not replaced by the database.
func effect(notifier *replaced, errs []error) string {
	var effects []string
	for _, err := range errs {
		var untaken *worker.UntakenError
		var impaired impairment
		var text string
		switch {
		case err == nil:
			continue
		case errors.As(err, &untaken):
			text = "notifications of " + notifier.name + " cannot be " + untaken.Kind + ", and come again"
		case errors.As(err, &impaired):
			text = impaired.Effect()
		default:
			return notifier.name + " cannot be used, and events are found in the database"
		}
		if !slices.Contains(effects, text) {
			effects = append(effects, text)
		}
	}
	return strings.Join(effects, "; ")
}

// readyNeeds has Ready ask one more part of the program why it cannot use the notifier.
func (s *Service) readyNeeds(failure func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = append(s.parts, failure)
}

// aliveNeeds has Alive ask one more part of the program which of its loops have stalled.
func (s *Service) aliveNeeds(stalled func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loops = append(s.loops, stalled)
}

// Alive returns an error that names the loops of the program that have stopped going round, or
// nil: then only a new process helps. It is the check behind /healthz; ask every few seconds.
// A database or a notifier that is away or hangs is none of these cases. It sends nothing.
func (s *Service) Alive() error {
	s.mu.Lock()
	loops := slices.Clone(s.loops)
	s.mu.Unlock()
	var errs []error
	for _, stalled := range loops {
		errs = append(errs, stalled())
	}
	return errors.Join(errs...)
}

// ImpairedError is the state of a program that does its work, though not as it should.
type ImpairedError struct {
	cause    error
	causes   []error   // of the parts
	notifier *replaced // nil: only impairments are among the causes
	effect   string
}

func (e *ImpairedError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *ImpairedError) Unwrap() error { return e.cause }

// advice says what is wrong, without the names of resources.
func (e *ImpairedError) advice() string {
	var texts []string
	for _, err := range e.causes {
		var impaired impairment
		switch {
		case err == nil:
			continue
		case !errors.As(err, &impaired):
			return e.notifier.advice(e.cause)
		case !slices.Contains(texts, impaired.Advice()):
			texts = append(texts, impaired.Advice())
		}
	}
	return strings.Join(texts, "; ")
}
