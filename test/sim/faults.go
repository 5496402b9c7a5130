package sim

import (
	"context"
	"time"

	"eventsv2/test/oracle"
)

func (w *world) drawIntensity() intensity {
	few := func(most float64) float64 {
		if w.dice.chance(0.3) {
			return 0
		}
		return w.dice.Float64() * most
	}
	return intensity{
		before: few(0.05), after: few(0.05), slow: few(0.1), stuck: few(0.01),
		drop: few(0.3), double: few(0.3), late: few(0.2),
		forget: few(0.3),
		gap:    w.dice.between(time.Second, 12*time.Second),
	}
}

// delay draws how long a call takes to arrive, and whether it hangs when what it
// goes to is down. Guarded by the gate's lock.
func (w *world) delay(c *call) {
	c.hangs = w.dice.chance(0.3)
	if c.to == inside || !c.from.IsZero() {
		return
	}
	now := time.Now()
	c.from = now
	if w.dice.chance(0.3) {
		c.from = now.Add(w.dice.between(0, 5*time.Millisecond))
	}
	if !w.attacking {
		return
	}
	switch {
	case w.dice.chance(w.intensity.stuck):
		w.count(c, "stuck on its way")
		c.from = now.Add(w.dice.between(lockTimeout/4, 2*lockTimeout))
	case w.dice.chance(w.intensity.slow):
		w.count(c, "late on its way")
		c.from = now.Add(w.dice.between(5*time.Millisecond, 2*time.Second))
	default:
		return
	}
	w.blame(c, c.from)
}

// isDown reports whether what a call goes to cannot be reached.
func (w *world) isDown(c *call) bool {
	switch c.to {
	case database:
		return w.databaseDown || c.who.cut
	case notifying:
		return w.isPartlyDown(c) || w.notifierDown
	default:
		return false
	}
}

// judge throws the dice for a call that passes. Guarded by the gate's lock.
func (w *world) judge(c *call) verdict {
	switch {
	case c.expired:
		return verdict{err: context.Canceled}
	case w.isDown(c):
		w.count(c, "refused")
		w.blame(c, time.Now())
		return verdict{err: errRefused}
	case !w.attacking || c.to == inside:
		return verdict{}
	}
	var v verdict
	switch {
	case c.to == database && c.who.deaf:
		w.count(c, "happened, and its caller does not hear")
		if v.lost = errAfter; w.dice.chance(0.5) {
			v.reply = w.dice.between(lockTimeout/4, 2*lockTimeout)
		}
	case w.dice.chance(w.intensity.before):
		w.count(c, "failed before it happened")
		v.err = errBefore
	case w.dice.chance(w.intensity.after):
		w.count(c, "failed after it had happened")
		v.lost = errAfter
	case w.dice.chance(w.intensity.slow):
		w.count(c, "answered late")
		v.reply = w.dice.between(time.Millisecond, 2*time.Second)
	case w.dice.chance(w.intensity.stuck):
		w.count(c, "answered far too late")
		v.reply = w.dice.between(lockTimeout/4, 2*lockTimeout)
	default:
		return verdict{}
	}
	w.blame(c, time.Now().Add(v.reply))
	return v
}

// count counts a fault of a call; that of a commit is one of its own.
func (w *world) count(c *call, what string) {
	switch {
	case c.op == "Commit":
		what = "commit: " + what
	case c.to == notifying:
		what = "call of the notifier: " + what
	case c.to == outside:
		what = "call of the outside store: " + what
	default:
		what = "call of the database: " + what
	}
	w.faults[what]++
}

// blame records a fault of a call, for the oracle. What the outside store does is the handler's affair.
func (w *world) blame(c *call, to time.Time) {
	if c.to == outside {
		return
	}
	f := oracle.Fault{Kind: oracle.LostDatabase, Actor: c.who.name, From: time.Now(), To: to}
	if c.to == notifying {
		f.Kind = faultOf(wayOf(c))
	}
	w.history.Faults = append(w.history.Faults, f)
}

func wayOf(c *call) way {
	switch way(c.op) {
	case publishing, pulling:
		return way(c.op)
	default:
		return answering
	}
}

// faultOf is what a failure of calls of one kind is to the oracle.
func faultOf(w way) oracle.FaultKind {
	if w == answering {
		return oracle.AnswerFault
	}
	return oracle.NotifierFault
}

// isPartlyDown reports whether a call cannot reach the notifier though others can.
func (w *world) isPartlyDown(c *call) bool {
	if c.to != notifying || c.op == opCheck {
		return false
	}
	if w.broken.hanging[wayOf(c)] {
		c.hangs = true
	}
	return w.broken.hanging[wayOf(c)] || w.broken.failing[wayOf(c)]
}
