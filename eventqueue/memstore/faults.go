package memstore

import (
	"context"
	"errors"
)

// Op names an operation of a Store, for its faults.
type Op string

// The operations. Insert, Finish and the others are those of the interfaces of
// the packages of the queue; within a transaction each is one of its own. InTx is a
// Begin and a Commit, or a Rollback, which cannot fail.
const (
	OpBegin        Op = "Begin"
	OpCommit       Op = "Commit"
	OpInsert       Op = "Insert"
	OpInsertRows   Op = "InsertRows"
	OpMarkPending  Op = "MarkPending"
	OpTakePending  Op = "TakePending"
	OpClaim        Op = "Claim"
	OpComplete     Op = "Complete"
	OpGiveBack     Op = "GiveBack"
	OpRunnable     Op = "Runnable"
	OpRenew        Op = "Renew"
	OpTakeDue      Op = "TakeDue"
	OpSweep        Op = "Sweep"
	OpTakeRound    Op = "TakeRound"
	OpLeavePending Op = "LeavePending"
	OpListen       Op = "Listen" // before it only
	OpAddRule      Op = "AddRule"
	OpLiftRule     Op = "LiftRule"
	OpTakeWaiting  Op = "TakeWaiting"
	OpAdvance      Op = "Advance"
	OpDeleteKeys   Op = "DeleteKeys"

	OpSetConcurrencyLimit Op = "SetConcurrencyLimit"
	OpConcurrencyLimits   Op = "ConcurrencyLimits"
	OpFillGroups          Op = "FillGroups"

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
