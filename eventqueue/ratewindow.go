package eventqueue

import (
	"context"
	"time"
)

// RateTaker is what a worker needs of the database where there are rate limits; it is a
// part of ClaimStore.
type RateTaker interface {
	// TakeRate asks for room under the limits of several scopes, each named once, in
	// one statement, and counts what it grants. Of scopes of one canvas the first is
	// served first. The answers are in the order of the asks.
	TakeRate(ctx context.Context, asks []RateAsk) ([]RateAnswer, error)
}

// RateAsk asks for room under the limits of a handler on a canvas.
type RateAsk struct {
	Scope

	// Want is how many events may run if there is room under both limits. What is not
	// granted is counted as waiting.
	Want int

	// Ran is how many have begun already. They are counted, room or not.
	Ran int
}

// RateAnswer is what the limits of a scope say.
type RateAnswer struct {
	// At is the time by the database's clock, with the counts locked.
	At time.Time

	// Busy says that somebody else was writing the counts for longer than a moment:
	// nothing was granted or counted, and the rest is not filled in.
	Busy bool

	// Granted is how many of those that were asked for may run.
	Granted int

	// Canvas and Handler are the limits of the canvas and of the handler on it; nil
	// when there is none. Of the events that were not granted, the first
	// Canvas.Refused were refused by the canvas' limit, the others by the handler's.
	Canvas, Handler *RateState
}

// RateWindows are the counts of a limit at a moment.
type RateWindows struct {
	// MinuteUsed and DayUsed are how many events have begun in the windows under way,
	// with what earlier ones have overshot.
	MinuteUsed, DayUsed int64

	// MinuteLeft and DayLeft are how long these windows last.
	MinuteLeft, DayLeft time.Duration

	// Waiting is how many events wait for later windows.
	Waiting int64
}

// RateState is a limit as it stands when it is asked.
type RateState struct {
	PerMinute, PerDay int // 0 is none
	Mode              RateMode

	// RateWindows has what the ask was granted in it; its Waiting is before the ask.
	RateWindows

	// Refused is how many events of the ask this limit has refused.
	Refused int
}

// Room is how many events may begin in the windows under way.
func (s *RateState) Room() int64 {
	room := int64(MaxRate)
	if s.PerMinute > 0 {
		room = min(room, int64(s.PerMinute)-s.MinuteUsed)
	}
	if s.PerDay > 0 {
		room = min(room, int64(s.PerDay)-s.DayUsed)
	}
	return max(room, 0)
}

const (
	day = 24 * time.Hour
	// minuteSpread and daySpread are the parts of a window in which those whose
	// turn it is come, so that they do not all come in its first instant.
	minuteSpread = time.Minute / 2
	daySpread    = 10 * time.Minute
	// maxTurn bounds a wait: after it the event is looked at again.
	maxTurn = 30 * day
)

// turn is how long it is until the window in which it is probably the turn of an
// event before which so many wait, and the part of that window in which it may come.
// With room in the windows under way it is 0 for the first.
func (s *RateState) turn(before int64) (wait, spread time.Duration) {
	spread = daySpread
	if s.PerMinute > 0 {
		spread = minuteSpread
		wait = windows(s.MinuteUsed+before, s.PerMinute, s.MinuteLeft, time.Minute)
	}
	if s.PerDay > 0 {
		inDays := s.DayUsed + before
		if days := windows(inDays, s.PerDay, s.DayLeft, day); days > 0 {
			if s.PerMinute > 0 { // those of that day come at the pace of its minutes
				days += windows(inDays%int64(s.PerDay), s.PerMinute, time.Minute, time.Minute)
			}
			wait = max(wait, days)
		}
	}
	return min(wait, maxTurn), spread
}

// windows is how long it is until the window of the nth place, counted from 0, when
// each has so many; left is what the first one still lasts.
func windows(n int64, each int, left, length time.Duration) time.Duration {
	later := min(n/int64(each), int64(2*maxTurn/length)) // the product must not overflow
	if later == 0 {
		return 0
	}
	return left + time.Duration(later-1)*length
}

// waits are how long the events wait that were not granted, each with its own jitter,
// and never into an earlier window.
func (a *RateAnswer) waits(refused int, jitter func(time.Duration) time.Duration) []time.Duration {
	all := make([]time.Duration, refused)
	for i := range all {
		own, other, before := a.Handler, a.Canvas, i
		if a.Canvas != nil {
			if i < a.Canvas.Refused {
				own, other = a.Canvas, a.Handler
			} else {
				before -= a.Canvas.Refused
			}
		}
		wait, spread := own.turn(own.Waiting + int64(before))
		if other != nil && other.Room() == 0 {
			if opens, wide := other.turn(0); opens > wait {
				wait, spread = opens, wide
			}
		}
		all[i] = wait + jitter(spread)
	}
	return all
}
