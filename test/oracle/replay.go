package oracle

import (
	"time"

	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
)

// replay walks over the changes of a row and holds each against what the row
// must have been: I4, I5, I6, and the count of I9.
func (j *judgement) replay(l *life) {
	if l.emitted == nil {
		j.accuse(l, "I1", "it is in the history, but nobody emitted it")
		return
	}
	w := &walk{judgement: j, life: l, attempt: l.emitted.Attempt, due: l.emitted.Due, free: l.emitted.At}
	w.retries, l.value = l.emitted.Retries, l.emitted.Value
	if locked := l.emitted.LockedAt; !locked.IsZero() { // by hand: nobody's run
		w.holder = &hold{claim: l.emitted, lockedAt: locked}
	}
	for _, r := range l.changes {
		switch r.Kind {
		case MadeDue:
			w.due = r.Due
		case Claimed:
			w.claimed(r)
		case Renewed:
			w.renewed(r)
		case Written:
			w.written(r)
		case Refused:
			w.refused(r)
		case TakenBack:
			w.takenBack(r)
		case Changed:
			w.changed(r)
		case Replaced:
			w.replaced(r)
		case Cancelled:
			w.cancelled(r)
		case CancelAsked:
			if w.asked == nil {
				w.asked = r
			}
		}
	}
}

// walk is the row as it must be between two changes.
type walk struct {
	*judgement
	*life
	attempt int32
	retries int
	due     time.Time
	free    time.Time // since when it has been unlocked, when it is
	holder  *hold     // nil: unlocked
	company int       // the column suspect; 0: no suspect
	gone    bool
	again   time.Time // the moment of an emit that replaced the event twice: between, it was due at a time that is not known
}

func (w *walk) claimed(r *Record) {
	if w.gone {
		w.accuse(w.life, "I5", "claimed with token %d after it had ended", r.Attempt)
	}
	if r.Attempt != w.attempt+1 {
		w.accuse(w.life, "I5", "a claim got token %d after token %d: every claim must raise it by one", r.Attempt, w.attempt)
	}
	at := r.lockedAt()
	if at.Before(w.due) {
		w.accuse(w.life, "I6", "claimed %s before its delay_until", w.due.Sub(at))
	}
	free := w.free
	if old := w.holder; old != nil {
		expiry := old.lockedAt.Add(w.timeout(r))
		if at.Before(expiry) {
			w.accuse(w.life, "I4", "claimed with token %d while token %d was valid for another %s", r.Attempt, w.attempt, expiry.Sub(at))
		}
		old.next = r
		free = expiry
		w.takeLock()
	}
	if r.Retries != w.retries {
		w.accuse(w.life, "I9", "claim %d found retries %d: it must be %d, the failed runs so far", r.Attempt, r.Retries, w.retries)
		w.retries = r.Retries
	}
	if len(w.holds) > 0 {
		w.holds[len(w.holds)-1].next = r
	}
	w.holder = &hold{claim: r, lockedAt: at, due: w.due, free: free, value: w.value}
	w.holds = append(w.holds, w.holder)
	w.attempt = r.Attempt
}

func (w *walk) timeout(r *Record) time.Duration {
	if r.LockTimeout != 0 {
		return r.LockTimeout
	}
	return w.Bounds.LockTimeout
}

// stale tells why a write does not belong to the claim that holds the row.
func (w *walk) stale(r *Record) string {
	switch {
	case w.gone:
		return "the event had ended"
	case w.holder == nil:
		return "nobody held it"
	case r.Attempt != w.attempt:
		return "another claim held it"
	case r.Actor != "" && w.holder.claim.Actor != "" && r.Actor != w.holder.claim.Actor:
		return "another worker held it"
	default:
		return ""
	}
}

func (w *walk) renewed(r *Record) {
	if why := w.stale(r); why != "" {
		w.accuse(w.life, "I5", "token %d was renewed by %s, though %s", r.Attempt, r.Actor, why)
		return
	}
	if late := w.holder.lockedAt.Add(takenForLost(w.timeout(r))); w.holder.gaveUp.IsZero() && r.lockedAt().After(late) {
		w.holder.gaveUp = late
	}
	w.holder.lockedAt = r.lockedAt()
	switch {
	case r.Together > 0:
		if w.holder.together == 0 {
			w.holder.begins = r.At
		}
		w.company, w.holder.together, w.holder.begun = r.Together, r.Together, true
	case w.company == 0:
		w.holder.begun = true
	}
}

// takeLock is what becomes of an event whose lock has expired: a suspect, unless it was one and the only one in its
// worker (I15). Of what did not record that it began, nobody knows whether it did (I18).
func (w *walk) takeLock() {
	switch {
	case w.company == 0:
		w.company = worker.AnyCompany
	case w.holder.begun && w.company == 1:
		w.holder.charged = true
		w.retries++
	case w.holder.begun:
		w.company /= 2
	}
}

func (w *walk) written(r *Record) {
	if why := w.stale(r); why != "" {
		w.accuse(w.life, "I5", "%s was written with token %d by %s, though %s", r.Label, r.Attempt, r.Actor, why)
		return
	}
	w.holder.end, w.holder, w.free = r, nil, r.At
	switch r.Label {
	case machine.ExecutesToCompletion, machine.RetryTooMany, machine.FailedForGood, machine.Cancelled:
		w.gone, w.ended = true, r
	case machine.RetryAllowed:
		w.retries++
	}
	if w.asked != nil && !w.gone {
		w.accuse(w.life, "I1", "%s was written with token %d, and it waits, though an operator had cancelled it", r.Label, r.Attempt)
	}
	if r.Label != machine.Released && r.Label != machine.OverLimit {
		w.company = 0
	}
	if !r.Due.IsZero() {
		w.due = r.Due
	}
}

func (w *walk) refused(r *Record) {
	if w.stale(r) == "" {
		w.accuse(w.life, "I5", "%s was refused with token %d, which was valid", r.Label, r.Attempt)
	}
}

// takenBack ends a claim that had expired. Its run has failed, if it is known to have begun.
func (w *walk) takenBack(r *Record) {
	old := w.holder
	if w.gone || old == nil {
		w.accuse(w.life, "I5", "a lock was taken back, and there was none")
		return
	}
	if expiry := old.lockedAt.Add(w.timeout(r)); r.At.Before(expiry) {
		w.accuse(w.life, "I4", "token %d was taken back while it was valid for another %s", w.attempt, expiry.Sub(r.At))
	}
	if w.takeLock(); r.Retries != w.retries {
		w.accuse(w.life, "I9", "retries are %d when token %d was taken back: they must be %d", r.Retries, w.attempt, w.retries)
	}
	w.retries, w.holder, w.free = r.Retries, nil, r.At
}

// changed is what an operator did to an event that nobody ran, or whose lock had expired.
func (w *walk) changed(r *Record) {
	switch {
	case w.gone:
		w.accuse(w.life, "I1", "it was changed after it had ended")
		return
	case w.holder != nil:
		w.freed++
		w.takenBack(r)
	case r.Retries != w.retries:
		w.accuse(w.life, "I9", "retries are %d after it was changed: they must be %d", r.Retries, w.retries)
		w.retries = r.Retries
	}
	w.free = r.At
	if !r.Due.IsZero() {
		w.due = r.Due
	}
	if r.Edited {
		w.value = r.Value
	}
}

// replaced gives an event that waits the value and the time of an emit. After a failure it is not tried earlier than it would
// have been. What has its place in an ordering group or under a limit keeps its time.
func (w *walk) replaced(r *Record) {
	if w.gone || w.holder != nil {
		w.accuse(w.life, "unique", "an emit replaced it while it did not wait")
		return
	}
	w.value = r.Value
	if r.RowDue.IsZero() {
		w.again = r.At
		return
	}
	due := earliest(latest(r.Due, r.At), latest(w.emitted.KeyTaken.Add(r.MaxWait), r.At))
	if r.MaxWait == 0 {
		due = latest(r.Due, r.At)
	}
	if w.retries > 0 {
		due = latest(due, w.due)
	}
	placed := !w.due.After(r.At) || len(w.holds) > 0
	keeps := placed && (w.emitted.OrderingKey != "" || len(w.Limits) > 0) && near(r.RowDue, w.due)
	if !keeps && !near(r.RowDue, due) && !r.At.Equal(w.again) {
		w.accuse(w.life, "unique", "an emit replaced it and made it due at %s: it has to be %s", r.RowDue.UTC().Format(clock), due.UTC().Format(clock))
	}
	w.due = r.RowDue
}

// near reports whether two times differ by no more than what is lost where they are rounded.
func near(a, b time.Time) bool { return a.Sub(b).Abs() <= time.Millisecond }

// cancelled ends an event that nobody ran, or whose lock had expired.
func (w *walk) cancelled(r *Record) {
	if w.gone {
		w.accuse(w.life, "I1", "it was cancelled after it had ended")
		return
	}
	if old := w.holder; old != nil {
		if expiry := old.lockedAt.Add(w.timeout(r)); r.At.Before(expiry) {
			w.accuse(w.life, "I4", "it was cancelled while token %d was valid for another %s", w.attempt, expiry.Sub(r.At))
		}
	}
	w.holder, w.gone, w.ended = nil, true, r
}
