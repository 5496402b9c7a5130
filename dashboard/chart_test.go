package dashboard

import (
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/minutes"
)

// At every width the values stand in the picture, with room for the largest text above their line.
func TestChartPictureHasItsValues(t *testing.T) {
	t.Parallel()
	const largestText = 20 // as the stylesheet has it for narrow screens
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for n, want := range map[int64]string{0: "0 1 2", 1: "0 1 2", 2: "0 1 2", 3: "0 2 4", 5: "0 3 6", 7: "0 4 8", 9: "0 5 10", 10: "0 5 10", 41: "0 30 60", 1_234_567_890: "0 1,000,000,000 2,000,000,000"} {
		list := []inspect.Minute{{Begins: now.Truncate(time.Minute).Add(-time.Minute), Counts: minutes.Counts{Emitted: n}}}
		counts, _, _ := charts(list, spans[0].axis(now, time.Time{}))
		if len(counts.Ticks) != 3 {
			t.Fatalf("%d values beside the chart", len(counts.Ticks))
		}
		var values []string
		for _, tick := range counts.Ticks {
			values = append(values, tick.Text)
			if tick.TextY < largestText || tick.TextY > tick.Y || tick.Y > float64(counts.Floor) {
				t.Errorf("of %d events: %q stands at %.0f, over the line at %.0f of a picture with a height of %d", n, tick.Text, tick.TextY, tick.Y, counts.Height)
			}
		}
		if got := strings.Join(values, " "); got != want {
			t.Errorf("beside a chart of %d events stand %s", n, got)
		}
		if last := counts.Lines[0].Path; !strings.Contains(last, "L638.0,") {
			t.Errorf("the line does not reach the last minute: %s", last)
		}
	}
}

// A line is interrupted where its value is not known, and 0 where it is known to be; the legend says what a gap means.
func TestChartShowsMinutesWithoutData(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	pending := int64(4)
	minute := func(ago time.Duration) inspect.Minute {
		m := inspect.Minute{Begins: now.Truncate(time.Minute).Add(-ago), Pending: &pending, Counts: minutes.Counts{Emitted: 1}}
		m.Wait.Add(time.Second)
		return m
	}
	counts, waits, backlog := charts([]inspect.Minute{minute(30 * time.Minute), minute(29 * time.Minute), minute(time.Minute)}, spans[0].axis(now, time.Time{}))
	if path := counts.Lines[0].Path; strings.Count(path, "M") != 1 || strings.Count(path, "L") != 59 || counts.Gap != "" {
		t.Errorf("what was emitted is known in every minute: %s, gaps: %q", path, counts.Gap)
	}
	for _, c := range []chart{waits, backlog} {
		if line := c.Lines[0]; strings.Count(line.Path, "M") != 1 || strings.Count(line.Path, "L") != 1 || !strings.HasPrefix(line.Dots, "M638.0,") || c.Gap == "" {
			t.Errorf("%s has two parts, the second a dot: %s and %s, gaps: %q", c.Title, line.Path, line.Dots, c.Gap)
		}
	}
	var whole []inspect.Minute
	for ago := 60 * time.Minute; ago > 0; ago -= time.Minute {
		whole = append(whole, minute(ago))
	}
	if _, waits, backlog := charts(whole, spans[0].axis(now, time.Time{})); waits.Gap != "" || backlog.Gap != "" || strings.Count(backlog.Lines[0].Path, "M") != 1 {
		t.Errorf("whole lines have gaps: %q and %q", waits.Gap, backlog.Gap)
	}
}

// What is pending is known after a count of 0: a relay counts again when something has happened.
func TestChartShowsThatNothingIsPending(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	minute := func(ago time.Duration, pending *int64) inspect.Minute {
		return inspect.Minute{Begins: now.Truncate(time.Minute).Add(-ago), Pending: pending}
	}
	_, _, backlog := charts([]inspect.Minute{minute(30*time.Minute, new(int64(4))), minute(20*time.Minute, new(int64(0))), minute(10*time.Minute, nil)}, spans[0].axis(now, time.Time{}))
	// A dot, and a line of ten minutes; then something was counted, and not what is pending.
	if line := backlog.Lines[0]; strings.Count(line.Path, "M") != 1 || strings.Count(line.Path, "L") != 9 || strings.Count(line.Dots, "M") != 1 || backlog.Gap == "" {
		t.Errorf("the line is %s with dots %s, gaps: %q", line.Path, line.Dots, backlog.Gap)
	}
	_, _, backlog = charts([]inspect.Minute{minute(29*time.Minute, new(int64(4))), minute(28*time.Minute, new(int64(0)))}, spans[1].axis(now, time.Time{}))
	if values := backlog.Lines[0].Values; !strings.HasSuffix(values, "||4|0|0|0|0|0") {
		t.Errorf("after five minutes at whose end nothing was pending, the values are %s", values)
	}
}

// The time axis of each range has its ticks at round times, and no more of them than have room for a text.
func TestChartHasTicksAtRoundTimes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for _, c := range []struct {
		span, counted, title string
		begins, ends, ticks  string
	}{
		{"1h", "", "Events per minute", "04:06", "05:05", "04:10 04:20 04:30 04:40 04:50 05:00"},
		{"6h", "", "Events per 5 minutes", "23:05", "05:00", "00:00 01:00 02:00 03:00 04:00 05:00"},
		{"24h", "", "Events per half hour", "05:00", "04:30", "08:00 12:00 16:00 20:00 00:00 04:00"},
		{"7d", "", "Events per hour", "05:00", "04:00", "00:00 00:00 00:00 00:00 00:00 00:00 00:00"},
		{"1h", "04:51", "Events per minute", "04:51", "05:05", "04:55 05:00 05:05"},
		{"1h", "05:04", "Events per minute", "04:56", "05:05", "04:56 04:58 05:00 05:02 05:04"},
		{"6h", "03:14", "Events per 5 minutes", "03:10", "05:00", "03:20 03:40 04:00 04:20 04:40 05:00"},
		{"24h", "05:06", "Events per half hour", "23:00", "04:30", "23:00 00:00 01:00 02:00 03:00 04:00"},
	} {
		var on axis
		for _, s := range spans {
			if s.name == c.span {
				on = s.axis(now, countedAt(t, now, c.counted))
			}
		}
		counts, _, _ := charts(nil, on)
		var ticks []string
		for _, m := range counts.Times {
			at := time.Unix(m.At, 0).UTC()
			ticks = append(ticks, at.Format("15:04"))
			if m.Text != tickText(at) || m.Anchor == "middle" && (m.X < edge || m.X > chartWidth-edge) || m.X < left || m.X > chartWidth-right {
				t.Errorf("%s since %s: at %s, x = %.1f, stands %q", c.span, c.counted, at, m.X, m.Text)
			}
		}
		begins, ends := on.begins.Format("15:04"), on.at(on.steps-1).Format("15:04")
		if counts.Title != c.title || begins != c.begins || ends != c.ends || strings.Join(ticks, " ") != c.ticks {
			t.Errorf("%s since %q: %s from %s to %s, with ticks at %v", c.span, c.counted, counts.Title, begins, ends, ticks)
		}
		if n := strings.Count(counts.Lines[0].Values, "|"); n != on.steps-1 {
			t.Errorf("%s: a line has %d values and not %d", c.span, n+1, on.steps)
		}
	}
}

// countedAt is a time of the day of now; zero for none.
func countedAt(t *testing.T, now time.Time, clock string) time.Time {
	t.Helper()
	if clock == "" {
		return time.Time{}
	}
	at, err := time.Parse("15:04", clock)
	if err != nil {
		t.Fatal(err)
	}
	return now.Truncate(24 * time.Hour).Add(time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute)
}

// Minutes are summed up by step: counts are added, and of what is pending the highest number is shown.
func TestChartSumsMinutesUpByStep(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	var list []inspect.Minute
	for i := range int64(9) { // from 04:55 to 05:03
		list = append(list, inspect.Minute{Begins: now.Truncate(time.Minute).Add(time.Duration(i-11) * time.Minute), Pending: new(10 - i), Counts: minutes.Counts{Emitted: 100}})
	}
	counts, _, backlog := charts(list, spans[1].axis(now, time.Time{}))
	if !strings.HasSuffix(counts.Lines[0].Values, "|0|500|400") || !strings.HasSuffix(backlog.Lines[0].Values, "||10|5") {
		t.Errorf("emitted are %s, and pending %s", counts.Lines[0].Values, backlog.Lines[0].Values)
	}
}

// A line begins where counting began, and has a gap, which is explained, where counts are not summed up.
func TestChartShowsNothingWhereNothingIsKnown(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	counts, waits, _ := charts(nil, spans[0].axis(now, now.Add(-3*time.Minute)))
	if values := counts.Lines[0].Values; values != "|||||||0|0|0" || counts.Gap != "" {
		t.Errorf("three minutes after counting began the values are %s, gaps: %q", values, counts.Gap)
	}
	if waits.Gap != "nothing ran" {
		t.Errorf("the gaps of waits are %q", waits.Gap)
	}
	list := []inspect.Minute{{Begins: now.Truncate(time.Minute).Add(-2 * time.Minute), Unsummed: true}}
	if counts, waits, _ = charts(list, spans[0].axis(now, now.Add(-3*time.Minute))); counts.Lines[0].Values != "|||||||0||0" || counts.Gap != unsummed || waits.Gap == "" {
		t.Errorf("with a minute that is not summed up the values are %s, gaps: %q", counts.Lines[0].Values, counts.Gap)
	}
}
