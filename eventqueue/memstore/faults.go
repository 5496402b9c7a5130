package memstore

import (
	"context"
	"errors"
)

// Op names an operation of a Store, for its faults.
type Op string

// The operations. Insert, Finish and the others are those of the interfaces of
// package eventqueue; within a transaction each is one of its own. InTx is a
// Begin and a Commit, or a Rollback, which cannot fail.
const (
	OpBegin       Op = "Begin"
	OpCommit      Op = "Commit"
	OpInsert      Op = "Insert"
	OpOwe         Op = "Owe"
	OpTakeOwed    Op = "TakeOwed"
	OpClaim       Op = "Claim"
	OpFinish      Op = "Finish"
	OpRunnable    Op = "Runnable"
	OpRenew       Op = "Renew"
	OpTakeDue     Op = "TakeDue"
	OpTakeLost    Op = "TakeLost"
	OpListen      Op = "Listen" // before it only
	OpAddRule     Op = "AddRule"
	OpLiftRule    Op = "LiftRule"
	OpTakeWaiting Op = "TakeWaiting"
	OpTakeTurns   Op = "TakeTurns"
	OpForgetKeys  Op = "ForgetKeys"

	OpTakeRate        Op = "TakeRate"
	OpSetRateLimit    Op = "SetRateLimit"
	OpRemoveRateLimit Op = "RemoveRateLimit"
	OpRateLimits      Op = "RateLimits"
	OpCheckRate       Op = "CheckRate"
	OpTakeLimited     Op = "TakeLimited"
)

// Faults make operations fail or wait. Both functions are called without any
// lock held and possibly by many goroutines at once, with the context of the
// operation; they may block. A nil function does nothing.
type Faults struct {
	// Before is asked when an operation begins. Its error becomes that of the
	// operation, which then does not happen.
	Before func(ctx context.Context, op Op) error

	// After is asked when an operation has happened and before its caller is
	// told. Its error becomes that of the operation: it has happened all the
	// same, unless it was within a transaction, which is spoilt then.
	After func(ctx context.Context, op Op) error
}

// ErrDisconnected is the error of what Disconnect breaks.
var ErrDisconnected = errors.New("memstore: the connection was cut")

// Inject replaces the faults of this Store; Inject(Faults{}) ends them.
// Operations under way go on with those that they began with or with the new
// ones.
func (s *Store) Inject(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

// Disconnect cuts the connections that are open through this Store, as the death
// of its program or of the network does: its transactions are rolled back, so
// that nobody waits for them any longer, and its calls of Listen return
// ErrDisconnected. What is called afterwards has a new connection; a dead
// program is one whose Faults let nothing happen any more.
func (s *Store) Disconnect() {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	for tx := range s.db.open {
		if tx.store == s {
			tx.closed, tx.err = true, ErrDisconnected
			tx.end(false)
		}
	}
	for l := range s.db.listeners {
		if l.store == s {
			delete(s.db.listeners, l)
			close(l.cut)
		}
	}
}

func (s *Store) before(ctx context.Context, op Op) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	before := s.faults.Before
	s.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(ctx, op)
}

func (s *Store) after(ctx context.Context, op Op) error {
	s.mu.Lock()
	after := s.faults.After
	s.mu.Unlock()
	if after == nil {
		return nil
	}
	return after(ctx, op)
}
