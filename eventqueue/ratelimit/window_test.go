package ratelimit_test

import (
	"testing"
	"time"

	"eventsv2/eventqueue/ratelimit"
)

// TestWaitEndsInTheFirstWindowWithRoom compares the waits of events in line with windows that are filled one event at a time.
func TestWaitEndsInTheFirstWindowWithRoom(t *testing.T) {
	t.Parallel()
	const minuteLeft, dayLeft = 13 * time.Second, 5 * time.Hour
	for _, perMinute := range []int{0, 1, 3} {
		for _, perDay := range []int{0, 1, 4, 7} {
			for used := range int64(12) { // those of the day are at least those of the minute
				s := ratelimit.State{PerMinute: perMinute, PerDay: perDay, Windows: ratelimit.Windows{
					MinuteUsed: used, DayUsed: used, MinuteLeft: minuteLeft, DayLeft: dayLeft}}
				for before := range int64(30) {
					got, _ := s.Wait(before)
					if want := opens(&s, before); got != want {
						t.Fatalf("%d per minute and %d per day, %d used, %d before: waits %s, want %s", perMinute, perDay, used, before, got, want)
					}
				}
			}
		}
	}
}

// opens walks from window to window until one has a place after those used and those before.
func opens(s *ratelimit.State, before int64) time.Duration {
	walk := func(places int64, each int, left, length time.Duration) (at time.Duration, within int64) {
		for places >= int64(each) {
			places -= int64(each)
			if at == 0 {
				at = left
			} else {
				at += length
			}
		}
		return at, places
	}
	wait := time.Duration(0)
	if s.PerMinute > 0 {
		wait, _ = walk(s.MinuteUsed+before, s.PerMinute, s.MinuteLeft, time.Minute)
	}
	if s.PerDay > 0 {
		days, within := walk(s.DayUsed+before, s.PerDay, s.DayLeft, 24*time.Hour)
		if days > 0 && s.PerMinute > 0 {
			minutes, _ := walk(within, s.PerMinute, time.Minute, time.Minute)
			days += minutes
		}
		wait = max(wait, days)
	}
	return min(wait, 30*24*time.Hour)
}

// TestWaitIsBounded however many events wait: after 30 days an event is tried again.
func TestWaitIsBounded(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]ratelimit.State{
		"minutes": {PerMinute: 1, Windows: ratelimit.Windows{MinuteLeft: time.Second}},
		"days":    {PerDay: 1, Windows: ratelimit.Windows{DayLeft: time.Hour}},
		"both":    {PerMinute: 1, PerDay: 1, Windows: ratelimit.Windows{MinuteLeft: time.Second, DayLeft: time.Hour}},
	} {
		for _, before := range []int64{100_000, 1 << 40, 1 << 60} {
			if wait, _ := s.Wait(before); wait != 30*24*time.Hour {
				t.Errorf("%s, %d before: waits %s", name, before, wait)
			}
		}
	}
}

// TestWaitIsSpreadOverAPartOfTheWindow: half a minute, or ten minutes of a day.
func TestWaitIsSpreadOverAPartOfTheWindow(t *testing.T) {
	t.Parallel()
	for want, s := range map[time.Duration]ratelimit.State{
		30 * time.Second: {PerMinute: 1, PerDay: 1},
		10 * time.Minute: {PerDay: 1},
	} {
		if _, spread := s.Wait(0); spread != want {
			t.Errorf("%+v is spread over %s, want %s", s, spread, want)
		}
	}
}

// TestRoomIsThatOfTheFullestWindow and never negative after an overshoot.
func TestRoomIsThatOfTheFullestWindow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		perMinute, perDay int
		minute, day       int64
		want              int64
	}{
		{0, 0, 5, 5, ratelimit.MaxRate},
		{10, 0, 4, 99, 6},
		{0, 10, 99, 4, 6},
		{10, 100, 4, 97, 3},
		{10, 100, 4, 90, 6},
		{10, 0, 10, 0, 0},
		{10, 100, 12, 12, 0},
		{10, 100, 4, 120, 0},
		{1, 0, 0, 0, 1},
		{0, 1, 0, 0, 1},
	} {
		s := ratelimit.State{PerMinute: c.perMinute, PerDay: c.perDay, Windows: ratelimit.Windows{MinuteUsed: c.minute, DayUsed: c.day}}
		if got := s.Room(); got != c.want {
			t.Errorf("%+v: room for %d, want %d", c, got, c.want)
		}
	}
}

// TestRefusedEventsWaitForTheLimitThatOpensLast: each behind those that wait already and those refused before it by the
// same limit, and for the other limit as well while that has no room.
func TestRefusedEventsWaitForTheLimitThatOpensLast(t *testing.T) {
	t.Parallel()
	minute := func(used, waiting int64, left time.Duration, refused int) *ratelimit.State {
		return &ratelimit.State{PerMinute: 2, Windows: ratelimit.Windows{MinuteUsed: used, MinuteLeft: left, Waiting: waiting}, Refused: refused}
	}
	full := &ratelimit.State{PerDay: 1, Windows: ratelimit.Windows{DayUsed: 1, DayLeft: time.Hour}}
	for name, c := range map[string]struct {
		answer ratelimit.Answer
		putOff int
		want   []time.Duration // with a jitter of the whole spread
	}{
		"of the handler": {ratelimit.Answer{Handler: minute(2, 1, 20*time.Second, 3)}, 0, seconds(20+30, 80+15, 80+30)},
		"of the canvas":  {ratelimit.Answer{Canvas: minute(2, 1, 20*time.Second, 3)}, 0, seconds(20+30, 80+15, 80+30)},
		"of both": {ratelimit.Answer{Canvas: minute(2, 0, 20*time.Second, 1), Handler: minute(2, 0, 40*time.Second, 2)}, 0,
			seconds(40+15, 40+15, 40+30)},
		"of both, the canvas' with others ahead": {ratelimit.Answer{Canvas: minute(2, 4, 20*time.Second, 1), Handler: minute(2, 1, 40*time.Second, 2)}, 0,
			seconds(140+15, 40+30, 100+15)},
		"of the canvas, and the handler has room": {ratelimit.Answer{Canvas: minute(2, 0, 20*time.Second, 2), Handler: minute(1, 50, 40*time.Second, 0)}, 0,
			seconds(20+15, 20+30)},
		"of the handler, and the canvas is full for longer": {ratelimit.Answer{Canvas: full, Handler: minute(2, 0, 40*time.Second, 1)}, 0,
			seconds(3600 + 300)},
		"that come for the first time, and the room is kept": {ratelimit.Answer{Handler: minute(1, 2, 20*time.Second, 2)}, 0, seconds(80+15, 80+30)},
		"that were put off before, and the room is kept":     {ratelimit.Answer{Handler: minute(1, 2, 20*time.Second, 2)}, 2, seconds(20+30, 80+15)},
		"that were put off before, and the room is others'":  {ratelimit.Answer{Handler: minute(0, 0, 20*time.Second, 2)}, 2, seconds(20+15, 20+30)},
	} {
		c.answer.OlderPutOff, c.answer.OlderNew = -1, -1
		got := c.answer.Waits(len(c.want), c.putOff, func(spread time.Duration) time.Duration { return spread })
		for i := range c.want {
			if got[i] != c.want[i] {
				t.Errorf("%s: waits %v, want %v", name, got, c.want)
				break
			}
		}
	}
}

func seconds(all ...int) []time.Duration {
	waits := make([]time.Duration, len(all))
	for i, n := range all {
		waits[i] = time.Duration(n) * time.Second
	}
	return waits
}

// TestWorkerDecidesByItselfUnderApproximateLimitsOnly: one exact limit, or none at all, leaves it to the database.
func TestWorkerDecidesByItselfUnderApproximateLimitsOnly(t *testing.T) {
	t.Parallel()
	exact, approximate := &ratelimit.State{Mode: ratelimit.Exact}, &ratelimit.State{Mode: ratelimit.Approximate}
	for _, c := range []struct {
		canvas, handler *ratelimit.State
		want            bool
	}{
		{nil, nil, false}, {exact, nil, false}, {nil, exact, false}, {exact, exact, false}, {exact, approximate, false}, {approximate, exact, false},
		{approximate, nil, true}, {nil, approximate, true}, {approximate, approximate, true},
	} {
		a := ratelimit.Answer{Canvas: c.canvas, Handler: c.handler}
		if got := a.Approximate(); got != c.want {
			t.Errorf("%+v, %+v: %t", c.canvas, c.handler, got)
		}
	}
}
