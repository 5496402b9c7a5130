package oracle

import (
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// History is what is known of one attack on a queue.
type History struct {
	// Records are in the order in which they took effect, for each event on its
	// own: of two changes of a row, the one that committed first stands first.
	// Runs are tied to claims by their token, so they may stand anywhere.
	Records []Record

	Faults []Fault
	Crons  []Cron
	Limits []LimitChange // in the order in which they were made
	Rates  []RateChange  // likewise
	Final  Final
	Bounds Bounds
}

// Add appends a record. It is not safe for concurrent use.
func (h *History) Add(r Record) { h.Records = append(h.Records, r) }

// FaultKind says what a fault was.
type FaultKind string

// The kinds of faults. Clock skew has none: it excuses nothing.
const (
	// Killed lasts from the death of a process to when its successor works, and
	// at least until its locks have expired.
	Killed FaultKind = "killed"
	// Frozen lasts from SIGSTOP to SIGCONT, or to when the process had caught up.
	Frozen FaultKind = "frozen"
	// LostDatabase is a process that could not reach the database, or of which
	// one statement failed, hung or had an unknown outcome.
	LostDatabase FaultKind = "lost database"
	// NotifierFault is anything that the notifier or the way to it did. It never excuses
	// an extra run (I3).
	NotifierFault FaultKind = "notifier"
	// AnswerFault is an acknowledgement, or another answer to the notifier, that failed or hung, or a
	// time when all of them did. It excuses nothing: notifications come again, and the work goes on.
	AnswerFault FaultKind = "answer to the notifier"
	// RowRefused is a row that the database refuses to write, and the time until which it may not have
	// been tried again after that. Event names its event, and it excuses no other one.
	RowRefused FaultKind = "row refused"
	// Hung is a handler that ran past its timeout and ignored its context: its
	// lock is not renewed any more. Event names its event.
	Hung FaultKind = "handler hung"
	// Stopped is a process that was stopped in an orderly way. It excuses a lack
	// of progress and no extra run, unless a handler outlived the stop (Hung).
	Stopped FaultKind = "stopped"
)

// Fault is something that was done to a process, or to all.
type Fault struct {
	Kind FaultKind
	// Actor is the process; empty means all of them.
	Actor string
	// Event narrows the fault to one event; 0 means all.
	Event    eventqueue.EventID
	From, To time.Time // To zero: it never ended
}

// String shows the fault on one line.
func (f Fault) String() string {
	actor, to := f.Actor, "the end"
	if actor == "" {
		actor = "everybody"
	}
	if !f.To.IsZero() {
		to = f.To.UTC().Format(clock)
	}
	return fmt.Sprintf("%s fault       %s, %s, until %s", f.From.UTC().Format(clock), f.Kind, actor, to)
}

func (f *Fault) overlaps(from, to time.Time) bool {
	return !f.From.After(to) && (f.To.IsZero() || !f.To.Before(from))
}

// Cron is a definition under test, enabled from its start to the end.
type Cron struct {
	ID     int64
	Policy Policy
	// Slots are all that were due, in order, except those so close to the end
	// that nobody had to have emitted them.
	Slots []time.Time
}

// Policy is what becomes of missed slots.
type Policy string

// The policies, spelled as in the database.
const (
	Latest Policy = "latest"
	All    Policy = "all"
	None   Policy = "none"
)

// Final is the state of the tables at the end.
type Final struct {
	At    time.Time
	Rows  []Row
	Log   []LogRow
	Rules []RuleRow
	// Outputs has, for each output of a grid that is stored, its event.
	Outputs []eventqueue.EventID
}

// Row is a row of events_v2 at the end.
type Row struct {
	Event   eventqueue.EventID
	Due     time.Time
	Retries int
	Attempt int32
	Locked  bool
}

// LogRow is a row of event_log at the end.
type LogRow struct {
	Event  eventqueue.EventID
	Status string // COMPLETED, FAILED or CANCELLED
	Value  string
}

// RuleRow is a row of scheduling_rules at the end.
type RuleRow struct {
	Type  operate.RuleType
	Scope eventqueue.Scope
	Width Width
}

// Width says that a rule is about more or fewer events than those of its scope, as in operate.RuleScope.
type Width struct {
	Prefix   bool
	Modifier string
}

// Bounds are what the judgement goes by.
type Bounds struct {
	// LockTimeout is that of claims that do not say.
	LockTimeout time.Duration

	// MaxRetries bounds the retries of a handler; where versions differ, least
	// and most. Nil means 2 and 2.
	MaxRetries func(eventqueue.HandlerKey) (least, most int)

	// Snoozes bounds in the same way how often an event is snoozed in a row. Nil
	// means 100 and 100.
	Snoozes func(eventqueue.HandlerKey) (least, most int)

	// RetainHistory says that every completed event must be COMPLETED in event_log.
	RetainHistory bool

	// AsksKnown says that CancelAsked is recorded for every event that an operator cancelled while it ran.
	AsksKnown bool

	// LostAfter is the relay's (I11). An event may be published at most
	//
	//	6 · (1 + repeats + finds + unanswered takes + claims + changes + lifts of its scope + failed publishes) + lifetime / (10 · LostAfter)
	//
	// times: one silence costs at most 5 notifications at growing intervals
	// before the longest interval, which is 10 · LostAfter, is reached. While a rule
	// is certainly in force, it is twice, or three times in an ordering group, and once
	// more for each repeat, each publish that failed and each run that ended meanwhile, and twice more for each change by an
	// operator, each TakeUnanswered and each FoundAgain.
	// 0 means that I11 is not judged.
	LostAfter time.Duration

	// CheckEvery is the shortest wait, on average, between two deliveries of one
	// notification (I11). An event may be delivered at most
	//
	//	published · (8 · (1 + claims) + lifetime / CheckEvery)
	//
	// times, where its lifetime goes on to the last delivery. 0 means one second.
	CheckEvery time.Duration

	// Alone says that workers find events without notifications, so that no fault of the
	// notifier excuses a lack of progress (I13).
	Alone bool

	// Untold is how many events of a handler with an approximate rate limit a worker may
	// have let begin without having told the database.
	Untold int

	// Beside is how soon an event has to be written that was in a statement which the database
	// refused for the row of another event (I15). 0 means that this is not judged.
	Beside time.Duration

	// Progress is how soon an event that may run has to be claimed (I13), counted from
	// the last obstacle and from when its notification counts as lost: with a LostAfter,
	//
	//	Progress + the time it has been due, within LostAfter and 10 · LostAfter
	//
	// after the last fault, rule, run under its limit, or event before it in its ordering
	// group. 0 means that I13 is not judged.
	Progress time.Duration
}

func (b *Bounds) snoozes(key eventqueue.HandlerKey) (least, most int) {
	if b.Snoozes == nil {
		return 100, 100
	}
	return b.Snoozes(key)
}

func (b *Bounds) maxRetries(key eventqueue.HandlerKey) (least, most int) {
	if b.MaxRetries == nil {
		return 2, 2
	}
	return b.MaxRetries(key)
}

// LimitChange is a change of a concurrency limit: of a canvas, of one of its
// handlers, or of ordering keys.
type LimitChange struct {
	At time.Time
	// Limit has a Max of 0 when it was removed.
	Limit operate.ConcurrencyLimit
}

// RateChange is a rate limit that was set, or removed.
type RateChange struct {
	At time.Time
	// Limit has neither PerMinute nor PerDay when it was removed.
	Limit operate.RateLimit
}
