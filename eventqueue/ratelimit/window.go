package ratelimit

import (
	"time"
)

// Answer is the state of the limits of a scope, and how many events they granted.
type Answer struct {
	// At is the time by the database's clock, with the counts locked.
	At time.Time

	// Busy means that another transaction was writing the counts for longer than a moment. Then
	// nothing was granted or counted, and the other fields are not set.
	Busy bool

	// Granted is how many of the requested events may run.
	Granted int

	// OlderPutOff and OlderNew are how many events of the handler wait, for a limit, that are older
	// than the first event of the request that was put off before, and than its first other one;
	// negative: not known, since there are many.
	OlderPutOff, OlderNew int64

	// Others are how many events wait for a limit of other handlers of the canvas, of nine of them at most, if its limit
	// refused any: of each at most ManyWait, which stands for any number.
	Others []int64

	// Canvas and Handler are the limits of the canvas and of the handler on it; nil
	// when there is none. Of the events that were not granted, the first
	// Canvas.Refused were refused by the canvas' limit, the others by the handler's.
	Canvas, Handler *State
}

// Windows are the counts of a limit at a moment.
type Windows struct {
	// MinuteUsed and DayUsed are how many events have begun in the current windows,
	// including the overshoot of earlier windows.
	MinuteUsed, DayUsed int64

	// MinuteLeft and DayLeft are how long the current windows still last.
	MinuteLeft, DayLeft time.Duration

	// Waiting is how many events wait for later windows.
	Waiting int64
}

// State is the state of one limit at the time of a request.
type State struct {
	PerMinute, PerDay int // 0 is none
	Mode              Mode

	// Windows includes the events that this request was granted; Waiting is the count
	// before the request.
	Windows

	// Refused is how many events of the request this limit has refused.
	Refused int
}

// Room returns how many events may still begin in the current windows.
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
	// that they do not all begin in its first instant.
	minuteSpread = time.Minute / 2
	daySpread    = 10 * time.Minute
	// maxWait bounds a wait: after it the event is tried again.
	maxWait = 30 * day
)

// Wait returns how long an event should wait if before other events wait ahead of it: the
// probable time until the window in which it may run, and the part of that window over which
// events are spread. If the current windows have room, the wait is 0 for the first event.
func (s *State) Wait(before int64) (wait, spread time.Duration) {
	spread = daySpread
	if s.PerMinute > 0 {
		spread = minuteSpread
		wait = windows(s.MinuteUsed+before, s.PerMinute, s.MinuteLeft, time.Minute)
	}
	if s.PerDay > 0 {
		inDays := s.DayUsed + before
		if days := windows(inDays, s.PerDay, s.DayLeft, day); days > 0 {
			if s.PerMinute > 0 { // the limit per minute also sets the pace within that day
				days += windows(inDays%int64(s.PerDay), s.PerMinute, time.Minute, time.Minute)
			}
			wait = max(wait, days)
		}
	}
	return min(wait, maxWait), spread
}

// windows returns the time until the window of the nth place, counted from 0. Each window has each
// places, and left is how long the first window still lasts.
func windows(n int64, each int, left, length time.Duration) time.Duration {
	later := min(n/int64(each), int64(2*maxWait/length)) // the product must not overflow
	if later == 0 {
		return 0
	}
	return left + time.Duration(later-1)*length
}

// Waits returns the waits of the events that were not granted, of which the first putOff were put
// off before. Each waits for the window of its place among those that wait: first come, first
// served, and the handlers of a canvas take turns under its limit. Within a window they come in the
// order of their places; the jitter moves none to another window.
func (a *Answer) Waits(refused, putOff int, jitter func(time.Duration) time.Duration) []time.Duration {
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
		place := own.Waiting + int64(before)
		older, first := a.OlderNew, putOff // which counts those that were put off
		if i < putOff {
			older, first = a.OlderPutOff, 0
		}
		if older >= 0 {
			if older += int64(i - first); own == a.Canvas {
				older = a.inTurn(older)
			}
			place = min(place, older)
		}
		full := own.full()
		if i < putOff { // the present windows have room only for some of those that are counted as older
			full, place = *own, max(place, own.Room()+int64(i))
		}
		wait, spread := full.Wait(place)
		if other != nil && other.Room() == 0 {
			if opens, wide := other.Wait(0); opens > wait {
				wait, spread = opens, wide
			}
		}
		offset, step := full.within(place, spread)
		all[i] = wait + offset + jitter(step)
	}
	return all
}

// ManyWait is how many waiting events of a handler are counted at most.
const ManyWait = 100

// inTurn is the place among all handlers of the canvas of the event of one that so many of its own are older than.
func (a *Answer) inTurn(older int64) int64 {
	place := older
	for _, n := range a.Others {
		if n >= ManyWait {
			n = older
		}
		place += min(n, older)
	}
	return place
}

// full is the state without the room that is kept for others.
func (s *State) full() State {
	full := *s
	if s.Room() > 0 {
		full.MinuteUsed, full.DayUsed = max(s.MinuteUsed, int64(s.PerMinute)), s.DayUsed
		if s.PerMinute == 0 {
			full.DayUsed = max(s.DayUsed, int64(s.PerDay))
		}
	}
	return full
}

// within returns where in the spread of its window a place is, and how much of the spread it has.
func (s *State) within(before int64, spread time.Duration) (offset, step time.Duration) {
	used, each := s.MinuteUsed+before, int64(s.PerMinute)
	if s.PerMinute == 0 {
		used, each = s.DayUsed+before, int64(s.PerDay)
	}
	return time.Duration(float64(spread) * float64(used%each) / float64(each)), spread / time.Duration(each)
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
