package record

import (
	"hash/crc32"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/test/oracle"
)

// Run is one run as its handler recorded it.
type Run struct {
	Process string
	// Attempt is a negative number of the run where the handler could not know it.
	Attempt int32
	Start   time.Time
	Sum     uint32 // Checksum of the value as the handler saw it
	// Ended is false when the end is not on record.
	Ended  bool
	End    time.Time
	Result oracle.Result
}

// Checksum tells whether two values are the same.
func Checksum[Value ~string | ~[]byte](value Value) uint32 { return crc32.ChecksumIEEE([]byte(value)) }

// Slack is for clocks that are read one after the other.
const Slack = 50 * time.Millisecond

// Over is when a run had ended for its worker. Of one in a web server, only that knows, and its worker has hung
// up by the timeout of the handler.
func (r *Run) Over(timeout time.Duration) time.Time {
	if given := r.Start.Add(timeout - Slack); r.Attempt < 0 && given.Before(r.End) {
		return given
	}
	return r.End
}

// Event is the trace of an event with what only those know who emitted it, ran it, and watched the queue.
type Event struct {
	*Trace
	Runs []Run

	OrderingKey string // with which it was emitted, whatever the row has
	UniqueKey   string
	UniqueFor   time.Duration
	Children    []eventqueue.HandlerKey // of a typed event
	Dispatch    bool                    // whether it is one whose completion has emitted children
	Parent      eventqueue.EventID      // of such a child
	ByHand      bool                    // whether its row was written as no emit writes it
	NotBefore   time.Time               // what delay_until must not be before

	LockTimeout time.Duration
	Timeout     time.Duration // of its handler
	Ignores     bool          // whether its handler ignores that this is over
	Rated       bool          // whether it is under a rate limit
	Effects     []int32       // the attempts that wrote something in the transaction that completed it
	// Operator reports whether a writer is one of those who change what waits, and not a program.
	Operator func(writer string) bool
	// Releases reports whether a change made an event due that a rate limit had put off. May be nil.
	Releases func(*Change) bool

	holder *Change // while it is reported
}

// Operates reports whether a change was made by an operator, and not by what advances groups for it, or
// notifies.
func (e *Event) Operates(ch *Change) bool {
	return ch.Op == Update && e.Operator(ch.Writer) && ch.New.DueMicros != ch.Old.DueMicros
}

// PutOff reports whether a claim was given back, and later, because of a rate limit:
// nothing was run.
func (e *Event) PutOff(claim, back *Change) bool {
	return e.Rated && back.New.DueMicros > back.Old.DueMicros && back.New.Retries == back.Old.Retries && len(e.RunsOf(claim)) == 0
}

// Hung returns the run of a claim that went on past its timeout, as its event
// asked for, or nil.
func (e *Event) Hung(claim *Change) *Run {
	if !e.Ignores {
		return nil
	}
	for _, r := range e.RunsOf(claim) {
		if !r.Ended || r.End.Sub(r.Start) > e.Timeout {
			return &r
		}
	}
	return nil
}

// RunsOf returns the runs that belong to a claim. Where attempts are not known a
// run belongs to the last claim of its process before it.
func (e *Event) RunsOf(claim *Change) []Run {
	var next time.Time // the following claim of the same process
	for i := range e.Changes {
		ch := &e.Changes[i]
		if ch.At.After(claim.At) && ch.Writer == claim.Writer && ch.Claims() {
			next = ch.At
			break
		}
	}
	var runs []Run
	for _, r := range e.Runs {
		switch {
		case r.Process != claim.Writer:
		case r.Attempt == claim.New.Attempts:
			runs = append(runs, r)
		case r.Attempt < 0 && !r.Start.Before(claim.At.Add(-Slack)) && (next.IsZero() || r.Start.Before(next)):
			runs = append(runs, r)
		}
	}
	return runs
}

// Dispatched reports whether a claim completed a typed event, as the events of its handlers prove:
// they are emitted in the transaction that completes it.
func (e *Event) Dispatched(attempt int32) bool {
	last := e.Changes[len(e.Changes)-1]
	return e.Dispatch && last.Op == Delete && last.Old.Attempts == attempt
}

// endLabel is the label under which the row was deleted, as event_log and the
// last run have it.
func (e *Event) endLabel(deleted *Change) machine.Label {
	switch {
	case e.Ended(Cancelled):
		return machine.Cancelled
	case !e.Ended(Failed):
		return machine.ExecutesToCompletion
	}
	for _, r := range e.Runs {
		if r.Process == deleted.Writer && r.Ended && r.Result == oracle.Permanent {
			return machine.FailedForGood
		}
	}
	return machine.RetryTooMany
}
