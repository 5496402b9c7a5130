// Package humantime writes durations and times for people: in messages, explanations and tables.
package humantime

import (
	"fmt"
	"time"
)

// Age writes a duration in its two largest units: 12s, 3m12s, 5h3m, 2d7h.
func Age(d time.Duration) string {
	d = max(d, 0)
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	}
}

// AgeAtLeast is Age rounded up to a second, for times in the future.
func AgeAtLeast(d time.Duration) string { return Age(d + time.Second - 1) }

// When returns how long ago a time was, or in how long it will be. It never returns "in 0s".
func When(t, now time.Time) string {
	if t.After(now) {
		return "in " + AgeAtLeast(t.Sub(now))
	}
	return Age(now.Sub(t)) + " ago"
}

// Time writes a time in UTC, to the second.
func Time(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// TimeAndAge is Time, and When in brackets.
func TimeAndAge(t, now time.Time) string { return fmt.Sprintf("%s (%s)", Time(t), When(t, now)) }

// Span writes a measured duration with three digits: 1.25ms, 12.5s; from a minute on it is Age.
func Span(d time.Duration) string {
	if d >= time.Minute {
		return Age(d)
	}
	unit := 10 * time.Microsecond
	for d/unit >= 1000 { // three digits
		unit *= 10
	}
	return d.Round(unit).String()
}
