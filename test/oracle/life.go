package oracle

import (
	"time"

	"eventsv2/eventqueue"
)

// life is all that is known of one event.
type life struct {
	id      eventqueue.EventID
	records []*Record

	emitted    *Record
	unanswered *Record   // its emit, if it was not answered
	repeats    []*Record // emits that were refused because of its key
	again      int       // how often it was found by an emitter without an answer
	untaken    int       // how often a notification of it was taken without an answer
	changes    []*Record // Claimed, Renewed, Written, Refused, TakenBack, MadeDue, Changed, Replaced, Cancelled and CancelAsked, in order
	starts     map[int32]*Record
	ends       map[int32]*Record
	logged     []*Record
	spoilt     []*Record
	published  []*Record
	delivered  []*Record
	row        *Row
	accused    int // how often
	log        []*LogRow

	// Made by replay:
	holds []*hold
	ended *Record // the write that deleted the row
	value string  // at the end
	asked *Record // that it was cancelled while it ran; nil: it was not
	// freed counts the expired locks that operators took away.
	freed int
}

// hold is one claim and what became of it.
type hold struct {
	claim *Record
	// lockedAt moves with renewals.
	lockedAt time.Time
	// gaveUp is when its worker took it for lost although a renewal came through later; zero: it did not.
	gaveUp time.Time
	// begun: it was recorded that its run had begun, as every renewal does.
	begun bool
	// together is how many suspects ran in its worker when that was recorded; 0: it was no suspect.
	// begins is when it was first recorded.
	together int
	begins   time.Time
	// charged: the lock expired, and that used an attempt.
	charged bool
	end     *Record // the accepted write, or nil
	next    *Record // the claim that followed, or nil
	// due is the row's delay_until when it was claimed, and free since when it
	// had been unlocked.
	due, free time.Time
	value     string // of the row when it was claimed
}

func (l *life) add(r *Record) {
	l.records = append(l.records, r)
	switch r.Kind {
	case Emitted:
		l.emitted = r
	case Repeated:
		l.repeats = append(l.repeats, r)
	case EmitUnanswered:
		l.unanswered = r
	case FoundAgain:
		l.again++
	case TakeUnanswered:
		l.untaken++
	case Claimed, Renewed, Written, Refused, TakenBack, MadeDue, Changed, Replaced, Cancelled, CancelAsked:
		l.changes = append(l.changes, r)
	case RunStarted:
		l.starts[r.Attempt] = r
	case RunEnded:
		l.ends[r.Attempt] = r
	case Spoilt:
		l.spoilt = append(l.spoilt, r)
	case Logged:
		l.logged = append(l.logged, r)
	case Published:
		l.published = append(l.published, r)
	case Delivered:
		l.delivered = append(l.delivered, r)
	}
}

// limited is what a limit is for.
type limited struct {
	canvas       eventqueue.CanvasID
	module, name string // empty: the canvas
}

// limitedOf are the limits that may concern an event.
func limitedOf(emitted *Record) [2]limited {
	return [2]limited{{emitted.Canvas, emitted.Handler.Module, emitted.Handler.Name}, {canvas: emitted.Canvas}}
}

// span is a time during which a claim was valid.
type span struct {
	of       *life
	from, to time.Time
}

func scopeOf(emitted *Record) eventqueue.Scope {
	return eventqueue.Scope{Canvas: emitted.Canvas, Module: emitted.Handler.Module, Name: emitted.Handler.Name}
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
