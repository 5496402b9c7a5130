package humantime_test

import (
	"testing"
	"time"

	"eventsv2/internal/humantime"
)

func TestAgeAndWhenAreReadable(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", 12*time.Second + 999*time.Millisecond: "12s", 192 * time.Second: "3m12s",
		5*time.Hour + 3*time.Minute + 9*time.Second: "5h3m", 55 * time.Hour: "2d7h", 100 * 24 * time.Hour: "100d0h",
	} {
		if got := humantime.Age(d); got != want {
			t.Errorf("Age(%s) = %s, want %s", d, got, want)
		}
	}
	now := time.Unix(1000, 0)
	if got := humantime.When(now.Add(time.Millisecond), now); got != "in 1s" {
		t.Errorf("what is not due yet is due %s", got)
	}
	if got := humantime.When(now, now); got != "0s ago" {
		t.Errorf("what is due is due %s", got)
	}
}

// TestSpanHasThreeDigits writes three digits of a second, and an age from a minute on.
func TestSpanHasThreeDigits(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 1234 * time.Microsecond: "1.23ms", 12345 * time.Microsecond: "12.3ms", 874321 * time.Microsecond: "874ms", 12345 * time.Millisecond: "12.3s", 90 * time.Second: "1m30s",
	} {
		if got := humantime.Span(d); got != want {
			t.Errorf("Span(%s) = %s, want %s", d, got, want)
		}
	}
}
