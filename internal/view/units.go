package view

import (
	"time"

	"eventsv2/internal/humantime"
)

// Seconds is a duration.
type Seconds float64

// secondsOf is a duration that may not be known.
func secondsOf(d *time.Duration) *Seconds {
	if d == nil {
		return nil
	}
	return new(Seconds(d.Seconds()))
}

// Duration is the duration as the rest of the code has it.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// String is the duration with three digits or, from a minute on, in its two largest units.
func (s Seconds) String() string { return humantime.Span(s.Duration()) }

// Span is String; "" if the duration is not known.
func (s *Seconds) Span() string {
	if s == nil {
		return ""
	}
	return s.String()
}

// Age is the duration in whole seconds, or in its two largest units; "" if it is not known.
func (s *Seconds) Age() string {
	if s == nil {
		return ""
	}
	return humantime.Age(s.Duration())
}

// Time is a time as it is written, or nil for none.
func Time(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// utc is Time for a time that may not be known.
func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}

// when is how long ago a time was, or in how long it comes; "" for none.
func when(t *time.Time, now time.Time) string {
	if t == nil {
		return ""
	}
	return humantime.When(*t, now)
}
