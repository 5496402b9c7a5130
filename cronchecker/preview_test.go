package cronchecker

import (
	"slices"
	"testing"
	"time"
)

// TestPreviewNamesEffectsOfClockChanges has the slots of TestScheduleHandlesClockChanges in words.
func TestPreviewNamesEffectsOfClockChanges(t *testing.T) {
	t.Parallel()
	const (
		berlinSpring, berlinAutumn   = "On 2025-03-30 the clocks go forward from 02:00 to 03:00: ", "On 2025-10-26 the clocks go back from 03:00 to 02:00: "
		newYorkSpring, newYorkAutumn = "On 2025-03-09 the clocks go forward from 02:00 to 03:00: ", "On 2025-11-02 the clocks go back from 02:00 to 01:00: "
		howeSpring, howeAutumn       = "On 2025-10-05 the clocks go forward from 02:00 to 02:30: ", "On 2025-04-06 the clocks go back from 02:00 to 01:30: "
		apia                         = "The clocks go forward from 2011-12-30 00:00 to 2011-12-31 00:00: "
		once, twice                  = " comes twice, and is due the first time only.", " comes twice, and is due both times."
	)
	tests := map[string]struct {
		text, zone, after string
		want              []string
	}{
		"Berlin, spring, a time that is skipped": {
			"30 2 * * *", "Europe/Berlin", "2025-03-29",
			[]string{"2025-03-29 02:30 +0100 ", "2025-03-30 03:00 +0200 " + berlinSpring + "02:30 is due at 03:00 instead.", "2025-03-31 02:30 +0200 "},
		},
		"Berlin, spring, several times become one": {
			"0,20,40 2-3 * * *", "Europe/Berlin", "2025-03-30",
			[]string{"2025-03-30 03:00 +0200 " + berlinSpring + "02:00, 02:20, 02:40 and 03:00 are due once, at 03:00.", "2025-03-30 03:20 +0200 "},
		},
		"Berlin, spring, a whole hour becomes one": {
			"0-59 2 * * *", "Europe/Berlin", "2025-03-29 02:58",
			[]string{"2025-03-29 02:59 +0100 ", "2025-03-30 03:00 +0200 " + berlinSpring + "the 60 times from 02:00 to 02:59 are due once, at 03:00.", "2025-03-31 02:00 +0200 "},
		},
		"Berlin, spring, every hour": {
			"every hour", "Europe/Berlin", "2025-03-30",
			[]string{"2025-03-30 01:00 +0100 ", "2025-03-30 03:00 +0200 " + berlinSpring + "02:00 is left out.", "2025-03-30 04:00 +0200 "},
		},
		"Berlin, spring, nothing of the day is left": {
			"*/30 2 * * *", "Europe/Berlin", "2025-03-29 02:10",
			[]string{"2025-03-29 02:30 +0100 ", "2025-03-31 02:00 +0200 " + berlinSpring + "02:00 and 02:30 are left out.", "2025-03-31 02:30 +0200 "},
		},
		"Berlin, spring, after the change": {
			"*/30 2 * * *", "Europe/Berlin", "2025-03-30 03:00",
			[]string{"2025-03-31 02:00 +0200 "},
		},
		"Berlin, spring, times beside the gap": {
			"0 3 * * *", "Europe/Berlin", "2025-03-29 12:00",
			[]string{"2025-03-30 03:00 +0200 "},
		},
		"Berlin, autumn, a time that comes twice": {
			"30 2 * * *", "Europe/Berlin", "2025-10-25",
			[]string{"2025-10-25 02:30 +0200 ", "2025-10-26 02:30 +0200 " + berlinAutumn + "02:30" + once, "2025-10-27 02:30 +0100 "},
		},
		"Berlin, autumn, every half hour of an hour": {
			"*/30 2 * * *", "Europe/Berlin", "2025-10-26",
			[]string{"2025-10-26 02:00 +0200 " + berlinAutumn + "02:00" + twice, "2025-10-26 02:30 +0200 " + berlinAutumn + "02:30" + twice,
				"2025-10-26 02:00 +0100 " + berlinAutumn + "02:00" + twice, "2025-10-26 02:30 +0100 " + berlinAutumn + "02:30" + twice, "2025-10-27 02:00 +0100 "},
		},
		"Berlin, autumn, times beside those that are repeated": {
			"59,0 1,3 * * *", "Europe/Berlin", "2025-10-26 01:30",
			[]string{"2025-10-26 01:59 +0200 ", "2025-10-26 03:00 +0100 ", "2025-10-26 03:59 +0100 "},
		},
		"New York, spring": {
			"15 2 9 3 *", "America/New_York", "2025-03-01",
			[]string{"2025-03-09 03:00 -0400 " + newYorkSpring + "02:15 is due at 03:00 instead.", "2026-03-09 02:15 -0400 "},
		},
		"New York, autumn": {
			"0 1 * * *", "America/New_York", "2025-11-01 12:00",
			[]string{"2025-11-02 01:00 -0400 " + newYorkAutumn + "01:00" + once, "2025-11-03 01:00 -0500 "},
		},
		"Lord Howe, half an hour forward": {
			"15,45 2 * * *", "Australia/Lord_Howe", "2025-10-05",
			[]string{"2025-10-05 02:30 +1100 " + howeSpring + "02:15 is due at 02:30 instead.", "2025-10-05 02:45 +1100 "},
		},
		"Lord Howe, half an hour back": {
			"15,45 1 * * *", "Australia/Lord_Howe", "2025-04-06",
			[]string{"2025-04-06 01:15 +1100 ", "2025-04-06 01:45 +1100 " + howeAutumn + "01:45" + once, "2025-04-07 01:15 +1030 "},
		},
		"Sao Paulo, a day without midnight": {
			"every day", "America/Sao_Paulo", "2018-11-03 12:00",
			[]string{"2018-11-04 01:00 -0200 On 2018-11-04 the clocks go forward from 00:00 to 01:00: 00:00 is due at 01:00 instead.", "2018-11-05 00:00 -0200 "},
		},
		"Sao Paulo, back across midnight": {
			"30 23 * * *", "America/Sao_Paulo", "2018-02-17 12:00",
			[]string{"2018-02-17 23:30 -0200 The clocks go back from 2018-02-18 00:00 to 2018-02-17 23:00: 2018-02-17 23:30" + once, "2018-02-18 23:30 -0300 "},
		},
		"Apia, a day that does not exist": {
			"0 9 * * *", "Pacific/Apia", "2011-12-29 12:00",
			[]string{"2011-12-31 00:00 +1400 " + apia + "2011-12-30 09:00 is due at 2011-12-31 00:00 instead.", "2011-12-31 09:00 +1400 "},
		},
		"Apia, every hour": {
			"every hour", "Pacific/Apia", "2011-12-29 23:00",
			[]string{"2011-12-31 00:00 +1400 " + apia + "the 24 times from 2011-12-30 00:00 to 2011-12-30 23:00 are left out.", "2011-12-31 01:00 +1400 "},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustParse(t, tt.text, tt.zone)
			var got []string
			for _, slot := range s.Preview(wall(t, tt.after, s.Zone()), len(tt.want)) {
				got = append(got, slot.At.Format("2006-01-02 15:04 -0700 ")+slot.Note)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// The slots equal those of Next; a zone without clock changes has no notes.
func TestPreviewWithoutClockChanges(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"", "Asia/Tokyo", "Asia/Kathmandu", "Etc/GMT+5"} {
		for _, text := range []string{"every hour", "30 2 * * *", "*/30 2 1 * *"} {
			s := mustParse(t, text, zone)
			at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
			slots := s.Preview(at, 400)
			if len(slots) != 400 {
				t.Fatalf("%d slots", len(slots))
			}
			for _, slot := range slots {
				if at = s.Next(at); slot.At != at || slot.Note != "" {
					t.Fatalf("%q in %q: %s %q, want %s without a note", text, zone, slot.At, slot.Note, at)
				}
			}
		}
	}
	if slots := mustParse(t, "every day", "").Preview(time.Now(), 0); len(slots) != 0 {
		t.Errorf("none were asked for: %v", slots)
	}
}
