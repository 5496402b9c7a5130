package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/ratelimit"
)

// Claim is the lock on an event: locked_at is in the row, Attempt and ID are the fence. Every write
// after the claim checks all of them (I5).
type Claim struct {
	Event eventqueue.EventID
	// Attempt is the value that this claim gave to the row's attempts. As long as no commit is
	// lost, no other claim of the event gets the same.
	Attempt int32
	// ID is the number that the claimant gave to the claim. After a crash that lost commits
	// (synchronous_commit = off) it distinguishes claims with the same Attempt.
	ID eventqueue.ClaimID
}

// String returns the event and the fence token; the random number is left out.
func (c Claim) String() string { return fmt.Sprintf("%s#%d", c.Event, c.Attempt) }

// ClaimResult is the claim statement's answer about one notified event.
type ClaimResult struct {
	// Event has its ID always, its canvas and handler when it is present, and
	// the rest when it was claimed.
	Event eventqueue.Event
	Facts machine.Facts
	// Attempt is the fence token when the event was claimed, ClaimID the number of the claim, and
	// RowID the position of its row.
	Attempt int32
	ClaimID eventqueue.ClaimID
	RowID   RowID
	// LostRun says, of an event that was claimed, that its worker died while it was the only suspect
	// there. This claim, or an earlier one whose run never began, has counted that run as failed.
	LostRun bool
	// Company says, of an event that was claimed, that it is a suspect: a worker died, or lost its
	// lock, while it had the event in hand. It is how many suspects may run together in this worker
	// with it, itself included, and BeginRuns has to be called before the handler. 0: it is no suspect.
	Company int
	// Unique says, of an event that was claimed, that its UniqueKey holds beyond its end, so that
	// the time of the end has to be recorded.
	Unique bool
	// Grouped reports whether the event is at the front of one or more ordering groups, which advance
	// with its completion. It is also set for an event that was not claimed.
	Grouped bool
	// Limited says, of an event that was claimed, that it has a rate limit: it may not
	// run before TakeRate has granted it.
	Limited bool
	// PutOff says, of an event that was claimed, that a rate limit put it off at the claim before: it goes
	// before those that come for the first time.
	PutOff bool
	// Exact reports whether one of these limits is exact: the worker's own counts do not suffice.
	Exact bool
	// Snoozes is how often an event that was claimed has been snoozed in a row.
	Snoozes int
	// Cancelled says, of an event that was claimed, that an operator has cancelled it while it ran before: it is not run
	// again, and its completion is Cancelled.
	Cancelled bool
	// ValueApart reports whether the value of an event that was claimed is larger than
	// MaxClaimedValueBytes: then Event has none, and Store.Value returns it.
	ValueApart bool
}

// MaxClaimedValueBytes is the largest value that a claim answers with: the default limit of emit,
// so usually there is no larger one. A batch of larger ones, which a configured limit or SQL allows,
// would take longer than a claim may, again and again, and with it all events beside them (I15).
const MaxClaimedValueBytes = 256 << 10

// waited returns how long the event had been due when it was claimed, by the database's clock.
func (r *ClaimResult) waited() time.Duration {
	due, now := r.Event.DelayUntil, r.Event.DelayUntil.Add(-r.Facts.Delay)
	if r.Event.EnqueuedAt.After(due) { // as SQL may write it
		due = r.Event.EnqueuedAt
	}
	return max(now.Sub(due), 0)
}

// RowID is the position of a claimed row in its table, so that the row is found again without an
// index. It holds until the row is written once more; a wrong one costs another try, and no more. 0
// means unknown.
type RowID uint64

// Completion is the write at the end of a claim, fenced by the claim.
type Completion struct {
	Claim
	RowID RowID

	// Label selects the write: ExecutesToCompletion deletes the row; RetryTooMany and FailedForGood
	// move it to event_log as FAILED, and Cancelled as CANCELLED; RetryAllowed adds a retry, sets the delay, releases the lock,
	// and resets the count of snoozes; Snoozed does so without the retry, and adds a snooze;
	// OverLimit adds neither, and records that it was a rate limit; Released releases the lock.
	Label machine.Label

	// Delay is from the database's clock at the time of the write.
	Delay time.Duration

	// LastError goes to event_log, and with Duration, for how long the handler ran, and Stack, of a handler
	// that panicked, to the failed attempts of the event if Records. Duration also goes to event_log if the event
	// is kept there as completed; 0: not known.
	LastError string
	Stack     string
	Duration  time.Duration

	// Result goes to event_log if the event is kept there as completed; nil: none.
	Result json.RawMessage

	// RunLog is what was logged with the context of the run. It goes to event_log if the event is FAILED, or is kept there as completed, and
	// to the failed attempts if Records; empty: nothing was.
	RunLog string

	// Company, of Released and RetryAllowed, makes the event a suspect that runs with so many; see ClaimResult. 0: Released
	// leaves it as it is, and RetryAllowed makes it none.
	Company int

	// Unrecorded keeps a failed attempt from being recorded.
	Unrecorded bool

	// Unique is taken from the event's ClaimResult: when the event leaves the queue, the time is
	// retained until its UniqueFor has passed.
	Unique bool

	// Grouped is taken from the event's ClaimResult. Passes lets the next event of its key go first
	// when this one stays in the queue.
	Grouped, Passes bool
}

// MaxAttempts is how many failed attempts of an event are retained: the newest ones.
const MaxAttempts = 20

// Records reports whether a failed attempt is recorded with this completion.
func (c *Completion) Records() bool {
	switch c.Label {
	case machine.RetryAllowed, machine.RetryTooMany, machine.FailedForGood:
		return !c.Unrecorded
	default:
		return false
	}
}

// Store is the database as a worker uses it; pgstore.Store implements it. Its database knows the lock timeout
// (package locktimeout), and by that alone it decides whether a lock has expired.
type Store interface {
	// Claim answers for each of the ids, in one statement, at one moment of the database's clock,
	// and claims those that may run: present, without a rule, due, not locked for less than
	// the lock timeout, and known. Ids must not repeat. When it returns, the claims are committed; after
	// an error they may be, and GiveBack releases them. claim is their number.
	Claim(ctx context.Context, ids []eventqueue.EventID, known eventqueue.HandlerSet, claim eventqueue.ClaimID) ([]ClaimResult, error)

	// GiveBack releases the locks that a claim with this number holds on some of the events, whose
	// runs have not begun, and marks their notifications as pending. It returns the events whose
	// locks it released. Claims with other numbers are left alone, and so are events that an operator has
	// cancelled meanwhile.
	GiveBack(ctx context.Context, claim eventqueue.ClaimID, ids []eventqueue.EventID) ([]eventqueue.EventID, error)

	// Value returns the value of an event whose claim still holds, and false if it does not hold.
	// It locks nothing.
	Value(ctx context.Context, claim Claim) (value json.RawMessage, held bool, err error)

	// Complete writes the completions whose claims still hold, and the failed attempts of those that
	// record one, of which each event retains MaxAttempts. in is the transaction to write in;
	// nil means one of its own. retain says that completed events go to event_log as well. No event
	// may be named twice. The ordering groups of Grouped events advance, even when the events were
	// completed before. They do not advance in a transaction of the caller's, after which Complete
	// is called once more. A *refusal.Error is returned beside the result: groups could not advance
	// to the events that it names, or for the other cause that it has. No more than MaxGrouped
	// completions may be Grouped.
	Complete(ctx context.Context, in eventqueue.DB, completions []Completion, retain bool) (WriteResult, error)

	// Runnable finds events that could be claimed now: present, without a rule, due and not locked
	// for less than the lock timeout. It walks the scopes (canvas, module, name) above the given one in
	// the database's order, leaving out whole canvases, a page at a time, and reads the oldest and
	// the newest few of each; its cost does not grow with the backlog. It locks nothing. The events
	// have their IDs, canvases and handlers. next is the last scope of a full page, the zero Scope
	// when there are no more.
	Runnable(ctx context.Context, after eventqueue.Scope, except []eventqueue.CanvasID) (events []eventqueue.Event, next eventqueue.Scope, err error)

	// RunnablePriority is Runnable for the events of one priority, high or low, of which it reads at most so many from
	// either end of a scope.
	RunnablePriority(ctx context.Context, priority string, after eventqueue.Scope, most int) (events []eventqueue.Event, next eventqueue.Scope, err error)

	// Advance adds the events that arrived to the ordering groups of their OrderingKeys and of the
	// limits that apply to them. The events that left, which are not running and cannot run now,
	// lose their places under limits. It returns the events that may run by that, which the caller
	// has tried at once. Its arguments are hints: it reads the state of each event itself. A lock
	// that is older than the lock timeout occupies no place. After an error, some groups may have
	// advanced; a *refusal.Error is returned beside the result, and all others have.
	Advance(ctx context.Context, left, arrived []eventqueue.EventID) ([]eventqueue.Event, error)

	// Renew sets the locked_at of claims that still hold to now, and records that their runs have
	// begun, except for suspects. No event may be named twice.
	Renew(ctx context.Context, claims []Claim) (WriteResult, error)

	// BeginRuns renews the claims of suspects and records that their runs begin, and that so many run
	// together in their worker. No event may be named twice.
	BeginRuns(ctx context.Context, claims []Claim, together int) (WriteResult, error)

	RateTaker
}

// Progress is how far a run is.
type Progress struct {
	Fraction float64 // of 0 to 1
	Note     string  // a sentence for people; may be empty
}

// ProgressStore is implemented by a Store that keeps how far runs are.
type ProgressStore interface {
	// WriteProgress writes, under the fence, how far the runs of claims are, in one statement. No event may be named twice.
	WriteProgress(ctx context.Context, claims []Claim, progress []Progress) (WriteResult, error)
}

// AnyCompany is the Company of an event that may run together with any number of suspects: nothing is
// known yet of which event its worker died.
const AnyCompany = 1023

// MaxGrouped bounds how many Grouped events one Complete takes.
const MaxGrouped = 250

// WriteResult is the result of a fenced write of many claims. A claim in no list may still
// hold: another transaction is writing its row, for which no write waits longer than a moment
// (I15).
type WriteResult struct {
	// Done were written.
	Done []eventqueue.EventID
	// Lost were refused: the event has left the queue, or another worker claimed it (I5).
	Lost []eventqueue.EventID
	// Cancelled are those whose events an operator has cancelled while they ran. Of Renew, they are among Done, and their runs have to end.
	// Of Complete, they are those that would have stayed in the queue, which still hold: the caller completes them as Cancelled.
	Cancelled []eventqueue.EventID
	// Advanced are the events that may run because their ordering groups advanced with these
	// completions. The caller has them notified.
	Advanced []eventqueue.Event
}

// RateTaker is the database as a worker uses it for rate limits; it is a
// part of Store.
type RateTaker interface {
	// TakeRate asks for room under the limits of several scopes, each named once, in
	// one statement, and counts what it grants. Of scopes of one canvas the first is
	// served first. The answers are in the order of the asks.
	TakeRate(ctx context.Context, asks []RateAsk) ([]ratelimit.Answer, error)
}

// RateAsk asks for room under the limits of a handler on a canvas.
type RateAsk struct {
	eventqueue.Scope

	// Want is how many events may run if there is room under both limits. What is not
	// granted is counted as waiting.
	Want int

	// PutOff is how many of them a limit has put off before. They are the first that are granted. The
	// others leave room for those that were put off to these windows and have yet to come.
	PutOff int

	// First and FirstNew are the oldest of those that were put off before, and of the others; 0: none.
	First, FirstNew eventqueue.EventID

	// Ran is how many have begun already. They are counted, room or not.
	Ran int
}

func idSet(ids []eventqueue.EventID) map[eventqueue.EventID]bool {
	set := make(map[eventqueue.EventID]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}
