package oracle

import (
	"eventsv2/eventqueue/machine"
)

// The statuses of event_log.
const (
	completed = "COMPLETED"
	failed    = "FAILED"
	cancelled = "CANCELLED"
)

// checkEnd holds how an event ended against I1.
func (j *judgement) checkEnd(l *life) {
	if l.emitted == nil {
		return
	}
	if l.emitted.Foreign {
		if l.row == nil || len(l.log) > 0 || len(l.holds) > 0 {
			j.accuse(l, "I1", "no program has its handler, and it was touched: %d claims, %d rows of event_log", len(l.holds), len(l.log))
		}
		return
	}
	switch {
	case len(l.log) > 1:
		j.accuse(l, "I1", "it stands %d times in event_log", len(l.log))
	case l.row != nil && len(l.log) > 0:
		j.accuse(l, "I1", "it is in events_v2 and, as %s, in event_log", l.log[0].Status)
	case l.row != nil && l.ended != nil:
		j.accuse(l, "I1", "it is in events_v2 though it was deleted")
	case l.row != nil:
		j.checkWaiting(l)
	case l.ended == nil:
		j.accuse(l, "I1", "lost: it is gone from events_v2, and no write ended it")
	case l.ended.Kind == Cancelled:
		if len(l.log) == 0 || l.log[0].Status != cancelled {
			j.accuse(l, "I1", "lost: it was cancelled and is not in event_log as CANCELLED")
		}
	case l.ended.Label == machine.ExecutesToCompletion:
		j.checkCompleted(l)
	case l.ended.Label == machine.Cancelled:
		j.checkCancelled(l)
	default:
		if len(l.log) == 0 || l.log[0].Status != failed {
			j.accuse(l, "I1", "lost: it ended with %s and is not in event_log as FAILED", l.ended.Label)
		}
	}
}

// checkWaiting judges an event that is left at the end: it must not be one that
// could run.
func (j *judgement) checkWaiting(l *life) {
	if l.row.Due.After(j.Final.At) {
		return
	}
	scope := scopeOf(l.emitted)
	for _, rule := range j.Final.Rules {
		if rule.Scope == scope {
			return
		}
	}
	if l.row.Locked {
		j.accuse(l, "I1", "stuck: it is locked at the end, with token %d", l.row.Attempt)
		return
	}
	j.accuse(l, "I1", "stuck: it could run, and nobody ran it until the end")
}

// checkCancelled is for an event whose run was ended, since an operator had cancelled it.
func (j *judgement) checkCancelled(l *life) {
	if l.asked == nil && j.Bounds.AsksKnown {
		j.accuse(l, "I1", "lost: a worker ended it as cancelled, and no operator had asked for that")
	}
	if len(l.log) == 0 || l.log[0].Status != cancelled {
		j.accuse(l, "I1", "lost: it was cancelled and is not in event_log as CANCELLED")
	}
	if end := l.ends[l.ended.Attempt]; end != nil && end.Result == OK {
		j.accuse(l, "I1", "it was ended as cancelled, though its run with token %d had ended well", l.ended.Attempt)
	}
}

func (j *judgement) checkCompleted(l *life) {
	run, end := l.starts[l.ended.Attempt], l.ends[l.ended.Attempt]
	// What the handler says after its own transaction has committed, if it lives
	// to say something, does not matter.
	if !l.ended.InTx && (end == nil || end.Result != OK) || run == nil {
		j.accuse(l, "I1", "lost: it was completed with token %d, but that run did not end well", l.ended.Attempt)
	}
	switch {
	case len(l.log) == 0 && j.Bounds.RetainHistory:
		j.accuse(l, "I1", "it was completed and is not in event_log, though history is kept")
	case len(l.log) > 0 && l.log[0].Status != completed:
		j.accuse(l, "I1", "it was completed and is in event_log as %s", l.log[0].Status)
	}
}

// checkBytes is I8: a run sees the value that the event had when it was claimed.
func (j *judgement) checkBytes(l *life) {
	if l.emitted == nil {
		return
	}
	claimed := map[int32]string{}
	for _, h := range l.holds {
		claimed[h.claim.Attempt] = h.value
	}
	for _, r := range l.records {
		want := l.value
		if r.Kind == RunStarted {
			want = l.emitted.Value
			if value, known := claimed[r.Attempt]; known {
				want = value
			}
		}
		if (r.Kind == RunStarted || r.Kind == Logged) && r.Value != want {
			j.accuse(l, "I8", "%s saw %q: its value was %q", r.Kind, r.Value, want)
		}
	}
	for _, row := range l.log {
		if row.Value != l.value {
			j.accuse(l, "I8", "event_log holds %q: its value was %q", row.Value, l.value)
		}
	}
}
