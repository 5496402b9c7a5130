package humantime

import (
	"fmt"
	"strings"
	"time"
)

// Moment is a time as a person writes it: on the clock, or in how long.
type Moment struct {
	// At is zero if In was written.
	At time.Time
	In time.Duration
}

// After returns the moment by a clock that shows now.
func (m Moment) After(now time.Time) time.Time {
	if m.At.IsZero() {
		return now.Add(m.In)
	}
	return m.At
}

// ParseMoment reads a time of RFC 3339, a duration such as 90m, which is not negative, or, if there is a zone, a time on the clocks
// there: with a space or a T after the date, as forms have it, and with or without seconds. The errors are sentences that begin with the text.
func ParseMoment(text string, zone *time.Location) (m Moment, err error) {
	if m.In, err = time.ParseDuration(text); err == nil {
		if m.In < 0 {
			return m, notPositive(text)
		}
		return m, nil
	}
	if m.At, err = time.Parse(time.RFC3339, text); err == nil {
		return m, nil
	}
	example := "2030-01-31T09:00:00Z"
	if zone != nil {
		example = "2030-01-31 17:30"
		for _, layout := range []string{"2006-01-02 15:04", "2006-01-02 15:04:05"} {
			if wall, err := time.Parse(layout, strings.Replace(text, "T", " ", 1)); err == nil {
				return onClock(wall, zone)
			}
		}
	}
	return m, fmt.Errorf("%q is neither a time nor a duration: write it like %s, or like 90m", text, example)
}

// ParseEnd is ParseMoment for what begins now and has an end: a duration is longer than 0.
func ParseEnd(text string, zone *time.Location) (Moment, error) {
	m, err := ParseMoment(text, zone)
	if err == nil && m.At.IsZero() && m.In == 0 {
		err = notPositive(text)
	}
	return m, err
}

func notPositive(text string) error {
	return fmt.Errorf("%q is too short: a duration must be positive, as in 90m", text)
}

// onClock is when the clocks of a zone first show what wall shows. When they are put back, they show an hour twice; when they are put
// forward, they never show the time that is left out.
func onClock(wall time.Time, zone *time.Location) (Moment, error) {
	at := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), wall.Nanosecond(), zone)
	if shown := wall.Format(time.DateTime); at.Format(time.DateTime) != shown {
		return Moment{}, fmt.Errorf("%q does not exist in %s: the clocks are put forward over it; write an earlier or later time", shown, zone)
	}
	start, _ := at.ZoneBounds()
	_, before := start.Add(-1).Zone()
	_, after := at.Zone()
	if first := at.Add(time.Duration(after-before) * time.Second); first.Before(start) && !start.IsZero() {
		at = first
	}
	return Moment{At: at}, nil
}
