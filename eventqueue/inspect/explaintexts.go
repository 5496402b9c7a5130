package inspect

import (
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/humantime"
	"eventsv2/internal/priority"
)

// The texts of an explanation: each is a sentence for a person, with the names, times and commands that
// the person needs next.

// ended is for an event that is not in the queue.
func (f *facts) ended() Reason {
	l := f.shown.Logged
	switch {
	case l == nil:
		return Reason{machine.EventMissing, "It is neither in the queue nor in the history: it never was, was deleted, or has completed and its history is not retained.",
			"Nothing runs it; emit it anew if it is needed."}
	case l.Status == LogCompleted:
		return Reason{machine.ExecutesToCompletion, fmt.Sprintf("It completed %s.", at(l.EndedAt, l.AsOf)), "Nothing needs to be done."}
	case l.Status == LogFailed && l.ForGood:
		return Reason{machine.FailedForGood, fmt.Sprintf("It FAILED %s, after %s: its handler refused it for good, with: %s", at(l.EndedAt, l.AsOf), claims(l.Attempts), firstLine(l.LastError)),
			fmt.Sprintf("Fix the cause, then: eventctl retry %s", l.ID)}
	case l.Status == LogFailed:
		return Reason{machine.RetryTooMany, fmt.Sprintf("It FAILED %s, after %s, with: %s", at(l.EndedAt, l.AsOf), claims(l.Attempts), firstLine(l.LastError)),
			fmt.Sprintf("Fix the cause, then: eventctl retry %s", l.ID)}
	default:
		return Reason{machine.Cancelled, f.cancelled(), fmt.Sprintf("To run it after all: eventctl retry %s", l.ID)}
	}
}

// cancelled says by whom an event was cancelled, and why, as far as that is known.
func (f *facts) cancelled() string {
	l := f.shown.Logged
	before := "before any worker had claimed it"
	if l.Attempts > 0 {
		before = "after " + claims(l.Attempts)
	}
	by, because := whoAndWhy(l.Actor, l.Reason)
	return fmt.Sprintf("It was cancelled %s%s, %s%s.", at(l.EndedAt, l.AsOf), by, before, because)
}

// whoAndWhy is who cancelled an event, and why, as parts of a sentence; empty where it is not known.
func whoAndWhy(actor, reason string) (by, because string) {
	if actor != "" {
		by = " by " + printable(actor)
	}
	if reason != "" {
		because = ": " + firstLine(reason)
	}
	return by, because
}

// cancelling is what follows for an event that was cancelled while it ran.
func (f *facts) cancelling() string {
	c := f.shown.Queued.Cancellation
	if c == nil {
		return ""
	}
	by, because := whoAndWhy(c.Actor, c.Reason)
	return fmt.Sprintf(" It was cancelled%s while it ran, and is not run again%s.", by, because)
}

// locked is for an event whose lock is valid.
func (f *facts) locked() Reason {
	if f.holderGone() {
		return f.heldByNobody()
	}
	e := f.shown.Queued
	holder := "A worker"
	if w := e.Holder; w != nil {
		holder = fmt.Sprintf("The worker on %s (%s, %s)", w.Host, w.Version, w.State)
	}
	remedy := "It ends by itself, or is tried again after it has failed."
	if e.Cancellation != nil {
		remedy = "The worker ends the context of the run: the event is CANCELLED when its handler returns an error, and completes if that returns none."
	} else if !e.Begun {
		remedy = fmt.Sprintf("If its run does not begin, the lock expires %s, and no attempt is used.", humantime.When(f.lockExpires(), e.AsOf))
	}
	return Reason{machine.IsLocked, fmt.Sprintf("%s runs it now: it holds the lock, taken or renewed %s.", holder, at(*e.LockedAt, e.AsOf)), remedy}
}

// suspicion is what follows for an event that was in hand when a worker died.
func (f *facts) suspicion() string {
	switch f.shown.Queued.Company {
	case 0:
		return ""
	case 1:
		return " It was in hand when workers died, and runs apart from other such events: if it dies alone, that is a failed attempt."
	default:
		return " It died beside others: it was in hand when a worker died, which used no attempt, and it runs with fewer such events in one worker after each death."
	}
}

// heldByNobody is for an event whose lock is valid although the worker that took it has stopped or died. A worker that
// has lost the database looks the same, and may end its run.
func (f *facts) heldByNobody() Reason {
	e := f.shown.Queued
	w := e.Holder
	why := fmt.Sprintf("The worker on %s (%s, %s), which took or renewed the lock %s, no longer runs, or has lost the database; its lock is valid until %s.",
		w.Host, w.Version, w.State, at(*e.LockedAt, e.AsOf), at(f.lockExpires(), e.AsOf))
	remedy := "Then another worker takes the event over: the relay notifies it again."
	if !f.relayRuns {
		remedy = "Then another worker takes the event over when it learns of it, and no relay runs that would notify it again: start cmd/cron."
	}
	return Reason{machine.IsLocked, why, remedy}
}

// ruled is for the rules of one kind that hold the event back: each of them does.
func (f *facts) ruled(kind operate.RuleKind) (all []Reason) {
	e := f.shown.Queued
	for _, rule := range f.shown.Rules {
		if rule.Type != kind.Type {
			continue
		}
		since := RuleOrigin(rule, func(t time.Time) string { return at(t, e.AsOf) })
		command := fmt.Sprintf("eventctl %s --canvas %s --module %s %s", kind.Lift, e.Canvas, quoted(e.Module), ruleFlags(rule))
		if rule.Whole() {
			command = "eventctl unhold --all"
		}
		why, remedy := fmt.Sprintf("%s %s %s.", ruledHandlers(rule), kind.State, since), "It runs once the rule is lifted: "+command
		if rule.Rate > 0 {
			why = fmt.Sprintf("%s %s %s, and the rule is being lifted: %d events are let run in each second, in the order of their ids, so far those up to %d.",
				ruledHandlers(rule), kind.State, since, rule.Rate, rule.ReleasedTo)
			remedy = "It runs when that comes to it, while a cron program runs; at once after: " + command
		}
		if rule.Overdue(e.AsOf) {
			remedy = "Its end has passed and nobody has lifted it: see that a cron program runs, and whether its log says that the row cannot be lifted. " +
				"It runs at once after: " + command
		}
		all = append(all, Reason{kind.Label, why, remedy})
	}
	if len(all) == 0 {
		all = append(all, Reason{kind.Label, fmt.Sprintf("Its handler is %s.", kind.State), "Lift the rule: see eventctl rule list"})
	}
	return all
}

// ruledHandlers begins a sentence about what a rule holds back.
func ruledHandlers(rule operate.Rule) string {
	if rule.Whole() {
		return "The whole queue is held, its events are"
	}
	which := "Its handler"
	if rule.Modifier != "" {
		which += " with the modifier " + quoted(rule.Modifier)
	}
	if rule.Prefix {
		which += fmt.Sprintf(", as all whose names begin with %s,", quoted(rule.Name))
	}
	return which + " is"
}

// ruleFlags are the flags that name what a rule is about, beside its canvas and module.
func ruleFlags(rule operate.Rule) string {
	flags := "--name " + quoted(rule.Name)
	if rule.Prefix {
		flags = "--prefix " + quoted(rule.Name)
	}
	if rule.Modifier != "" {
		flags += " --modifier " + quoted(rule.Modifier)
	}
	return flags
}

// RuleOrigin says by whom and since when a rule holds, why, and until when, to follow what it does. at writes times.
func RuleOrigin(rule operate.Rule, at func(time.Time) string) string {
	text := "by " + operate.KindOf(rule.Type).Holder
	if rule.Actor != "" {
		text += fmt.Sprintf(" (%s)", firstLine(rule.Actor))
	}
	if !rule.CreatedAt.IsZero() { // it has not been lifted meanwhile
		text += " since " + at(rule.CreatedAt)
	}
	if rule.Reason != "" {
		text += ", because of: " + firstLine(rule.Reason)
	}
	if !rule.Until.IsZero() {
		text += ", until " + at(rule.Until)
	}
	return text
}

// delayed is for an event that is not due, with what has put it off.
func (f *facts) delayed() Reason {
	e := f.shown.Queued
	due := at(e.DelayUntil, e.AsOf)
	early := fmt.Sprintf("To run it before: eventctl requeue %s", e.ID)
	newest := f.newestAttempt()
	switch {
	case f.overLimit:
		return f.putOff(due, early)
	case newest != nil && newest.Attempt == e.Attempts:
		return Reason{machine.RetryAllowed, fmt.Sprintf("Its last run failed %s with: %s; it is tried again %s.",
			at(newest.StartedAt.Add(newest.Duration), e.AsOf), firstLine(newest.Error), due), early}
	case f.snoozes > 0:
		return Reason{machine.Snoozed, fmt.Sprintf("Its handler asked for a later time, %s so far; it is tried again %s.", times(f.snoozes), due), early}
	default:
		return Reason{machine.DelayNotYet, fmt.Sprintf("It is due %s.", due), early}
	}
}

func (f *facts) newestAttempt() *Attempt {
	if n := len(f.shown.Attempts); n > 0 {
		return &f.shown.Attempts[n-1]
	}
	return nil
}

// noneHas begins a sentence about something that no live worker has.
func noneHas(live int, what string) string {
	return fmt.Sprintf("No live worker, of which there are %d, has %s", live, what)
}

// unknown is for an event that no worker can run.
func (f *facts) unknown() Reason {
	e := f.shown.Queued
	handler := printable(e.Module) + "/" + printable(e.Name) + "/" + printable(e.Modifier)
	why := noneHas(f.live, "its handler "+handler)
	if f.live == 0 {
		why = "No worker runs"
	}
	if w := f.lastKnew; w != nil {
		why += fmt.Sprintf("; the last that had it was on %s (%s), started %s", w.Host, w.Version, at(w.StartedAt, w.AsOf))
	}
	remedy := "Start a worker with this handler, or deploy a version that has it."
	if f.live == 0 {
		remedy = "Start a worker with its handler " + handler + "."
	}
	if question := DidYouMean(e.Handler(), e.Canvas, f.workers); question != "" {
		remedy += " Or " + question
	}
	return Reason{machine.HandlerUnknown, why + ".", remedy}
}

// DidYouMean asks for the handler of a live worker that may have been meant by one that none of the workers has on a canvas,
// because a few letters differ: "did you mean order_placed?". An empty modifier stands for any. It returns "" if a live worker has
// the handler, or may have it, or if none has a similar one.
func DidYouMean(key eventqueue.HandlerKey, canvas eventqueue.CanvasID, workers []Worker) string {
	meant := meantBy(key, canvas, workers)
	switch {
	case meant == eventqueue.HandlerKey{}:
		return ""
	case meant.Module == key.Module && (key.Modifier == "" || meant.Modifier == key.Modifier):
		return "did you mean " + printable(meant.Name) + "?"
	default:
		return "did you mean " + printable(meant.String()) + "?"
	}
}

// behind is for an event that waits for others of its ordering group.
func (f *facts) behind() Reason {
	g := f.shown.Group
	if g.Next == 0 {
		return Reason{machine.NotItsTurn, fmt.Sprintf("It waits in the ordering group of %s, in which no event may run at the moment.", g.Of), "The relay repairs the group; cmd/cron has to run."}
	}
	why := fmt.Sprintf("It waits in the ordering group of %s, %d at a time, behind event %s.", g.Of, g.Of.Max, g.Next)
	if g.Of.Max == 0 {
		why = fmt.Sprintf("It waits in the ordering group of %s, whose limit was removed: what waited for it is let run in the order of the ids, and event %s comes before it.", g.Of, g.Next)
	}
	return Reason{machine.NotItsTurn, why,
		fmt.Sprintf("It runs when those before it have ended; to see why they have not: eventctl explain %s", g.Next)}
}

// longTransaction is longer than any transaction of the queue takes: a worker that claims or completes the event
// has ended its own by then.
const longTransaction = 10 * time.Second

// written is for an event whose row another transaction has locked.
func (f *facts) written() Reason {
	w, e := f.writer, f.shown.Queued
	who := fmt.Sprintf("The session %d", w.pid)
	remedy := fmt.Sprintf("It runs when that transaction has ended; to see what it does: SELECT * FROM pg_stat_activity WHERE pid = %d", w.pid)
	if w.since != nil && e.AsOf.Sub(*w.since) > longTransaction {
		remedy += fmt.Sprintf("; to end it: SELECT pg_terminate_backend(%d)", w.pid)
	}
	if w.pid == 0 {
		who, remedy = "A prepared transaction", "It runs when that transaction has ended: see pg_prepared_xacts, and COMMIT PREPARED or ROLLBACK PREPARED."
	}
	if w.program != "" {
		who += " (" + printable(w.program) + ")"
	}
	why := who + " is writing its row, or has locked it, in a transaction that has not ended"
	if w.since != nil {
		why += ", begun " + at(*w.since, e.AsOf)
	}
	return Reason{machine.LockClaimFailed, why + "; claims pass the event by.", remedy}
}

// heldBackText is for an event of low priority whose notification is pending.
const heldBackText = "It has low priority: the relay publishes its notification when the events of low priority that it has let go have begun, a few at a time while workers are behind."

// runnable is for an event that nothing keeps from running.
func (f *facts) runnable(lock machine.Lock) Reason {
	e := f.shown.Queued
	why := "Nothing keeps it from running"
	if lock == machine.LockStale {
		why = fmt.Sprintf("Its lock expired %s, since who held it died or lost contact; the next claim takes it over", at(f.lockExpires(), e.AsOf))
	}
	heldBack := e.NotifiedAt == nil && f.relayRuns && e.Priority == priority.Low
	switch {
	case f.slots.Busy > 0:
		remedy := f.slots.remedy()
		if heldBack {
			remedy += " " + heldBackText
		}
		return Reason{machine.Claimed, why + ", but " + f.slots.text(f.knowing, e.AsOf) + ".", remedy}
	case e.NotifiedAt == nil && !f.relayRuns:
		return Reason{machine.Claimed, fmt.Sprintf("%s, but its notification is pending since %s, and no relay runs to publish it.", why, at(f.dueAt(), e.AsOf)), "Start cmd/cron, which runs the relay."}
	case heldBack:
		return Reason{machine.Claimed, fmt.Sprintf("%s; its notification is pending since %s.", why, at(f.dueAt(), e.AsOf)), heldBackText}
	case e.NotifiedAt == nil:
		return Reason{machine.Claimed, fmt.Sprintf("%s; its notification is pending since %s.", why, at(f.dueAt(), e.AsOf)), "The relay publishes it within its interval."}
	case !f.relayRuns:
		return Reason{machine.Claimed, fmt.Sprintf("%s; it was last notified %s, and no relay runs that would notify it again.", why, at(*e.NotifiedAt, e.AsOf)),
			"A worker claims it when it has a free slot; start cmd/cron, in case the notification is lost."}
	default:
		return Reason{machine.Claimed, fmt.Sprintf("%s; it was last notified %s.", why, at(*e.NotifiedAt, e.AsOf)), "A worker claims it when it has a free slot; the relay notifies it again if that was lost."}
	}
}

// text says that the slots of so many workers are full, and since when.
func (s WorkerSlots) text(workers int, now time.Time) string {
	text := s.busy(workers)
	if s.OldestSince != nil {
		text += ", the oldest since " + at(*s.OldestSince, now)
	}
	if s.Hung > 0 {
		text += fmt.Sprintf("; %d handlers have not returned though their time is over", s.Hung)
	}
	return text
}

func (s WorkerSlots) busy(workers int) string {
	if workers == 1 {
		return fmt.Sprintf("all %d slots of the worker are busy", s.Of)
	}
	return fmt.Sprintf("all %d slots of %d workers are busy", s.Of, workers)
}

func (s WorkerSlots) remedy() string {
	if s.Hung > 0 {
		return "The log of the workers has the stacks of handlers that do not return: have them end with their contexts, and start the workers anew."
	}
	return "It runs when one is free; more workers, or more slots (WORKER_CONCURRENCY), run more at once."
}

// dueAt is since when the event may run.
func (f *facts) dueAt() time.Time {
	e := f.shown.Queued
	if e.DelayUntil.After(e.EnqueuedAt) {
		return e.DelayUntil
	}
	return e.EnqueuedAt
}
