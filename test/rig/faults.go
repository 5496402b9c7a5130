package rig

import (
	"context"
	"sync"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
)

// Op names an operation of a FaultyStore.
type Op string

// The operations that can be made to fail: methods of the store, and the commit of InTx.
const (
	OpCommit      Op = "Commit"
	OpInsert      Op = "Insert"
	OpMarkPending Op = "MarkPending"
	OpTakePending Op = "TakePending"
	OpUnclaimed   Op = "Unclaimed"
	OpClaim       Op = "Claim"
	OpComplete    Op = "Complete"
	OpRenew       Op = "Renew"
	OpAdvance     Op = "Advance"
	OpRunnable    Op = "Runnable"
	OpTakeDue     Op = "TakeDue"
	OpDeleteKeys  Op = "DeleteKeys"
)

// Faults are called with the context of an operation, and may block. A nil function does nothing.
type Faults struct {
	// Before is called when an operation begins. If it returns an error, the operation has no effect.
	Before func(ctx context.Context, op Op) error
	// After is called before an operation returns to its caller. If it returns an error, the operation has
	// had its effect nevertheless.
	After func(ctx context.Context, op Op) error
}

// FaultyStore is a store whose operations can be made to fail, or to take long. It is safe for concurrent use.
type FaultyStore struct {
	*pgstore.Store

	mu     sync.Mutex
	faults Faults
}

// Faulty makes a FaultyStore. Several may share a store.
func Faulty(store *pgstore.Store, faults Faults) *FaultyStore {
	return &FaultyStore{Store: store, faults: faults}
}

// Inject replaces the faults.
func (s *FaultyStore) Inject(faults Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = faults
}

func (s *FaultyStore) current() Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults
}

func (s *FaultyStore) before(ctx context.Context, op Op) error {
	if before := s.current().Before; before != nil {
		return before(ctx, op)
	}
	return ctx.Err()
}

func (s *FaultyStore) after(ctx context.Context, op Op) error {
	if after := s.current().After; after != nil {
		return after(ctx, op)
	}
	return nil
}

// do runs an operation between its faults.
func do[T any](ctx context.Context, s *FaultyStore, op Op, f func() (T, error)) (result T, err error) {
	var nothing T
	if err := s.before(ctx, op); err != nil {
		return nothing, err
	}
	if result, err = f(); err != nil {
		return result, err
	}
	if err := s.after(ctx, op); err != nil {
		return nothing, err
	}
	return result, nil
}

// InTx is that of the store.
func (s *FaultyStore) InTx(ctx context.Context, f func(ctx context.Context, db eventqueue.DB) error) error {
	err := s.Store.InTx(ctx, func(ctx context.Context, db eventqueue.DB) error {
		if err := f(ctx, db); err != nil {
			return err
		}
		return s.before(ctx, OpCommit)
	})
	if err != nil {
		return err
	}
	return s.after(ctx, OpCommit)
}

// InsertEnding is that of the store.
func (s *FaultyStore) InsertEnding(ctx context.Context, in eventqueue.DB, ending eventqueue.EventID, events []eventqueue.NewEvent, mode eventqueue.NotifyMode) ([]eventqueue.Inserted, error) {
	return do(ctx, s, OpInsert, func() ([]eventqueue.Inserted, error) { return s.Store.InsertEnding(ctx, in, ending, events, mode) })
}

// Insert is that of the store.
func (s *FaultyStore) Insert(ctx context.Context, in eventqueue.DB, events []eventqueue.NewEvent, mode eventqueue.NotifyMode) ([]eventqueue.Inserted, error) {
	return do(ctx, s, OpInsert, func() ([]eventqueue.Inserted, error) { return s.Store.Insert(ctx, in, events, mode) })
}

// MarkPending is that of the store.
func (s *FaultyStore) MarkPending(ctx context.Context, ids []eventqueue.EventID) error {
	_, err := do(ctx, s, OpMarkPending, func() (any, error) { return nil, s.Store.MarkPending(ctx, ids) })
	return err
}

// MarkPendingOrHeld is that of the store.
func (s *FaultyStore) MarkPendingOrHeld(ctx context.Context, ids []eventqueue.EventID) ([]eventqueue.EventID, error) {
	return do(ctx, s, OpMarkPending, func() ([]eventqueue.EventID, error) { return s.Store.MarkPendingOrHeld(ctx, ids) })
}

// TakePending is that of the store.
func (s *FaultyStore) TakePending(ctx context.Context, ids []eventqueue.EventID) ([]eventqueue.Notification, error) {
	return do(ctx, s, OpTakePending, func() ([]eventqueue.Notification, error) { return s.Store.TakePending(ctx, ids) })
}

// Unclaimed is that of the store.
func (s *FaultyStore) Unclaimed(ctx context.Context, asked []eventqueue.Unanswered) ([]eventqueue.Notification, error) {
	return do(ctx, s, OpUnclaimed, func() ([]eventqueue.Notification, error) { return s.Store.Unclaimed(ctx, asked) })
}

// Claim is that of the store.
func (s *FaultyStore) Claim(ctx context.Context, ids []eventqueue.EventID, known eventqueue.HandlerSet, claim eventqueue.ClaimID) ([]worker.ClaimResult, error) {
	return do(ctx, s, OpClaim, func() ([]worker.ClaimResult, error) { return s.Store.Claim(ctx, ids, known, claim) })
}

// Complete is that of the store.
func (s *FaultyStore) Complete(ctx context.Context, in eventqueue.DB, ends []worker.Completion, retain bool) (worker.WriteResult, error) {
	return do(ctx, s, OpComplete, func() (worker.WriteResult, error) { return s.Store.Complete(ctx, in, ends, retain) })
}

// Renew is that of the store.
func (s *FaultyStore) Renew(ctx context.Context, claims []worker.Claim) (worker.WriteResult, error) {
	return do(ctx, s, OpRenew, func() (worker.WriteResult, error) { return s.Store.Renew(ctx, claims) })
}

// Advance is that of the store.
func (s *FaultyStore) Advance(ctx context.Context, left, arrived []eventqueue.EventID) ([]eventqueue.Event, error) {
	return do(ctx, s, OpAdvance, func() ([]eventqueue.Event, error) { return s.Store.Advance(ctx, left, arrived) })
}

// Runnable is that of the store.
func (s *FaultyStore) Runnable(ctx context.Context, after eventqueue.Scope, except []eventqueue.CanvasID) (events []eventqueue.Event, next eventqueue.Scope, err error) {
	events, err = do(ctx, s, OpRunnable, func() ([]eventqueue.Event, error) {
		events, next, err = s.Store.Runnable(ctx, after, except)
		return events, err
	})
	return events, next, err
}

// RunnablePriority is that of the store.
func (s *FaultyStore) RunnablePriority(ctx context.Context, priority string, after eventqueue.Scope, most int) (events []eventqueue.Event, next eventqueue.Scope, err error) {
	events, err = do(ctx, s, OpRunnable, func() ([]eventqueue.Event, error) {
		events, next, err = s.Store.RunnablePriority(ctx, priority, after, most)
		return events, err
	})
	return events, next, err
}

// TakeDue is that of the store. What it takes is unanswered for as long as the answer is lost.
func (s *FaultyStore) TakeDue(ctx context.Context, within time.Duration, limit int, await maintenance.AwaitTake) ([]eventqueue.Notification, error) {
	var answered []func(error)
	due, err := do(ctx, s, OpTakeDue, func() ([]eventqueue.Notification, error) {
		return s.Store.TakeDue(ctx, within, limit, func(ids []eventqueue.EventID) func(error) {
			over := await(ids)
			return func(err error) {
				if err == nil {
					answered = append(answered, over)
					return
				}
				over(err)
			}
		})
	})
	for _, over := range answered {
		over(err)
	}
	return due, err
}

// DeleteKeys is that of the store.
func (s *FaultyStore) DeleteKeys(ctx context.Context, after eventqueue.UniqueKey, limit int) (deleted int, next eventqueue.UniqueKey, err error) {
	deleted, err = do(ctx, s, OpDeleteKeys, func() (int, error) {
		deleted, next, err = s.Store.DeleteKeys(ctx, after, limit)
		return deleted, err
	})
	return deleted, next, err
}
