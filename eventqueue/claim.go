package eventqueue

import (
	"context"
	"time"

	"eventsv2/eventqueue/machine"
)

// Claim is the lock on an event: locked_at is in the row, Attempt is the fence
// token. Every write after the claim names both (I5).
type Claim struct {
	Event EventID
	// Attempt is the value that this claim gave to the row's attempts; no other
	// claim of the event ever gets the same.
	Attempt int32
}

// Known lists the handlers that a worker has.
type Known struct {
	Everywhere []HandlerKey
	OnCanvas   []CanvasHandler
}

// Found is what the claim statement says of one notified event.
type Found struct {
	// Event has its ID always, its canvas and handler when it is present, and
	// the rest when it was claimed.
	Event Event
	Facts machine.Facts
	// Attempt is the fence token when the event was claimed, and Place where its
	// row was put.
	Attempt int32
	Place   Place
	// Unique says, of an event that was claimed, that its UniqueKey holds beyond its
	// end, which therefore has to be remembered.
	Unique bool
	// InLine says that the event has its turn in one or more lines, which its end
	// gives to the next. Of one that was not claimed it says the same.
	InLine bool
	// Limited says, of an event that was claimed, that it has a rate limit: it may not
	// run before TakeRate has granted it.
	Limited bool
	// Exact says that one of these limits is exact: what a worker knows of them does
	// not do.
	Exact bool
}

// Place says where a store has put a claimed row, so that it is found again
// without being looked up. It holds until the row is written once more; a wrong
// one costs another try, and no more. 0 means unknown.
type Place uint64

// End is how a claim ends: what is to be written, fenced by the claim.
type End struct {
	Claim
	Place Place

	// Label says what: ExecutesToCompletion deletes the row; RetryTooMany and
	// FailedForGood move it to event_log as FAILED; RetryAllowed adds a retry,
	// sets the delay and gives the lock back; Snoozed does so without the retry, and
	// OverLimit as well, and remembers that it was a rate limit; Released gives the
	// lock back.
	Label machine.Label

	// Delay is from the database's clock at the time of the write.
	Delay time.Duration

	// LastError goes to event_log.
	LastError string

	// Unique is that of the event as it was found: when it leaves the queue, the
	// time is kept until its UniqueFor has passed.
	Unique bool

	// InLine is that of the event as it was found. Passes lets the next event of
	// its key go first when this one stays in the queue.
	InLine, Passes bool
}

// ClaimStore is what a worker needs of the database; pgstore.Store is one.
type ClaimStore interface {
	// Claim answers for each of the ids, in one statement, at one moment of the
	// database's clock, and claims those that may run: present, without a rule,
	// due, not locked for less than lockTimeout, and known. Ids must not repeat.
	// When it returns, the claims are committed.
	Claim(ctx context.Context, ids []EventID, known Known, lockTimeout time.Duration) ([]Found, error)

	// Finish writes the ends whose claims still hold. in is the transaction to
	// write in; nil means one of its own. keep says that completed events go to
	// event_log as well. No event may be named twice. The turns of events that are
	// InLine are given to the next, also when they have ended before; not in a
	// transaction of the caller's, after which Finish is called once more. No more
	// than MaxTurns ends may be InLine.
	Finish(ctx context.Context, in DB, ends []End, keep bool) (Written, error)

	// Runnable finds events that could be claimed now: present, without a rule,
	// due and not locked for less than lockTimeout. It walks the scopes (canvas,
	// module, name) above the given one in the database's order, leaving out
	// whole canvases, a page at a time, and looks at the oldest and the newest
	// few of each; what it costs does not grow with what waits. It locks
	// nothing. The events have their IDs, canvases and handlers. next is the
	// last scope of a full page, the zero Scope when there are no more.
	Runnable(ctx context.Context, after Scope, except []CanvasID, lockTimeout time.Duration) (events []Event, next Scope, err error)

	// TakeTurns has the events that arrived take their places in the lines of
	// their OrderingKeys and of the limits that apply to them, and those that have
	// left, which are not running and cannot run now, give their turns in lines of
	// limits back. It returns the events whose turn it has become by that, which
	// the caller has tried at once. What it is told of an event is a hint: it
	// looks itself. A lock that is older than lockTimeout keeps nobody's turn.
	// After an error some may have been given.
	TakeTurns(ctx context.Context, left, arrived []EventID, lockTimeout time.Duration) ([]Event, error)

	// Renew moves the locked_at of claims that still hold to now. No event may be
	// named twice.
	Renew(ctx context.Context, claims []Claim) (Written, error)

	RateTaker
}

// MaxTurns bounds how many events that are in lines one Finish takes.
const MaxTurns = 250

// Written is what became of a fenced write of many claims. A claim in neither
// list may still hold: somebody is writing its row, for which no write waits longer
// than a moment (I15).
type Written struct {
	// Done were written.
	Done []EventID
	// Lost were refused: the event has ended, or somebody else claimed it (I5).
	Lost []EventID
	// Turns are the events whose turn it has become with these ends. The caller
	// sees to their notifications.
	Turns []Event
}
