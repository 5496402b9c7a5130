package humantime_test

import (
	"strings"
	"testing"
	"time"

	"eventsv2/internal/humantime"
)

// TestMomentsAreReadAsPeopleWriteThem: for how long, or when, in a zone or with the offset; and what is none is refused with a reason.
func TestMomentsAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, test := range map[string]struct {
		zone *time.Location
		want string // RFC 3339 in UTC, or a part of the error
	}{
		"90m":                       {nil, "2026-01-01T01:30:00Z"},
		"0":                         {berlin, "2026-01-01T00:00:00Z"},
		"-1h":                       {berlin, `"-1h" is too short: a duration must be positive`},
		"2027-01-31T09:00:00+01:00": {nil, "2027-01-31T08:00:00Z"},
		"2027-01-31T09:00:00Z":      {berlin, "2027-01-31T09:00:00Z"},
		"2027-01-31 17:30":          {berlin, "2027-01-31T16:30:00Z"},
		"2027-01-31T17:30":          {berlin, "2027-01-31T16:30:00Z"},
		"2027-07-31 17:30:15":       {berlin, "2027-07-31T15:30:15Z"},
		"2027-07-31T17:30:15":       {berlin, "2027-07-31T15:30:15Z"},
		"2026-03-29 01:59":          {berlin, "2026-03-29T00:59:00Z"},
		"2026-03-29T02:30":          {berlin, `"2026-03-29 02:30:00" does not exist in Europe/Berlin`},
		"2026-03-29 02:00":          {berlin, "does not exist"},
		"2026-03-29 03:00":          {berlin, "2026-03-29T01:00:00Z"},
		"2026-10-25 01:59":          {berlin, "2026-10-24T23:59:00Z"},
		"2026-10-25 02:00":          {berlin, "2026-10-25T00:00:00Z"}, // the first of two
		"2026-10-25 02:30":          {berlin, "2026-10-25T00:30:00Z"},
		"2026-10-25 02:59:59":       {berlin, "2026-10-25T00:59:59Z"},
		"2026-10-25 03:00":          {berlin, "2026-10-25T02:00:00Z"},
		"2026-11-01 01:30":          {newYork, "2026-11-01T05:30:00Z"},
		"2026-11-01 02:00":          {newYork, "2026-11-01T07:00:00Z"},
		"2026-03-08 03:00":          {newYork, "2026-03-08T07:00:00Z"},
		"2026-03-29T02:30:00+01:00": {berlin, "2026-03-29T01:30:00Z"},
		"2027-01-31 09:00":          {nil, "is neither a time nor a duration: write it like 2030-01-31T09:00:00Z, or like 90m"},
		"2027-01-31T09:00":          {nil, "is neither a time nor a duration"},
		"2027-02-30 09:00":          {berlin, "is neither a time nor a duration: write it like 2030-01-31 17:30, or like 90m"},
		"tomorrow":                  {berlin, `"tomorrow" is neither a time`},
		"":                          {berlin, `"" is neither a time`},
	} {
		m, err := humantime.ParseMoment(text, test.zone)
		got := humantime.Time(m.After(now))
		if err != nil {
			got = err.Error()
		}
		if got != test.want && (err == nil || !strings.Contains(got, test.want)) {
			t.Errorf("%q is read as %s, want %s", text, got, test.want)
		}
	}
	for text, refused := range map[string]bool{"0": true, "0s": true, "-1h": true, "1ns": false, "2020-01-01 00:00": false} {
		if _, err := humantime.ParseEnd(text, berlin); (err != nil) != refused {
			t.Errorf("as an end, %q is refused with %v", text, err)
		}
	}
}
