package printing

import (
	"fmt"
	"time"

	"eventsv2/internal/humantime"
)

// Age is humantime.Age.
func Age(d time.Duration) string { return humantime.Age(d) }

// AgeAtLeast is humantime.AgeAtLeast.
func AgeAtLeast(d time.Duration) string { return humantime.AgeAtLeast(d) }

// When is humantime.When.
func When(t, now time.Time) string { return humantime.When(t, now) }

// Time is humantime.Time.
func Time(t time.Time) string { return humantime.Time(t) }

// TimeAndAge is humantime.TimeAndAge.
func TimeAndAge(t, now time.Time) string { return humantime.TimeAndAge(t, now) }

// UTC returns a time in UTC; nil stays nil.
func UTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}

// Plural counts things: 1 event, 2 events.
func Plural[N int | int32 | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
