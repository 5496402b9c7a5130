package machine

import (
	"slices"
	"time"
)

// Rule is the scheduling rule of an event's handler, spelled as in the database.
type Rule string

// A blocked handler is blocked whether or not it is paused as well.
const (
	NoRule    Rule = ""
	PauseRule Rule = "pause" // by the user
	BlockRule Rule = "block" // by an admin
)

// Lock is the state of an event's lock, from its locked_at.
type Lock int

// The database's clock decides whether a lock is still valid.
const (
	LockFree Lock = iota
	LockHeld
	LockStale
)

// Facts are the state of an event as one statement in the database read it, all at one moment of
// its clock.
type Facts struct {
	Present bool
	Rule    Rule

	// Delay is how long it is until delay_until; 0 or less when it has passed.
	Delay time.Duration

	Lock Lock
	// LockRemaining is how long a held lock stays valid when nobody renews it.
	LockRemaining time.Duration

	// HandlerKnown reports whether the claiming worker has the event's handler.
	HandlerKnown bool

	// BreakerOpen is how long the event waits because the claiming worker found that what its handler calls is away; 0: it does
	// not. The worker then leaves the handler out of those that it claims for.
	BreakerOpen time.Duration

	// Waits reports whether the event has to wait for others of its ordering groups: those of its key, or
	// of a limit.
	Waits bool

	// Claimed reports whether the same statement took the lock for the claiming worker.
	Claimed bool
}

// DecideClaim walks from a notification's arrival to where the facts lead: Process, Queue or End.
// The label is the last one followed, which is the reason.
func DecideClaim(f Facts) (State, Label) {
	at, why := Follow(Queue, ReceiveNotification).To, ReceiveNotification
	for {
		var label Label
		switch at {
		case EventLoad:
			label = eventLoad(f)
		case PauseCheck:
			label = pauseCheck(f)
		case DelayCheck:
			label = delayCheck(f)
		case LockCheck:
			label = lockCheck(f)
		case LockClaim:
			label = lockClaim(f)
		default:
			return at, why
		}
		at, why = Follow(at, label).To, label
	}
}

func eventLoad(f Facts) Label {
	if !f.Present {
		return EventMissing
	}
	return EventPresent
}

func pauseCheck(f Facts) Label {
	switch f.Rule {
	case BlockRule:
		return Blocked
	case PauseRule:
		return Paused
	default:
		return PauseNone
	}
}

// HoldsBack reports whether a label says that a rule holds the event back.
func HoldsBack(label Label) bool {
	return slices.ContainsFunc(arrows, func(a Arrow) bool { return a.From == PauseCheck && a.Label == label && a.To == End })
}

func delayCheck(f Facts) Label {
	if f.Delay > 0 {
		return DelayNotYet
	}
	return DelayNone
}

func lockCheck(f Facts) Label {
	switch f.Lock {
	case LockHeld:
		return IsLocked
	case LockStale:
		return LockExpired
	default:
		return LockNone
	}
}

func lockClaim(f Facts) Label {
	switch {
	case f.Claimed:
		return Claimed
	case f.BreakerOpen > 0:
		return BreakerOpen
	case !f.HandlerKnown:
		return HandlerUnknown
	case f.Waits:
		return NotItsTurn
	default:
		return LockClaimFailed
	}
}

// Run is how a run of a handler ended.
type Run struct {
	// Verdict is a label that leaves Process.
	Verdict Label

	// Retries is how many runs of the event failed before this one, and
	// MaxRetries how often it may be tried again.
	Retries    int
	MaxRetries int
}

// DecideRun walks from Process to what has to be written: Delete, or Queue with the label that says
// how the event waits there (RetryAllowed, Snoozed, Released).
func DecideRun(r Run) (State, Label) {
	arrow := Follow(Process, r.Verdict)
	if arrow.To != RetryCheck {
		return arrow.To, arrow.Label
	}
	arrow = Follow(RetryCheck, retryCheck(r))
	return arrow.To, arrow.Label
}

// retryCheck keeps I9: at most MaxRetries+1 runs that failed.
func retryCheck(r Run) Label {
	if r.Retries < r.MaxRetries {
		return RetryAllowed
	}
	return RetryTooMany
}
