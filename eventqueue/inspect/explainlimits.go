package inspect

import (
	"fmt"
	"strings"

	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
)

// putOff is for an event that a rate limit has put off until it is due. Only the limits without room are named: to raise
// another one changes nothing.
func (f *facts) putOff(due, early string) Reason {
	var full, commands []string
	for _, l := range f.limits {
		if windows := fullWindows(l); len(windows) > 0 {
			full = append(full, fmt.Sprintf("%s for %s", strings.Join(windows, " and "), limited(l)))
			commands = append(commands, raiseCommand(l))
		}
	}
	switch {
	case len(full) > 0:
		return Reason{machine.OverLimit, fmt.Sprintf("A rate limit has no room: %s; it is tried again %s.", strings.Join(full, ", "), due),
			"It runs when the window has room; to raise the limit, for example: " + strings.Join(commands, " && ")}
	case len(f.limits) > 0:
		return Reason{machine.OverLimit, fmt.Sprintf("A rate limit put it off; by now all limits that it has to pass have room: it is tried again %s.", due), early}
	default:
		return Reason{machine.OverLimit, fmt.Sprintf("A rate limit put it off that has been removed since; it is tried again %s.", due), early}
	}
}

// fullWindows are the windows of a limit that have no room.
func fullWindows(l operate.RateStatus) (full []string) {
	if minuteFull(l) {
		full = append(full, fmt.Sprintf("%d per minute", l.PerMinute))
	}
	if dayFull(l) {
		full = append(full, fmt.Sprintf("%d per day", l.PerDay))
	}
	return full
}

func minuteFull(l operate.RateStatus) bool {
	return l.PerMinute > 0 && l.MinuteUsed >= int64(l.PerMinute)
}

func dayFull(l operate.RateStatus) bool { return l.PerDay > 0 && l.DayUsed >= int64(l.PerDay) }

// limited names what a limit is for.
func limited(l operate.RateStatus) string {
	if l.WholeCanvas() {
		return "the whole canvas"
	}
	return "its handler " + printable(l.Module) + "/" + printable(l.Name)
}

// raiseCommand sets a limit to twice of what has run in each full window. It names all of the limit, since a part that it
// left out would be removed.
func raiseCommand(l operate.RateStatus) string {
	command := "eventctl limit rate set --canvas " + l.Canvas.String()
	if !l.WholeCanvas() {
		command += fmt.Sprintf(" --module %s --name %s", quoted(l.Module), quoted(l.Name))
	}
	twice := func(used int64) int { return int(min(2*used, ratelimit.MaxRate)) }
	if minuteFull(l) {
		l.PerMinute = twice(l.MinuteUsed)
	}
	if dayFull(l) {
		l.PerDay = twice(l.DayUsed)
	}
	if l.PerMinute > 0 {
		command += fmt.Sprintf(" --per-minute %d", l.PerMinute)
	}
	if l.PerDay > 0 {
		command += fmt.Sprintf(" --per-day %d", l.PerDay)
	}
	if l.Mode == ratelimit.Approximate {
		command += " --mode " + string(l.Mode)
	}
	return command
}
