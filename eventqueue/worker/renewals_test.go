package worker_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// causes records why runs ended, by their attempt or event.
type causes struct {
	mu  sync.Mutex
	all map[int64]error
}

// await is a handler that waits for the end of its context or for the test's.
func (c *causes) await(ctx context.Context, key int64, let chan struct{}) error {
	select {
	case <-ctx.Done():
	case <-let:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[int64]error{}
	}
	c.all[key] = context.Cause(ctx)
	return nil
}

// wantLost asserts which runs have been told that their locks are lost, and that no other has ended.
func (c *causes) wantLost(t *testing.T, want ...int64) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	got := slices.Sorted(maps.Keys(c.all))
	for key, cause := range c.all {
		if !errors.Is(cause, eventqueue.ErrLockLost) {
			t.Errorf("run %d was told %v", key, cause)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the runs %v have ended, want %v", got, want)
	}
}

// TestLateAnswerOfAnOlderClaimTakesOverNothing (I5): the answer of a claim may come after that of a newer one of the same
// event, which goes on and is the one that is renewed.
func TestLateAnswerOfAnOlderClaimTakesOverNothing(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		let, ended := make(chan struct{}), &causes{}
		s.handle(eventqueue.Policy{Timeout: time.Hour}, func(ctx context.Context, run *eventqueue.Run) error {
			return ended.await(ctx, int64(run.Attempt), let)
		})
		var renewed []worker.Claim
		s.renewing = func(claims []worker.Claim) ([]eventqueue.EventID, error) {
			renewed = slices.Clone(claims)
			return nil, nil
		}
		stop := s.start(worker.Config{LockTimeout: time.Minute})
		older, newer := s.claimed(1), s.claimed(1)
		older.Attempt, newer.Attempt = 1, 2
		s.notify(newer)
		rig.Pass(time.Second)
		s.notify(older)
		rig.Pass(5 * time.Minute)
		if want := []worker.Claim{{Event: 1, Attempt: 2, ID: s.asked[0]}}; !slices.Equal(renewed, want) {
			s.t.Errorf("renewed were %+v, want the newest claim alone", renewed)
		}
		ended.wantLost(s.t, 1)
		close(let)
		stop()
	})
}

// TestEndOfAnOlderRunLeavesTheNewest (I5): the worker knows the newest claim also after a run that it has replaced has ended, and ends
// it for a third one.
func TestEndOfAnOlderRunLeavesTheNewest(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		let, ended := make(chan struct{}), &causes{}
		s.handle(eventqueue.Policy{Timeout: time.Hour}, func(ctx context.Context, run *eventqueue.Run) error {
			return ended.await(ctx, int64(run.Attempt), let)
		})
		stop := s.start(worker.Config{LockTimeout: time.Minute})
		for attempt := range int32(3) {
			claim := s.claimed(1)
			claim.Attempt += attempt
			s.notify(claim)
			rig.Pass(10 * time.Second) // the run before it ends
		}
		ended.wantLost(s.t, 1, 2)
		close(let)
		stop()
	})
}

// TestLostClaimsBesideARefusedOneEnd (I3, I15): a renewal that is sent in parts, around a row that the database refuses, ends the
// runs of all claims that any part finds lost.
func TestLostClaimsBesideARefusedOneEnd(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		const events, refused = 5, 3
		let, ended := make(chan struct{}), &causes{}
		s.handle(eventqueue.Policy{Timeout: time.Hour}, func(ctx context.Context, run *eventqueue.Run) error {
			return ended.await(ctx, int64(run.ID), let)
		})
		s.renewing = func(claims []worker.Claim) (lost []eventqueue.EventID, err error) {
			for _, c := range claims {
				if c.Event == refused {
					return nil, &pgconn.PgError{Code: "23514"}
				}
				lost = append(lost, c.Event)
			}
			return lost, nil
		}
		core, logs := observer.New(zap.ErrorLevel)
		stop := s.start(worker.Config{LockTimeout: time.Minute, Logger: zap.New(core)})
		for id := range events {
			s.notify(s.claimed(eventqueue.EventID(id + 1)))
		}
		rig.Pass(40 * time.Second) // its lock may hold for longer
		ended.wantLost(s.t, 1, 2, 4, 5)
		close(let)
		stop()
		refusals := logs.Filter(func(e observer.LoggedEntry) bool { return strings.Contains(e.Message, "refuses to renew") })
		if refusals.Len() != 1 {
			s.t.Errorf("%d lines about the refused claim, want 1", refusals.Len())
		}
	})
}

// TestRenewalReportsItsOldestClaim while the database renews none.
func TestRenewalReportsItsOldestClaim(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		let := make(chan struct{})
		s.handle(eventqueue.Policy{Timeout: time.Hour}, func(context.Context, *eventqueue.Run) error { <-let; return nil })
		s.renewing = func([]worker.Claim) ([]eventqueue.EventID, error) { return nil, errors.New("down") }
		var last worker.Renewal
		var at time.Time
		stop := s.start(worker.Config{LockTimeout: time.Minute, ObserveRenewal: func(r worker.Renewal) { last, at = r, time.Now() }})
		first := time.Now()
		s.notify(s.claimed(1))
		rig.Pass(15 * time.Second)
		s.notify(s.claimed(2))
		rig.Pass(40 * time.Second)
		close(let)
		stop()
		if last.Claims != 2 || last.Age != at.Sub(first) || last.Err == nil {
			s.t.Errorf("reported is %+v, want the %s since the first of two claims", last, at.Sub(first))
		}
	})
}
