package memstore

import (
	"context"
	"errors"

	"eventsv2/eventqueue"
)

// Op names an operation of a Store, for its faults.
type Op string

// The operations. Insert, Complete and the others are methods of the store interfaces of
// the queue's packages; within a transaction each is an operation of its own. InTx is a
// Begin and a Commit, or a Rollback, which cannot fail.
const (
	OpBegin         Op = "Begin"
	OpCommit        Op = "Commit"
	OpInsert        Op = "Insert"
	OpInsertRows    Op = "InsertRows"
	OpMarkPending   Op = "MarkPending"
	OpTakePending   Op = "TakePending"
	OpUnclaimed     Op = "Unclaimed"
	OpClaim         Op = "Claim"
	OpValue         Op = "Value"
	OpComplete      Op = "Complete"
	OpGiveBack      Op = "GiveBack"
	OpRunnable      Op = "Runnable"
	OpRenew         Op = "Renew"
	OpTakeDue       Op = "TakeDue"
	OpSweep         Op = "Sweep"
	OpTakeRound     Op = "TakeRound"
	OpLeavePending  Op = "LeavePending"
	OpListen        Op = "Listen"     // only Faults.Before applies
	OpReportLost    Op = "ReportLost" // only Faults.Before applies
	OpAddRule       Op = "AddRule"
	OpLiftRule      Op = "LiftRule"
	OpRelease       Op = "Release"
	OpRulesToLift   Op = "RulesToLift"
	OpWaitingScopes Op = "WaitingScopes"
	OpTakeWaiting   Op = "TakeWaiting"
	OpAdvance       Op = "Advance"
	OpDeleteKeys    Op = "DeleteKeys"

	OpDeleteAttempts Op = "DeleteAttempts"

	OpRemove       Op = "Remove"
	OpEdit         Op = "Edit"
	OpRequeue      Op = "Requeue"
	OpRetry        Op = "Retry"
	OpDeleteLogged Op = "DeleteLogged"
	OpSelect       Op = "Select" // also of event_log, and of the last id of either

	OpSetConcurrencyLimit Op = "SetConcurrencyLimit"
	OpConcurrencyLimits   Op = "ConcurrencyLimits"
	OpFillGroups          Op = "FillGroups"

	OpTakeRate        Op = "TakeRate"
	OpSetRateLimit    Op = "SetRateLimit"
	OpRemoveRateLimit Op = "RemoveRateLimit"
	OpRateLimits      Op = "RateLimits"
	OpCheckRate       Op = "CheckRate"
	OpTakeLimited     Op = "TakeLimited"

	OpAddMinutes   Op = "AddMinutes"
	OpMinutes      Op = "Minutes"
	OpCountPending Op = "CountPending" // also CountWaiting
	OpOldestDue    Op = "OldestDue"
	OpSumHour      Op = "SumHour"
	OpPruneMinutes Op = "PruneMinutes"
)

// Faults make operations fail or wait. Before and After are called without any
// lock held and possibly by many goroutines at once, with the context of the
// operation; they may block. A nil function does nothing.
type Faults struct {
	// Before is called when an operation begins. If it returns an error, the operation
	// returns that error and has no effect.
	Before func(ctx context.Context, op Op) error

	// After is called after an operation, before it returns to its caller. If it returns an
	// error, the operation returns that error. The operation has had its effect
	// nevertheless, unless it was within a transaction, which has then failed.
	After func(ctx context.Context, op Op) error

	// Refuse is called for each row that Claim, Renew, GiveBack or Complete is about to write. If it
	// returns an error for one of them, the operation returns the first such error and writes
	// nothing, as when a constraint or a trigger refuses the row. It is called with a lock held, so
	// it must return fast and not call the Store.
	Refuse func(op Op, id eventqueue.EventID) error
}

// ErrDisconnected is the error of calls that Disconnect has interrupted.
var ErrDisconnected = errors.New("memstore: the connection was cut")
