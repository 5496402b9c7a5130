package cronchecker

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// bruteSlots finds the slots of a valid schedule in (after, now] by looking at
// every single minute. It shares nothing with the code under test: it reads the
// text by itself, value by value, and follows the clock on the wall.
//
// It starts 30 hours earlier, so that it knows how far the clock had come.
func bruteSlots(t *testing.T, text string, zone *time.Location, after, now time.Time) []time.Time {
	t.Helper()
	matches, floating := bruteMatcher(t, text)
	var slots []time.Time
	reached := int64(-1 << 62)
	for at := after.Add(-30 * time.Hour).Truncate(time.Minute); !at.After(now); at = at.Add(time.Minute) {
		shown := wallMinute(at.In(zone))
		due := false
		switch {
		case floating:
			due = matches(shown)
		case reached > -1<<62:
			for minute := reached + 1; minute <= shown && !due; minute++ {
				due = matches(minute)
			}
		}
		reached = max(reached, shown)
		if due && at.After(after) {
			slots = append(slots, at)
		}
	}
	return slots
}

// wallMinute counts what the clock shows in minutes since 1970-01-01 00:00.
func wallMinute(at time.Time) int64 {
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC).Unix() / 60
}

func bruteMatcher(t *testing.T, text string) (matches func(wallMinute int64) bool, floating bool) {
	t.Helper()
	fortnight := strings.EqualFold(text, "every fortnight")
	switch strings.ToLower(text) {
	case "every minute":
		text = "* * * * *"
	case "every hour":
		text = "0 * * * *"
	case "every 12 hours":
		text = "0 0,12 * * *"
	case "every day":
		text = "0 0 * * *"
	case "every week", "every fortnight":
		text = "0 0 * * mon"
	}
	parts := strings.Fields(strings.ToLower(text))
	if len(parts) != 5 {
		t.Fatalf("%q was accepted with %d fields", text, len(parts))
	}
	months := strings.Fields("_ jan feb mar apr may jun jul aug sep oct nov dec")
	weekdays := strings.Fields("sun mon tue wed thu fri sat")
	either := parts[2][0] != '*' && parts[4][0] != '*'
	return func(minute int64) bool {
		at := time.Unix(minute*60, 0).UTC()
		date := bruteField(t, parts[2], at.Day(), 1, 31, nil)
		weekday := bruteField(t, parts[4], int(at.Weekday()), 0, 6, weekdays) ||
			(at.Weekday() == time.Sunday && bruteField(t, parts[4], 7, 0, 6, weekdays))
		day := date && weekday
		if either {
			day = date || weekday
		}
		if fortnight {
			weeks := int(at.Sub(time.Date(1970, 1, 5, 0, 0, 0, 0, time.UTC)).Hours()) / (24 * 7)
			day = day && weeks%2 == 0
		}
		return day && bruteField(t, parts[3], int(at.Month()), 1, 12, months) &&
			bruteField(t, parts[1], at.Hour(), 0, 23, nil) && bruteField(t, parts[0], at.Minute(), 0, 59, nil)
	}, parts[0][0] == '*' || parts[1][0] == '*'
}

// bruteField tells whether a field in lower case lists a value.
func bruteField(t *testing.T, text string, value, low, high int, names []string) bool {
	t.Helper()
	number := func(s string) int {
		for i, name := range names {
			if s == name {
				return i
			}
		}
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("%q was accepted as a value", s)
		}
		return n
	}
	for _, part := range strings.Split(text, ",") {
		from, to, step := low, high, 1
		span, stepText, stepped := strings.Cut(part, "/")
		if stepped {
			step = number(stepText)
		}
		if span != "*" {
			first, last, ranged := strings.Cut(span, "-")
			from = number(first)
			switch {
			case ranged:
				to = number(last)
				if last == "sun" && from > 0 {
					to = 7
				}
			case stepped:
				to = max(from, high)
			default:
				to = from
			}
		}
		for n := from; n <= to; n += step {
			if n == value {
				return true
			}
		}
	}
	return false
}
