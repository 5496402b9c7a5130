package inspect

import (
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
)

// rate is a limit with its counts.
func rate(module, name string, perMinute, perDay int, minuteUsed, dayUsed int64) operate.RateStatus {
	return operate.RateStatus{
		RateLimit: operate.RateLimit{Scope: eventqueue.Scope{Canvas: eventqueue.CanvasID{1}, Module: module, Name: name}, PerMinute: perMinute, PerDay: perDay},
		Windows:   ratelimit.Windows{MinuteUsed: minuteUsed, DayUsed: dayUsed},
	}
}

// Of the limits that an event has to pass, those without room are named, with commands for a shell that raise just them.
func TestOnlyLimitsWithoutRoomAreNamed(t *testing.T) {
	t.Parallel()
	const set = "eventctl limit rate set --canvas 01000000-0000-0000-0000-000000000000"
	cheap := rate("WORKER", "it's", 0, ratelimit.MaxRate, 7, ratelimit.MaxRate)
	cheap.Mode = ratelimit.Approximate
	for name, c := range map[string]struct {
		limits      []operate.RateStatus
		why, remedy string
	}{
		"the canvas'": {[]operate.RateStatus{rate("", "", 10, 0, 10, 70), rate("WORKER", "greet", 20, 0, 10, 70)},
			"A rate limit has no room: 10 per minute for the whole canvas; it is tried again", "for example: " + set + " --per-minute 20"},
		"the handler's, for the day": {[]operate.RateStatus{rate("", "", 10, 0, 9, 70), rate("WORKER", "greet", 20, 50, 0, 50)},
			"no room: 50 per day for its handler WORKER/greet; it", "for example: " + set + " --module WORKER --name greet --per-minute 20 --per-day 100"},
		"both": {[]operate.RateStatus{rate("", "", 10, 100, 10, 99), rate("WORKER", "greet", 5, 0, 6, 0)},
			"no room: 10 per minute for the whole canvas, 5 per minute for its handler WORKER/greet; it",
			"for example: " + set + " --per-minute 20 --per-day 100 && " + set + " --module WORKER --name greet --per-minute 12"},
		"as much as can be set": {[]operate.RateStatus{cheap},
			"no room: 1000000000 per day for its handler WORKER/it's; it", set + ` --module WORKER --name 'it'\''s' --per-day 1000000000 --mode approximate`},
		"none any more": {[]operate.RateStatus{rate("", "", 10, 100, 9, 99), rate("WORKER", "greet", 20, 0, 19, 1000)},
			"A rate limit put it off; by now all limits that it has to pass have room: it is tried again 2026-01-01T13:01:00Z (in 1m0s).", "eventctl requeue 7"},
		"there is none": {nil, "A rate limit put it off that has been removed since; it is tried again 2026-01-01T13:01:00Z (in 1m0s).", "eventctl requeue 7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := free()
			f.overLimit, f.limits, f.shown.Queued.DelayUntil = true, c.limits, start.Add(time.Minute)
			r := f.reasons()[0]
			r.has(t, machine.OverLimit, c.why, "2026-01-01T13:01:00Z (in 1m0s)")
			if !strings.HasSuffix(r.Remedy, c.remedy) {
				t.Errorf("the remedy is %q, want %q", r.Remedy, c.remedy)
			}
		})
	}
}
