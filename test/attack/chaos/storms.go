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
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/backoff"
	"eventsv2/test/oracle"
)

// storms pause and block handlers and lift that again.
type storms struct {
	rules  *operate.Rules
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
		kind := []operate.RuleType{operate.PauseRule, operate.BlockRule}[random.IntN(2)]
		lasts := stormMin + time.Duration(random.Int64N(int64(stormMax-stormMin)))
		times := 1 + random.IntN(3)
		running.Go(func() { s.storm(ctx, kind, scope, lasts, times) })
	}
}

// storm adds a rule and lifts it, several times at once. What fails is repaired at
// the end of the run.
func (s *storms) storm(ctx context.Context, kind operate.RuleType, scope eventqueue.Scope, lasts time.Duration, times int) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
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
func (s *storms) liftAtLast(ctx context.Context, kind operate.RuleType, scope eventqueue.Scope) {
	for {
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		err := s.lift(call, kind, scope)
		cancel()
		if err == nil || ctx.Err() != nil {
			return
		}
		backoff.Sleep(ctx, 100*time.Millisecond)
	}
}

func (s *storms) add(ctx context.Context, kind operate.RuleType, scope eventqueue.Scope) error {
	return s.recorded(oracle.RuleAsked, oracle.RuleAdded, kind, scope, func() (bool, error) { return s.rules.Add(ctx, kind, scope) })
}

func (s *storms) lift(ctx context.Context, kind operate.RuleType, scope eventqueue.Scope) error {
	return s.recorded(oracle.LiftAsked, oracle.RuleLifted, kind, scope, func() (removed bool, err error) {
		removed, _, err = s.rules.Lift(ctx, kind, scope)
		return removed, err
	})
}

// recorded records a call, and its return if that proves that it has happened: a lift may have removed
// the rule and fail after that.
func (s *storms) recorded(asked, returned oracle.Kind, kind operate.RuleType, scope eventqueue.Scope, call func() (changed bool, err error)) error {
	s.mu.Lock()
	s.calls++
	r := oracle.Record{Kind: asked, At: time.Now(), Rule: kind, Scope: scope, Call: s.calls}
	s.records = append(s.records, r)
	s.mu.Unlock()
	changed, err := call()
	if err == nil || changed && asked == oracle.LiftAsked {
		s.mu.Lock()
		defer s.mu.Unlock()
		r.Kind, r.At, r.Changed = returned, time.Now(), changed
		s.records = append(s.records, r)
	}
	return err
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
		r.Type = operate.RuleType(kind)
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
