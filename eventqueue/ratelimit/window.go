package ratelimit

import (
	"time"
)

// Answer is the state of the limits of a scope, and what they granted.
type Answer struct {
	// At is the time by the database's clock, with the counts locked.
	At time.Time

	// Busy says that another transaction was writing the counts for longer than a moment: nothing
	// was granted or counted, and the rest is not filled in.
	Busy bool

	// Granted is how many of those that were asked for may run.
	Granted int

	// Canvas and Handler are the limits of the canvas and of the handler on it; nil
	// when there is none. Of the events that were not granted, the first
	// Canvas.Refused were refused by the canvas' limit, the others by the handler's.
	Canvas, Handler *State
}

// Windows are the counts of a limit at a moment.
type Windows struct {
	// MinuteUsed and DayUsed are how many events have begun in the windows under way,
	// with what earlier ones have overshot.
	MinuteUsed, DayUsed int64

	// MinuteLeft and DayLeft are how long these windows last.
	MinuteLeft, DayLeft time.Duration

	// Waiting is how many events wait for later windows.
	Waiting int64
}

// State is a limit as it stands when it is asked.
type State struct {
	PerMinute, PerDay int // 0 is none
	Mode              Mode

	// Windows has what the ask was granted in it; its Waiting is before the ask.
	Windows

	// Refused is how many events of the ask this limit has refused.
	Refused int
}

// Room is how many events may begin in the windows under way.
func (s *State) Room() int64 {
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
	// minuteSpread and daySpread are the parts of a window over which waiting events are spread, so
	// that they do not all come at its first instant.
	minuteSpread = time.Minute / 2
	daySpread    = 10 * time.Minute
	// maxWait bounds a wait: after it the event is tried again.
	maxWait = 30 * day
)

// Wait returns how long it probably is until the window in which an event may run before which
// so many wait, and over which part of that window it is spread. With room in the current windows
// it is 0 for the first.
func (s *State) Wait(before int64) (wait, spread time.Duration) {
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
	return min(wait, maxWait), spread
}

// windows returns how long it is until the window of the nth place, counted from 0, when each
// window has so many; left is how long the first one still lasts.
func windows(n int64, each int, left, length time.Duration) time.Duration {
	later := min(n/int64(each), int64(2*maxWait/length)) // the product must not overflow
	if later == 0 {
		return 0
	}
	return left + time.Duration(later-1)*length
}

// Waits returns how long the events wait that were not granted, each with its own jitter, and never
// into an earlier window.
func (a *Answer) Waits(refused int, jitter func(time.Duration) time.Duration) []time.Duration {
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
		wait, spread := own.Wait(own.Waiting + int64(before))
		if other != nil && other.Room() == 0 {
			if opens, wide := other.Wait(0); opens > wait {
				wait, spread = opens, wide
			}
		}
		all[i] = wait + jitter(spread)
	}
	return all
}

// Approximate reports whether a worker may decide about the scope by itself.
func (a *Answer) Approximate() bool {
	some := false
	for _, s := range []*State{a.Canvas, a.Handler} {
		if s != nil && s.Mode != Approximate {
			return false
		}
		some = some || s != nil
	}
	return some
}
