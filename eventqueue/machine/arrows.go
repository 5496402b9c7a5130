package machine

import "fmt"

// State is a box of the diagram, spelled as documented.
type State string

// The documented states. Queue and End are where a notification is while no worker holds it.
const (
	Queue      State = "Queue"
	EventLoad  State = "EventLoad"
	PauseCheck State = "PauseCheck"
	DelayCheck State = "DelayCheck"
	LockCheck  State = "LockCheck"
	LockClaim  State = "LockClaim"
	Process    State = "Process"
	RetryCheck State = "RetryCheck"
	Delete     State = "Delete"
	End        State = "End"
)

// Label is the result of a step; it names an arrow. Labels are also the one vocabulary for why
// something happened, in logs, counters and tests.
type Label string

// The documented labels.
const (
	ReceiveNotification  Label = "Receive notification"
	EventPresent         Label = "EventPresent"
	EventMissing         Label = "EventMissing"
	PauseNone            Label = "PauseNone"
	Paused               Label = "Paused"
	Blocked              Label = "Blocked"
	DelayNone            Label = "DelayNone"
	DelayNotYet          Label = "DelayNotYet"
	LockNone             Label = "LockNone"
	LockExpired          Label = "LockExpired"
	IsLocked             Label = "IsLocked"
	Claimed              Label = "Claimed"
	LockClaimFailed      Label = "LockClaimFailed"
	ExecutesToCompletion Label = "ExecutesToCompletion"
	Exception            Label = "Exception"
	RetryAllowed         Label = "RetryAllowed"
	RetryTooMany         Label = "RetryTooMany"

	// Deleted is the one arrow that the documents draw without a label.
	Deleted Label = ""
)

// Labels that the documents leave open. Each has a reason in its arrow's Why.
const (
	HandlerUnknown Label = "HandlerUnknown"
	BreakerOpen    Label = "BreakerOpen"
	Snoozed        Label = "Snoozed"
	FailedForGood  Label = "FailedForGood"
	Released       Label = "Released"
	LockLost       Label = "LockLost"
	NotItsTurn     Label = "NotItsTurn"
	OverLimit      Label = "OverLimit"
	Cancelled      Label = "Cancelled"
)

// Arrow leads from one state to the next under a label.
type Arrow struct {
	From  State
	Label Label
	To    State

	// Note is what the diagram says about the arrow beside its label.
	Note string

	// Why is the reason for an arrow that the documented diagram lacks; it is empty for the
	// documented ones.
	Why string
}

// Documented reports whether the arrow is one of the documented diagram.
func (a Arrow) Documented() bool { return a.Why == "" }

// Arrows returns the whole diagram, in reading order. The slice is the
// caller's.
func Arrows() []Arrow {
	all := make([]Arrow, len(arrows))
	copy(all, arrows)
	return all
}

var arrows = []Arrow{
	// The way of an event that just runs.
	{From: Queue, Label: ReceiveNotification, To: EventLoad},
	{From: EventLoad, Label: EventPresent, To: PauseCheck},
	{From: PauseCheck, Label: PauseNone, To: DelayCheck},
	{From: DelayCheck, Label: DelayNone, To: LockCheck},
	{From: LockCheck, Label: LockNone, To: LockClaim},
	{From: LockCheck, Label: LockExpired, To: LockClaim},
	{From: LockClaim, Label: Claimed, To: Process},
	{From: Process, Label: ExecutesToCompletion, To: Delete},
	{From: Delete, Label: Deleted, To: End},

	// The event has left the queue before: no further try is needed.
	{From: EventLoad, Label: EventMissing, To: End},
	// Lifting the rule has every waiting event notified again.
	{From: PauseCheck, Label: Paused, To: End},
	{From: PauseCheck, Label: Blocked, To: End},
	// Too early, or another worker has it: try again later.
	{From: DelayCheck, Label: DelayNotYet, To: Queue},
	{From: LockCheck, Label: IsLocked, To: Queue},
	{From: LockClaim, Label: LockClaimFailed, To: Queue},
	{From: LockClaim, Label: HandlerUnknown, To: Queue,
		Why: "this worker has no such handler: another one may, so no lock is taken and no attempt is used"},

	{From: LockClaim, Label: BreakerOpen, To: Queue, Note: "delay",
		Why: "what its handler calls is away: no lock is taken and no attempt is used"},

	{From: LockClaim, Label: NotItsTurn, To: End,
		Why: "others of its ordering group are before it: when the group advances to it, it is notified again"},

	// The run failed.
	{From: Process, Label: Exception, To: RetryCheck},
	{From: RetryCheck, Label: RetryAllowed, To: Queue, Note: "increment, delay"},
	{From: RetryCheck, Label: RetryTooMany, To: Delete},
	{From: RetryCheck, Label: Exception, To: Queue},
	{From: Process, Label: FailedForGood, To: Delete,
		Why: "the handler said that trying again is of no use"},
	{From: Process, Label: Cancelled, To: Delete,
		Why: "an operator cancelled it while it ran, and its run did not complete it, or it was claimed after that and is not run again"},

	// The run ended without a verdict on the event.
	{From: Process, Label: Snoozed, To: Queue, Note: "delay",
		Why: "the handler asked for a later time; no attempt is used"},
	{From: Process, Label: Released, To: Queue,
		Why: "the worker stops: the lock goes back and no attempt is used"},
	{From: Process, Label: OverLimit, To: Queue, Note: "delay",
		Why: "a rate limit has no room: the handler is not called, and no retry is used"},

	// The completion could not be written.
	{From: Delete, Label: Exception, To: Queue,
		Why: "the database did not answer until the worker had to stop"},
	{From: Delete, Label: LockLost, To: End,
		Why: "the fence refused the write: the event ended, or another worker holds it"},
	{From: RetryCheck, Label: LockLost, To: End,
		Why: "as for Delete"},
	{From: Process, Label: LockLost, To: End,
		Why: "as for Delete, when a snooze or a release was to be written"},
}

// Follow returns the arrow that leaves a state under a label. It panics when the table has none:
// that is a mistake in the program, not a state of the world. It reads the table from its
// beginning, which has the way of an event that just runs: for so few arrows that is faster than an
// index.
func Follow(from State, label Label) Arrow {
	for i := range arrows {
		if a := &arrows[i]; a.From == from && a.Label == label {
			return *a
		}
	}
	panic(fmt.Sprintf("machine: no arrow |%s| leaves %s", label, from))
}
