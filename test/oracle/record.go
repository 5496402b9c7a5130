package oracle

import (
	"fmt"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
)

// Kind says what a Record records.
type Kind string

// The kinds, each with the fields that it uses beside Kind, At, Actor and Event.
const (
	// Emitted is an event that is committed: Canvas, Handler, Value, Due,
	// OrderingKey, UniqueKey, UniqueFor, UniqueMode and, with another mode than until_end, KeyTaken; Parent of one
	// that another's completion emits, and Children of one whose completion emits others. Of a row that was
	// written by hand also Attempt, Retries and LockedAt (zero: unlocked), and Foreign.
	Emitted Kind = "emitted"
	// Repeated is an emit that made no event, because Event has its UniqueKey: Canvas,
	// UniqueKey, UniqueMode; At is the moment of the statement.
	Repeated Kind = "repeated"
	// Replaced is an emit that made no event, because Event has its UniqueKey and waits, and that gave Event its Value and
	// time: Canvas, UniqueKey, UniqueMode, MaxWait, Due (what was meant) and RowDue (of the row after it; zero: the same
	// transaction has replaced it again); At is the moment of the statement.
	Replaced Kind = "replaced"
	// EmitUnanswered is an event that is committed and to be notified by its emitter, Actor,
	// whom the database's answer has not reached.
	EmitUnanswered Kind = "emit unanswered"
	// FoundAgain is an event that an emitter found unclaimed, when it looked for what an emit
	// without an answer may have inserted, and notifies.
	FoundAgain Kind = "found again"
	// TakeUnanswered is a pending notification that somebody took or marked as pending, or tried to, and who
	// got no answer in time, or an error: it is marked as pending again.
	TakeUnanswered Kind = "take unanswered"
	// MadeDue is an event whose delay was ended from outside: Due.
	MadeDue Kind = "made due"
	// Changed is an event that an operator edited, or had tried now, and whose lock, if there was
	// one, had expired: Retries (of the row after it), LockTimeout; Due when that is new; and Value
	// when Edited says so.
	Changed Kind = "changed"
	// Cancelled is an event that an operator ended without a run: LockTimeout.
	Cancelled Kind = "cancelled"
	// CancelAsked is an event that an operator cancelled while it ran: the run is to end, and none may follow it.
	CancelAsked Kind = "cancel asked"
	// Granted is an answer of the rate limits: Scope, Granted, and what was told of
	// runs that had begun before, Ran.
	Granted Kind = "granted"
	// Published is one notification handed to the notifier. Failed says that the
	// publisher was told that it failed, whether or not it went out.
	Published Kind = "published"
	// Delivered is one notification handed to a worker.
	Delivered Kind = "delivered"
	// Claimed is a committed claim: Attempt (the new token), Retries (of the row
	// after it), LockedAt and LockTimeout (what the claimant goes by).
	Claimed Kind = "claimed"
	// Renewed is a heartbeat that moved locked_at: Attempt, LockedAt.
	Renewed Kind = "renewed"
	// RunStarted is a handler that was called: Attempt, Value (as it saw it); Actions of a run of a grid.
	RunStarted Kind = "run started"
	// RunEnded is a handler that returned: Attempt, Result.
	RunEnded Kind = "run ended"
	// ActionBegun is an action of a grid that is called: Attempt, Actions, Took. ActionDone is its successful return: Attempt,
	// Actions, Value (its output, which is that of no other call). ActionStored is an output that is stored: Actions, Value.
	ActionBegun  Kind = "action begun"
	ActionDone   Kind = "action done"
	ActionStored Kind = "action stored"
	// PublicationSent is something that a run has published outside of the queue: Attempt, Value (its name, which no other has),
	// Publication, TTL, Due (the expiry of its event's intent; zero: there is none any more) and Failed, which says that its
	// run was not told. PublicationRecorded is a row that says how to delete it: Value. PublicationDeleted is its end, by a
	// run of Event: Attempt, Value, Publication. At the end of a history all of them have been cleaned up.
	PublicationSent     Kind = "publication sent"
	PublicationRecorded Kind = "publication recorded"
	PublicationDeleted  Kind = "publication deleted"
	// Written is the end of a claim that the database accepted: Attempt, Label,
	// Due when the event waits again with a new delay_until, and InTx when the
	// handler wrote it in a transaction of its own.
	Written Kind = "written"
	// Refused is the end of a claim that the fence refused: Attempt, Label.
	Refused Kind = "refused"
	// Spoilt is a write of Event that did not happen, because the database refused the statement for
	// the row of another event: Meant, which is Claimed, Renewed or Written.
	Spoilt Kind = "spoilt"
	// TakenBack is an expired lock that was taken away with the turn of its event, so
	// that others of a limit run: Retries (of the row after it), LockTimeout.
	TakenBack Kind = "taken back"
	// Logged is a row that entered event_log: Status, Value.
	Logged Kind = "logged"
	// RuleAsked and RuleAdded are the call and the successful return of adding a
	// rule: Rule, Scope; of the return also Changed. Both carry the same Call.
	RuleAsked Kind = "rule asked"
	RuleAdded Kind = "rule added"
	// LiftAsked and RuleLifted are those of lifting one.
	LiftAsked  Kind = "lift asked"
	RuleLifted Kind = "rule lifted"
	// ProcessEnded is the end of a process, Actor, in an orderly way.
	ProcessEnded Kind = "process ended"
	// SlotEmitted is a row of cron_records: Cron, Slot, Event.
	SlotEmitted Kind = "slot emitted"
)

// Result is how a run of a handler ended.
type Result string

// The results.
const (
	OK        Result = "ok"        // it returned nil
	Failed    Result = "failed"    // an error, a panic or a time-out
	Permanent Result = "permanent" // the error that ends an event
	Snoozed   Result = "snoozed"
	Cut       Result = "cut" // its context ended under it: lock lost or worker stopped
	// Stopping is Cut by a worker that certainly was stopping: no attempt is used.
	Stopping Result = "stopping"
)

// Record is one thing that happened. Which fields count depends on Kind.
type Record struct {
	Kind Kind
	// At is when it took effect by the database's clock.
	At time.Time
	// Actor is the process that did it, such as the name of a worker. Empty when
	// it is not known.
	Actor string
	Event eventqueue.EventID

	Canvas  eventqueue.CanvasID
	Handler eventqueue.HandlerKey
	Value   string
	Due     time.Time
	// OrderingKey is empty for an event that is in no line.
	OrderingKey string
	// UniqueKey is empty for an event without one.
	UniqueKey  string
	UniqueMode string // empty: until_end
	UniqueFor  time.Duration
	MaxWait    time.Duration
	KeyTaken   time.Time // by the statement, which may be long before its commit
	RowDue     time.Time
	Parent     eventqueue.EventID
	Children   []eventqueue.HandlerKey
	// Foreign reports whether no program has a handler for it.
	Foreign bool

	Attempt     int32
	Retries     int
	Together    int       // of Renewed: the run of a suspect begins, and so many suspects run in its worker
	LockedAt    time.Time // zero: At
	LockTimeout time.Duration
	Label       machine.Label
	Result      Result
	Status      string // COMPLETED, FAILED or CANCELLED
	Failed      bool
	InTx        bool
	Edited      bool // it has a new Value

	Granted, Ran int

	Meant Kind

	// Actions names those of a grid, or the one of a record, each with what its output depends on.
	Actions []string
	Took    map[string]string // by the action whose output it is

	Publication string        // the key of those that replace each other
	TTL         time.Duration // how long it stays at the least

	Rule    operate.RuleType
	Scope   eventqueue.Scope
	Width   Width // of the rule
	Call    int64 // ties the return of a call to its beginning
	Changed bool  // the rule was added or removed, and not so before

	Cron int64
	Slot time.Time
}

// lockedAt is the row's locked_at after a claim or a renewal.
func (r *Record) lockedAt() time.Time {
	if r.LockedAt.IsZero() {
		return r.At
	}
	return r.LockedAt
}

// clock is how times are shown.
const clock = "15:04:05.000000"

// String shows the record on one line, with the fields that its kind uses.
func (r Record) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %-11s", r.At.UTC().Format(clock), r.Kind)
	field := func(name string, value any) { fmt.Fprintf(&b, " %s=%v", name, value) }
	if r.Event != 0 {
		field("event", r.Event)
	}
	if r.Actor != "" {
		field("by", r.Actor)
	}
	r.describe(field)
	return b.String()
}

// describe calls field with the fields that the kind uses beside those of all kinds.
func (r Record) describe(field func(name string, value any)) {
	switch r.Kind {
	case Emitted:
		field("handler", r.Handler)
		field("due", r.Due.UTC().Format(clock))
		if r.OrderingKey != "" {
			field("key", r.OrderingKey)
		}
		if r.UniqueKey != "" {
			field("unique", r.UniqueKey)
			field("for", r.UniqueFor)
			field("mode", r.UniqueMode)
		}
		if r.Parent != 0 {
			field("parent", r.Parent)
		}
		if !r.LockedAt.IsZero() {
			field("locked", r.LockedAt.UTC().Format(clock))
		}
	case Repeated:
		field("unique", r.UniqueKey)
	case Replaced:
		field("unique", r.UniqueKey)
		field("due", r.Due.UTC().Format(clock))
		field("at most", r.MaxWait)
		field("row's", r.RowDue.UTC().Format(clock))
		field("value", r.Value)
	case MadeDue:
		field("due", r.Due.UTC().Format(clock))
	case Changed:
		field("retries", r.Retries)
		if !r.Due.IsZero() {
			field("due", r.Due.UTC().Format(clock))
		}
		if r.Edited {
			field("value", r.Value)
		}
	case Granted:
		field("of", r.Scope)
		field("granted", r.Granted)
		field("ran", r.Ran)
	case Published:
		if r.Failed {
			field("failed", true)
		}
	case Claimed:
		field("attempt", r.Attempt)
		field("retries", r.Retries)
	case Renewed, RunStarted:
		field("attempt", r.Attempt)
	case ActionBegun, ActionDone, ActionStored:
		field("attempt", r.Attempt)
		field("actions", r.Actions)
		field("took", r.Took)
		field("value", r.Value)
	case PublicationSent, PublicationRecorded, PublicationDeleted:
		r.describePublication(field)
	case RunEnded:
		field("attempt", r.Attempt)
		field("result", r.Result)
	case Written, Refused:
		field("attempt", r.Attempt)
		field("label", r.Label)
		if !r.Due.IsZero() {
			field("due", r.Due.UTC().Format(clock))
		}
	case Spoilt:
		field("meant", r.Meant)
	case Logged:
		field("status", r.Status)
	case RuleAsked, RuleAdded, LiftAsked, RuleLifted:
		field("rule", r.Rule)
		field("of", ruleKey{r.Rule, r.Scope, r.Width}.about())
		if r.Kind == RuleAdded || r.Kind == RuleLifted {
			field("changed", r.Changed)
		}
	case SlotEmitted:
		field("cron", r.Cron)
		field("slot", r.Slot.UTC().Format(time.RFC3339))
	}
}

func (r Record) describePublication(field func(name string, value any)) {
	field("attempt", r.Attempt)
	field("name", r.Value)
	if r.Kind == PublicationSent {
		field("of", r.Publication)
		field("for", r.TTL)
		field("intended until", r.Due.UTC().Format(clock))
		field("failed", r.Failed)
	}
}
