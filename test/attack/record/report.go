package record

import (
	"slices"

	"eventsv2/eventqueue/machine"
	"eventsv2/test/oracle"
)

// Report adds the records of an event, whose insert is on record, to a history.
func (e *Event) Report(h *oracle.History) {
	due := e.Changes[0].New.DueMicros
	for i := range e.Changes {
		ch := &e.Changes[i]
		if ch.Claims() || e.Operates(ch) {
			break
		}
		if ch.Op == Update {
			due = ch.New.DueMicros // a far-off event that was brought near
		}
	}
	emitted := oracle.Record{Kind: oracle.Emitted, At: e.Changes[0].At, Actor: e.Changes[0].Writer, Event: e.ID,
		Canvas: e.Entered.Canvas, Handler: e.Entered.Handler, Value: e.Entered.Value, Due: Micros(due),
		OrderingKey: e.OrderingKey, UniqueKey: e.UniqueKey, UniqueFor: e.UniqueFor, Parent: e.Parent, Children: e.Children}
	if e.NotBefore.After(emitted.Due) {
		emitted.Due = e.NotBefore
	}
	if first := e.Changes[0].New; e.ByHand {
		emitted.Attempt, emitted.Retries = first.Attempts, int(first.Retries)
		if first.LockedMicros != 0 {
			emitted.LockedAt = Micros(first.LockedMicros)
		}
	}
	h.Add(emitted)
	holder := ""
	for i := range e.Changes {
		ch := &e.Changes[i]
		if ch.TakesBack(holder, e.LockTimeout) {
			h.Add(oracle.Record{Kind: oracle.TakenBack, At: ch.At, Actor: ch.Writer, Event: e.ID, Retries: int(ch.New.Retries)})
			continue
		}
		if ch.Claims() {
			holder, e.holder = ch.Writer, ch
		}
		e.reportChange(h, ch)
	}
	if e.Ending != nil {
		h.Final.Log = append(h.Final.Log, oracle.LogRow{Event: e.ID, Status: e.Ending.Status, Value: e.Ending.Value})
	}
	if last := e.Changes[len(e.Changes)-1]; last.Op != Delete {
		h.Final.Rows = append(h.Final.Rows, oracle.Row{Event: e.ID, Due: Micros(last.New.DueMicros),
			Retries: int(last.New.Retries), Attempt: last.New.Attempts, Locked: last.New.LockedMicros != 0})
	}
}

// reportChange adds the record of one change, and with a claim the runs of it.
func (e *Event) reportChange(h *oracle.History, ch *Change) {
	r := oracle.Record{At: ch.At, Actor: ch.Writer, Event: e.ID, Attempt: ch.Old.Attempts}
	switch {
	case ch.Claims():
		r.Kind, r.Attempt, r.Retries, r.LockedAt = oracle.Claimed, ch.New.Attempts, int(ch.New.Retries), Micros(ch.New.LockedMicros)
		h.Add(r)
		e.reportRuns(h, ch)
		return
	case ch.Renews():
		r.Kind, r.LockedAt, r.Together = oracle.Renewed, Micros(ch.New.LockedMicros), int(ch.New.Together)
	case ch.Op == Delete && e.Ended(Cancelled) && (e.holder == nil || ch.Writer != e.holder.Writer): // not by the worker that runs it
		r.Kind = oracle.Cancelled
	case e.Operates(ch):
		r.Kind, r.Retries, r.Due = oracle.Changed, int(ch.New.Retries), Micros(ch.New.DueMicros)
	case ch.Op == Delete:
		r.Kind, r.Label = oracle.Written, e.endLabel(ch)
	case ch.Unlocks():
		r.Kind, r.Label = oracle.Written, machine.Released
		if ch.New.DueMicros != ch.Old.DueMicros {
			r.Label, r.Due = machine.Snoozed, Micros(ch.New.DueMicros)
		}
		switch {
		case ch.New.Retries > ch.Old.Retries:
			r.Label = machine.RetryAllowed
		case e.holder != nil && e.PutOff(e.holder, ch):
			r.Label = machine.OverLimit
		}
	case e.Releases != nil && e.Releases(ch):
		r.Kind, r.Due = oracle.MadeDue, Micros(ch.New.DueMicros)
	default:
		return // of its notification only
	}
	h.Add(r)
}

// reportRuns adds the runs of a claim. The effect or the children of a transaction prove that its
// run ended well, whatever its process could still record.
func (e *Event) reportRuns(h *oracle.History, claim *Change) {
	attempt := claim.New.Attempts
	proved := slices.Contains(e.Effects, attempt) || e.Dispatched(attempt)
	for _, run := range e.RunsOf(claim) {
		value := e.Entered.Value
		if run.Sum != Checksum(value) {
			value = "another value"
		}
		h.Add(oracle.Record{Kind: oracle.RunStarted, At: run.Start, Actor: run.Process, Event: e.ID, Attempt: attempt, Value: value})
		if run.Ended && !proved {
			h.Add(oracle.Record{Kind: oracle.RunEnded, At: run.Over(e.Timeout), Actor: run.Process, Event: e.ID, Attempt: attempt, Result: run.Result})
		}
	}
	if proved {
		h.Add(oracle.Record{Kind: oracle.RunEnded, At: claim.At, Actor: claim.Writer, Event: e.ID, Attempt: attempt, Result: oracle.OK})
	}
	if run := e.Hung(claim); run != nil {
		timeout := run.Start.Add(e.Timeout)
		h.Faults = append(h.Faults, oracle.Fault{Kind: oracle.Hung, Actor: claim.Writer, Event: e.ID, From: timeout, To: timeout.Add(2 * e.LockTimeout)})
	}
}
