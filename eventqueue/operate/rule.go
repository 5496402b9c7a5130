package operate

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

// RuleType says who has stopped a handler.
type RuleType = machine.Rule

// The two types are independent: lifting one leaves the other (I7).
const (
	PauseRule = machine.PauseRule // by the user
	BlockRule = machine.BlockRule // by an admin
)

// MaxReasonBytes is how long the reason of a rule or a cancellation may be, and MaxActorBytes the name of its actor.
const (
	MaxReasonBytes = 1024
	MaxActorBytes  = 255
)

// MaxRate is at most how many events are let run in a second while a rule is lifted at a rate.
const MaxRate = 100_000

// ErrUntilPassed is returned by Rules.AddRule for a rule that would have ended already.
var ErrUntilPassed = errors.New("until: that time has passed by the clock of the database")

// Rule is one row of scheduling_rules. Type and Scope identify it; the others say more about it and
// may be left out.
type Rule struct {
	Type RuleType
	RuleScope
	// Reason is shown to whoever asks why the handler does not run. It may have several lines; its
	// limit is MaxReasonBytes.
	Reason string
	// Actor is the author of the rule, as the caller names them; its limit is MaxActorBytes.
	Actor string
	// Until is when the rule ends, by the clock of the database. It holds until it is lifted, by cron
	// (RunExpiry) or by hand. The zero time: by hand only.
	Until time.Time
	// Rate is how many of the waiting events are let run in a second while the rule is being lifted
	// (Lift.Rate); 0 means that it is not. ReleasedTo is the id up to which they have been let run,
	// and ReleasedAt when they were by the clock of the database, so that the next are counted from then.
	// Whoever adds a rule leaves all three out.
	Rate       int
	ReleasedTo eventqueue.EventID
	ReleasedAt time.Time
	// CreatedAt is set by the database.
	CreatedAt time.Time
}

// RuleOf is a rule of a handler, whatever the modifier, with nothing but its identity.
func RuleOf(t RuleType, scope eventqueue.Scope) Rule {
	return Rule{Type: t, RuleScope: RuleScope{Scope: scope}}
}

// Holds reports whether the rule holds an event back.
func (r Rule) Holds(e *eventqueue.Event) bool {
	return r.Matches(e.Canvas, e.Handler()) && (r.Rate == 0 || e.ID > r.ReleasedTo)
}

// Validate names the first field that cannot be stored.
func (r Rule) Validate() error {
	if err := r.RuleScope.Validate(); err != nil {
		return err
	}
	return checkWhy(r.Reason, r.Actor)
}

func checkWhy(reason, actor string) error {
	if err := checkText(reason, MaxReasonBytes); err != nil {
		return fmt.Errorf("reason: %w", err)
	}
	if err := checkText(actor, MaxActorBytes); err != nil {
		return fmt.Errorf("actor: %w", err)
	}
	return nil
}

// Ended reports whether the rule has an end and it has passed.
func (r Rule) Ended(now time.Time) bool { return !r.Until.IsZero() && !r.Until.After(now) }

// overdueAfter is how long after its end a rule that is still there means that no cron lifts it.
const overdueAfter = time.Minute

// Overdue reports whether the end of the rule passed so long ago that cron would have lifted it if it could.
func (r Rule) Overdue(now time.Time) bool {
	return !r.Until.IsZero() && now.Sub(r.Until) >= overdueAfter
}

// checkText refuses what a text column does, and what is longer than the limit.
func checkText(s string, most int) error {
	switch {
	case len(s) > most:
		return fmt.Errorf("is %d bytes long: the limit is %d", len(s), most)
	case !utf8.ValidString(s):
		return fmt.Errorf("%q is not valid UTF-8", s)
	case strings.ContainsRune(s, 0):
		return errors.New("holds the control character U+0000")
	}
	return nil
}

// Lift says which rule is to be lifted.
type Lift struct {
	Type RuleType
	RuleScope
	// Expired: only if its end has passed.
	Expired bool
	// Rate has the waiting events run by and by: so many in each second, the oldest first. 0 means
	// all at once. Events that are emitted meanwhile wait behind them. The limit is MaxRate.
	Rate int
}

// LiftOf lifts a rule of a handler, whatever the modifier, at once.
func LiftOf(t RuleType, scope eventqueue.Scope) Lift {
	return Lift{Type: t, RuleScope: RuleScope{Scope: scope}}
}

// Validate names the first field that cannot be.
func (l Lift) Validate() error {
	if l.Rate < 0 || l.Rate > MaxRate {
		return fmt.Errorf("rate: %d events per second: give 1 to %d, or 0 for all at once", l.Rate, MaxRate)
	}
	if l.Rate > 0 && l.Whole() {
		return errors.New("rate: a rule of the whole queue is lifted at once: pause the handlers that are to start slowly, and lift those rules at a rate")
	}
	return l.RuleScope.Validate()
}

// Lifted is the result of lifting a rule.
type Lifted struct {
	// Removed reports whether the rule was there. With a Rate, it is still there, and being lifted.
	Removed bool
	// Last reports whether no other rule holds back all that the rule was about.
	Last bool
	// At is the time by the database's clock.
	At time.Time
}

// MaxReleaseTime is for how long a rule that is lifted at a rate makes up when nobody has gone on with it: so
// many events are let run together, and no more.
const MaxReleaseTime = 2 * time.Second

// Released is the result of letting run the next events of a rule that is lifted at a rate.
type Released struct {
	// Removed reports whether the rule was removed, as nothing that it alone held back waited any more. GoesOn reports whether it is
	// still there. Neither: there was no such rule.
	Removed, GoesOn bool
	// Last says of a removed rule that no other one holds back all that it was about.
	Last bool
	// After and UpTo: the events with ids above the one and up to the other are held back no more. After a
	// removal UpTo is 0, and means all. They are equal if it was too early for another event.
	After, UpTo eventqueue.EventID
	// At is the time by the database's clock.
	At time.Time
}
