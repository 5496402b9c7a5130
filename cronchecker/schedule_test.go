package cronchecker

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseScheduleRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, zone, want string }{
		"empty":                  {"", "", "has 0 fields"},
		"an unknown interval":    {"every 3 hours", "", "write every minute"},
		"a seconds field":        {"0 0 0 * * *", "", "has 6 fields"},
		"@every":                 {"@every 5m", "", "has 2 fields"},
		"@daily":                 {"@daily", "", "has 1 fields"},
		"a zone in the text":     {"TZ=UTC 0 0 * * *", "", "has 6 fields"},
		"a zone as a field":      {"TZ=UTC 0 * * *", "", "minute"},
		"minute too large":       {"60 * * * *", "", `minute "60"`},
		"hour too large":         {"0 24 * * *", "", `hour "24"`},
		"day zero":               {"0 0 0 * *", "", `day of month "0"`},
		"month too large":        {"0 0 1 13 *", "", `month "13"`},
		"month by a wrong name":  {"0 0 1 may-juni *", "", `month "may-juni"`},
		"weekday too large":      {"0 0 * * 8", "", `day of week "8"`},
		"range backwards":        {"0 17-9 * * *", "", `hour "17-9"`},
		"weekday range back":     {"0 0 * * fri-mon", "", `day of week "fri-mon"`},
		"step zero":              {"*/0 * * * *", "", "the step /0 is not from 1 to 60"},
		"step too large":         {"*/90 * * * *", "", "the step /90 is not from 1 to 60"},
		"step huge":              {"*/99999999999999999999 * * * *", "", "minute"},
		"empty part of a list":   {"1,,2 * * * *", "", `minute "1,,2"`},
		"a comma only":           {", * * * *", "", "minute"},
		"a question mark":        {"0 0 ? * *", "", `day of month "?"`},
		"a sign":                 {"+5 * * * *", "", "minute"},
		"a star with an end":     {"*-5 * * * *", "", "minute"},
		"a control character":    {"0 0 * * \x00", "", "day of week"},
		"30 February":            {"0 0 30 2 *", "", "never comes true"},
		"31 in short months":     {"0 0 31 4,6,9,11 *", "", "never comes true"},
		"too long":               {strings.Repeat("1,", 200) + "1 * * * *", "", "the limit is 255"},
		"an unknown zone":        {"every day", "Europe/Atlantis", `time zone "Europe/Atlantis" is unknown`},
		"the machine's own zone": {"every day", "Local", `time zone "Local" does not name one place`},
		"a path as a zone":       {"every day", "../../etc/passwd", "is unknown"},
		"a zone with leaps":      {"every day", "right/UTC", "does not name one place"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseSchedule(tt.text, tt.zone)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("ParseSchedule(%q, %q) = %v, want an error with %q", tt.text, tt.zone, err, tt.want)
			}
		})
	}
}

func TestParseScheduleKeepsTheText(t *testing.T) {
	t.Parallel()
	s := mustParse(t, "  30\t9 * *  Mon-Fri ", "")
	if s.String() != "30 9 * * Mon-Fri" || s.Zone() != time.UTC {
		t.Errorf("got %q in %s", s, s.Zone())
	}
}

// TestScheduleNextFollowsTheText has the meaning of the text, away from any clock change.
func TestScheduleNextFollowsTheText(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, zone, after, want string }{
		{"every minute", "", "2025-06-15 10:00:00", "2025-06-15 10:01"},
		{"every minute", "", "2025-06-15 09:59:59", "2025-06-15 10:00"},
		{"every hour", "", "2025-06-15 10:00:00", "2025-06-15 11:00"},
		{"every hour", "Asia/Kathmandu", "2025-06-15 10:01:00", "2025-06-15 11:00"},
		{"every 12 hours", "Europe/Berlin", "2025-06-15 00:00:00", "2025-06-15 12:00"},
		{"Every  12 Hours", "Europe/Berlin", "2025-06-15 12:00:00", "2025-06-16 00:00"},
		{"every day", "America/New_York", "2025-06-15 12:00:00", "2025-06-16 00:00"},
		{"every week", "Europe/Berlin", "2025-06-15 12:00:00", "2025-06-16 00:00"},
		{"every week", "Europe/Berlin", "2025-06-16 00:00:00", "2025-06-23 00:00"},
		{"every fortnight", "", "1970-01-01 00:00:00", "1970-01-05 00:00"},
		{"every fortnight", "", "1970-01-05 00:00:00", "1970-01-19 00:00"},
		{"every fortnight", "", "1969-12-20 00:00:00", "1969-12-22 00:00"},
		{"every fortnight", "", "2025-06-15 00:00:00", "2025-06-23 00:00"},
		{"30 9 * * mon-fri", "", "2025-06-13 09:30:00", "2025-06-16 09:30"},
		{"*/20 8-10,22 * * *", "", "2025-06-13 10:40:00", "2025-06-13 22:00"},
		{"5/20 * * * *", "", "2025-06-13 10:25:00", "2025-06-13 10:45"},
		{"0 0 * * 7", "", "2025-06-13 00:00:00", "2025-06-15 00:00"},
		{"0 0 * * 0", "", "2025-06-13 00:00:00", "2025-06-15 00:00"},
		{"0 0 * * fri-sun", "", "2025-06-14 00:00:00", "2025-06-15 00:00"},
		{"0 0 * * 3-7/2", "", "2025-06-14 00:00:00", "2025-06-15 00:00"},
		{"0 0 * * 07", "", "2025-06-13 00:00:00", "2025-06-15 00:00"},
		{"0 0 1 JAN,jul *", "", "2025-06-13 00:00:00", "2025-07-01 00:00"},
		{"0 0 13 * fri", "", "2025-06-13 00:00:00", "2025-06-20 00:00"},
		{"0 0 */10 * fri", "", "2025-06-13 00:00:00", "2025-07-11 00:00"},
		{"0 0 29 2 *", "", "2096-03-01 00:00:00", "2104-02-29 00:00"},
		{"0 0 29 2 */7", "", "2004-03-01 00:00:00", "2032-02-29 00:00"},
	}
	for _, tt := range tests {
		t.Run(tt.text+" "+tt.zone+" "+tt.after, func(t *testing.T) {
			t.Parallel()
			s := mustParse(t, tt.text, tt.zone)
			after, err := time.ParseInLocation(time.DateTime, tt.after, s.Zone())
			if err != nil {
				t.Fatal(err)
			}
			got := s.Next(after)
			if text := got.Format("2006-01-02 15:04"); text != tt.want {
				t.Errorf("Next is %s, want %s", text, tt.want)
			}
			if latest, ok := s.Latest(after, got); !ok || !latest.Equal(got) {
				t.Errorf("Latest up to it is %s, %v", latest, ok)
			}
			if latest, ok := s.Latest(after, got.Add(-1)); ok {
				t.Errorf("there is an earlier one: %s", latest)
			}
		})
	}
}

// TestScheduleHandlesClockChanges has what the package documentation promises, each
// with the offset that shows which of two equal wall-clock times is meant.
func TestScheduleHandlesClockChanges(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text, zone, from, to string
		want                 []string
	}{
		"Berlin, spring, a time that is jumped over": {
			"30 2 * * *", "Europe/Berlin", "2025-03-29", "2025-04-01",
			[]string{"2025-03-29 02:30 +0100", "2025-03-30 03:00 +0200", "2025-03-31 02:30 +0200"},
		},
		"Berlin, spring, several times in the gap and one at its end": {
			"0,20,40 2-3 * * *", "Europe/Berlin", "2025-03-30", "2025-03-31",
			[]string{"2025-03-30 03:00 +0200", "2025-03-30 03:20 +0200", "2025-03-30 03:40 +0200"},
		},
		"Berlin, autumn, a time that comes twice": {
			"30 2 * * *", "Europe/Berlin", "2025-10-25", "2025-10-28",
			[]string{"2025-10-25 02:30 +0200", "2025-10-26 02:30 +0200", "2025-10-27 02:30 +0100"},
		},
		"Berlin, spring, every two hours": {
			"0 */2 * * *", "Europe/Berlin", "2025-03-30", "2025-03-30 06:01",
			[]string{"2025-03-30 00:00 +0100", "2025-03-30 04:00 +0200", "2025-03-30 06:00 +0200"},
		},
		"Berlin, autumn, every hour": {
			"every hour", "Europe/Berlin", "2025-10-26 01:00", "2025-10-26 03:59",
			[]string{"2025-10-26 01:00 +0200", "2025-10-26 02:00 +0200", "2025-10-26 02:00 +0100", "2025-10-26 03:00 +0100"},
		},
		"Berlin, autumn, every half hour of hour 2": {
			"*/30 2 * * *", "Europe/Berlin", "2025-10-26", "2025-10-27",
			[]string{"2025-10-26 02:00 +0200", "2025-10-26 02:30 +0200", "2025-10-26 02:00 +0100", "2025-10-26 02:30 +0100"},
		},
		"New York, spring, monthly": {
			"15 2 9 3 *", "America/New_York", "2025-03-01", "2025-04-01",
			[]string{"2025-03-09 03:00 -0400"},
		},
		"New York, autumn": {
			"0 1 2 11 *", "America/New_York", "2025-10-25", "2025-11-10",
			[]string{"2025-11-02 01:00 -0400"},
		},
		"Lord Howe, half an hour forwards": {
			"15,45 2 * * *", "Australia/Lord_Howe", "2025-10-05", "2025-10-06",
			[]string{"2025-10-05 02:30 +1100", "2025-10-05 02:45 +1100"},
		},
		"Lord Howe, half an hour backwards": {
			"15,45 1 * * *", "Australia/Lord_Howe", "2025-04-06", "2025-04-07",
			[]string{"2025-04-06 01:15 +1100", "2025-04-06 01:45 +1100"},
		},
		"Sao Paulo, a day without midnight": {
			"every day", "America/Sao_Paulo", "2018-11-03", "2018-11-05",
			[]string{"2018-11-03 00:00 -0300", "2018-11-04 01:00 -0200", "2018-11-05 00:00 -0200"},
		},
		"Sao Paulo, midnight comes twice": {
			"every day", "America/Sao_Paulo", "2018-02-17", "2018-02-19",
			[]string{"2018-02-17 00:00 -0200", "2018-02-18 00:00 -0300", "2018-02-19 00:00 -0300"},
		},
		"Beirut, a day without midnight": {
			"every day", "Asia/Beirut", "2024-03-30 12:00", "2024-04-01",
			[]string{"2024-03-31 01:00 +0300", "2024-04-01 00:00 +0300"},
		},
		"Cairo, a day without midnight": {
			"every 12 hours", "Africa/Cairo", "2024-04-26", "2024-04-27",
			[]string{"2024-04-26 01:00 +0300", "2024-04-26 12:00 +0300", "2024-04-27 00:00 +0300"},
		},
		"Apia, a day that does not exist": {
			"0 9 * * *", "Pacific/Apia", "2011-12-29", "2012-01-01",
			[]string{"2011-12-29 09:00 -1000", "2011-12-31 00:00 +1400", "2011-12-31 09:00 +1400"},
		},
		"Apia, every hour does not catch up": {
			"every hour", "Pacific/Apia", "2011-12-29 23:00", "2011-12-31 01:00",
			[]string{"2011-12-29 23:00 -1000", "2011-12-31 00:00 +1400", "2011-12-31 01:00 +1400"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustParse(t, tt.text, tt.zone)
			after, now := wall(t, tt.from, s.Zone()).Add(-time.Second), wall(t, tt.to, s.Zone())
			slots := s.All(after, now, 1000)
			var got []string
			for _, slot := range slots {
				got = append(got, slot.Format("2006-01-02 15:04 -0700"))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			compareWithBrute(t, tt.text, s, after, now)
		})
	}
}

func TestScheduleAllStopsAtTheLimit(t *testing.T) {
	t.Parallel()
	s := mustParse(t, "every minute", "")
	now := time.Date(2025, 6, 15, 12, 0, 0, 0, time.UTC)
	slots := s.All(now.Add(-time.Hour), now, 7)
	if len(slots) != 7 || !slots[0].Equal(now.Add(-59*time.Minute)) {
		t.Errorf("got %d slots from %s", len(slots), slots[0])
	}
	if slots := s.All(now, now.Add(-time.Hour), 7); len(slots) != 0 {
		t.Errorf("got %v of an empty time", slots)
	}
}

// TestScheduleOverCenturies would not end in time if the search were slow.
func TestScheduleOverCenturies(t *testing.T) {
	t.Parallel()
	long := time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC)
	now := time.Date(2400, 1, 1, 0, 0, 30, 0, time.UTC)
	for _, zone := range []string{"UTC", "Europe/Berlin", "Africa/Casablanca"} {
		s := mustParse(t, "every minute", zone)
		if latest, ok := s.Latest(long, now); !ok || !latest.Equal(now.Truncate(time.Minute)) {
			t.Errorf("%s: latest is %s, %v", zone, latest, ok)
		}
		s = mustParse(t, "0 12 29 2 */7", zone)
		if got, ok := s.Latest(long, now); !ok || got.Weekday() != time.Sunday || got.Day() != 29 {
			t.Errorf("%s: the last Sunday 29 February is %s, %v", zone, got, ok)
		}
		if got := s.Next(long); got.Weekday() != time.Sunday || got.Day() != 29 {
			t.Errorf("%s: the first Sunday 29 February is %s", zone, got)
		}
	}
}

// FuzzSchedule compares with the brute force: random texts, zones and times,
// the latter also moved to a change of the zone's clock.
func FuzzSchedule(f *testing.F) {
	texts := []string{
		"every minute", "every hour", "every 12 hours", "every day", "every week", "every fortnight",
		"30 2 * * *", "*/7 1-3 * * *", "0 */2 * * *", "15,45 0-2 * * *", "0 0 1-7 * mon", "0 0 */2 * 5-7/2",
		"59 23 31 dec *", "10-20/3 2 * mar,oct sun", "0 1/5 * * *", "30 0 29 2 *", "5 4 * * fri-sun",
	}
	zones := []string{
		"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Beirut",
		"Africa/Cairo", "Pacific/Apia", "Africa/Casablanca", "Asia/Kathmandu", "America/St_Johns", "Pacific/Kwajalein",
	}
	for i, text := range texts {
		for j, zone := range zones {
			if (i+j)%3 == 0 {
				f.Add(text, zone, int64(1735689600-i*10_000_000-j*100_000_000), i%4 != 0)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text, zone string, start int64, atChange bool) {
		s, err := ParseSchedule(text, zone)
		if err != nil {
			return // no schedule
		}
		// Before 1973 offsets were not whole minutes everywhere.
		const first, last = 94694400, 4102444800
		at := time.Unix(first+max(start, -start)%(last-first), 0).In(s.Zone())
		if _, end := at.ZoneBounds(); atChange && !end.IsZero() && end.Unix() < last {
			at = end.Add(-20 * time.Hour)
		}
		compareWithBrute(t, strings.Join(strings.Fields(text), " "), s, at, at.Add(48*time.Hour))
	})
}

func compareWithBrute(t *testing.T, text string, s Schedule, after, now time.Time) {
	t.Helper()
	want := bruteSlots(t, text, s.Zone(), after, now)
	got := s.All(after, now, 100_000)
	if !slices.EqualFunc(got, want, time.Time.Equal) {
		t.Errorf("%q in %s, after %s up to %s:\ngot  %v\nwant %v", text, s.Zone(), after, now, got, want)
	}
	for to := now; to.After(after); to = to.Add(-11 * time.Hour) {
		for len(want) > 0 && want[len(want)-1].After(to) {
			want = want[:len(want)-1]
		}
		latest, ok := s.Latest(after, to)
		if ok != (len(want) > 0) || ok && !latest.Equal(want[len(want)-1]) {
			t.Errorf("%q in %s: the latest up to %s is %s, %v", text, s.Zone(), to, latest, ok)
		}
	}
}

func mustParse(t *testing.T, text, zone string) Schedule {
	t.Helper()
	s, err := ParseSchedule(text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wall reads a date, or a date and a time, of a zone.
func wall(t *testing.T, text string, zone *time.Location) time.Time {
	t.Helper()
	if len(text) == len(time.DateOnly) {
		text += " 00:00"
	}
	at, err := time.ParseInLocation("2006-01-02 15:04", text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
