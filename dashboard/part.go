package dashboard

import (
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/humantime"
)

// asked is the set of overviews: all canvases together, and single ones.
type asked struct {
	all      bool
	canvases []eventqueue.CanvasID
}

// shared is the common part of the overviews of all canvases.
type shared struct {
	relayRuns bool
	foreign   bool // notifications of another queue come
	// The server's queue of notifications, if it fills up, and who holds it up.
	queueUsage  float64
	queueHolder string
	activities  []inspect.Activity
	workers     []inspect.Worker
	rules       []operate.Rule
	// counted is when counting began; zero: it is not known.
	counted time.Time
	// span is the time of the charts.
	span span
}

// situation is the data of some overviews, read with four statements and a pulse.
type situation struct {
	shared
	totals map[eventqueue.CanvasID][]inspect.Minute
	// hours come before totals in charts, if they are read.
	hours inspect.HourSums
}

// part is the data of one overview. For a canvas, activities and rules are its own.
type part struct {
	shared
	// totals are those of the last hour, and charted those of the charts.
	totals, charted []inspect.Minute
	// now is the database's clock, if anything was counted.
	now time.Time
	// stands says that no run has ended, and why; nil: some have, or nothing is due.
	stands *standstill
}

// of returns the part of one canvas; nil stands for all.
func (s situation) of(canvas *eventqueue.CanvasID) part {
	p := part{shared: s.shared, now: time.Now()}
	var key eventqueue.CanvasID
	if canvas != nil {
		key = *canvas
		p.activities = those(s.activities, func(a inspect.Activity) bool { return a.Canvas == key })
		p.rules = those(s.rules, func(r operate.Rule) bool { return r.Canvas == key || r.Whole() })
	}
	minutes := s.totals[key]
	p.charted = followed(s.hours.Of[key], minutes, s.hours.Until)
	if n := len(p.charted); n > 0 {
		p.now = p.charted[n-1].AsOf
	}
	p.totals = lastHour(minutes, p.now)
	return p
}

func those[T any](list []T, keep func(T) bool) (kept []T) {
	for _, element := range list {
		if keep(element) {
			kept = append(kept, element)
		}
	}
	return kept
}

// held reports whether rules hold back all events of a handler.
func (p part) held(scope eventqueue.Scope) bool {
	return slices.ContainsFunc(p.rules, func(r operate.Rule) bool { return r.Covers(operate.RuleScope{Scope: scope}) })
}

// due are the handlers of which something is due that no rule holds back, the oldest first.
func (p part) due() []inspect.Activity {
	return those(p.activities, func(a inspect.Activity) bool { return a.OldestDue != nil && !p.held(a.Scope) })
}

// standsAfter is for how long no run must have ended before that is worth a word.
const standsAfter = 2 * time.Minute

// standstill is that no run has ended although something is due.
type standstill struct {
	For    time.Duration
	Scope  eventqueue.Scope
	DueFor time.Duration
	// Event is the oldest one that is due, Why what keeps it from running, and Remedy what would change that; all of
	// them are zero if it was gone when it was looked for.
	Event       eventqueue.EventID
	Why, Remedy string
}

// quietFor is for how long no run has ended, in whole minutes, an hour at most.
func (p part) quietFor() time.Duration {
	this := p.now.Truncate(time.Minute)
	for i := len(p.totals) - 1; i >= 0; i-- {
		if m := &p.totals[i]; m.Completed+m.Failed+m.Retried > 0 {
			return max(0, this.Sub(m.Begins.Add(time.Minute)))
		}
	}
	return shownFor
}

// named reports whether the standstill is explained by an event of a handler.
func (p part) named(scope eventqueue.Scope) bool {
	return p.stands != nil && p.stands.Event != 0 && p.stands.Scope == scope
}

// String says for how long nothing has run.
func (s *standstill) String() string {
	if s.For >= shownFor {
		return "an hour or longer"
	}
	return humantime.Age(s.For)
}
