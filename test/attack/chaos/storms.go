package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/internal/backoff"
	"eventsv2/test/oracle"
)

// storms pause and block handlers and lift that again.
type storms struct {
	rules  *control.Rules
	scopes []eventqueue.Scope
	seed   int64

	mu      sync.Mutex
	records []oracle.Record
	calls   int64
}

// How often a storm begins, and how long its rule stays.
const (
	stormEvery = 3 * time.Second
	stormMin   = 500 * time.Millisecond
	stormMax   = 4 * time.Second
)

func (s *storms) run(ctx context.Context) {
	random := rand.New(rand.NewPCG(uint64(s.seed), 0x5702))
	var running sync.WaitGroup
	defer running.Wait()
	for {
		backoff.Sleep(ctx, stormEvery/2+time.Duration(random.Int64N(int64(stormEvery))))
		if ctx.Err() != nil {
			return
		}
		scope := s.scopes[random.IntN(len(s.scopes))]
		kind := []control.RuleType{control.PauseRule, control.BlockRule}[random.IntN(2)]
		lasts := stormMin + time.Duration(random.Int64N(int64(stormMax-stormMin)))
		times := 1 + random.IntN(3)
		running.Go(func() { s.storm(ctx, kind, scope, lasts, times) })
	}
}

// storm adds a rule and lifts it, several times at once. What fails is repaired at
// the end of the run.
func (s *storms) storm(ctx context.Context, kind control.RuleType, scope eventqueue.Scope, lasts time.Duration, times int) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*emitTimeout)
	_ = s.add(call, kind, scope) // it may be there all the same
	cancel()
	backoff.Sleep(ctx, lasts)
	var lifting sync.WaitGroup
	for range times {
		lifting.Go(func() { s.liftAtLast(ctx, kind, scope) })
	}
	lifting.Wait()
}

// liftAtLast lifts a rule and tries again until that has worked or the load is
// over; what is left then is lifted at the end of the run.
func (s *storms) liftAtLast(ctx context.Context, kind control.RuleType, scope eventqueue.Scope) {
	for {
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*emitTimeout)
		err := s.lift(call, kind, scope)
		cancel()
		if err == nil || ctx.Err() != nil {
			return
		}
		backoff.Sleep(ctx, 100*time.Millisecond)
	}
}

func (s *storms) add(ctx context.Context, kind control.RuleType, scope eventqueue.Scope) error {
	n := s.asked(oracle.RuleAsked, kind, scope)
	added, err := s.rules.Add(ctx, kind, scope)
	if err == nil {
		s.returned(oracle.RuleAdded, n, kind, scope, added)
	}
	return err
}

func (s *storms) lift(ctx context.Context, kind control.RuleType, scope eventqueue.Scope) error {
	n := s.asked(oracle.LiftAsked, kind, scope)
	removed, _, err := s.rules.Lift(ctx, kind, scope)
	if err == nil || removed {
		s.returned(oracle.RuleLifted, n, kind, scope, removed)
	}
	return err
}

func (s *storms) asked(what oracle.Kind, kind control.RuleType, scope eventqueue.Scope) (call int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.records = append(s.records, oracle.Record{Kind: what, At: time.Now(), Rule: kind, Scope: scope, Call: s.calls})
	return s.calls
}

func (s *storms) returned(what oracle.Kind, call int64, kind control.RuleType, scope eventqueue.Scope, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, oracle.Record{Kind: what, At: time.Now(), Rule: kind, Scope: scope, Call: call, Changed: changed})
}

const selectRulesSQL = `
SELECT rule_type::text, canvas_id, event_space, handler_name
  FROM scheduling_rules`

// left lists the rules that are there.
func (s *storms) left(ctx context.Context, pool *pgxpool.Pool) ([]oracle.RuleRow, error) {
	rows, err := pool.Query(ctx, selectRulesSQL)
	if err != nil {
		return nil, fmt.Errorf("read the rules: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r oracle.RuleRow, err error) {
		var kind string
		err = row.Scan(&kind, (*[16]byte)(&r.Scope.Canvas), &r.Scope.Module, &r.Scope.Name)
		r.Type = control.RuleType(kind)
		return r, err
	})
}

// liftAll lifts whatever is left.
func (s *storms) liftAll(ctx context.Context, pool *pgxpool.Pool) error {
	rules, err := s.left(ctx, pool)
	for _, r := range rules {
		err = errors.Join(err, s.lift(ctx, r.Type, r.Scope))
	}
	return err
}

// history is a copy of the record, and the number of rules that were added.
func (s *storms) history() (records []oracle.Record, added int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		if r.Kind == oracle.RuleAdded && r.Changed {
			added++
		}
	}
	return slices.Clone(s.records), added
}
