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
	for _, n := range []int64{0, 7, 1_234_567_890} {
		list := []inspect.Minute{{Begins: now.Truncate(time.Minute).Add(-time.Minute), Counts: minutes.Counts{Emitted: n}}}
		counts, _, _ := charts(list, now)
		if len(counts.Ticks) != 3 {
			t.Fatalf("%d values beside the chart", len(counts.Ticks))
		}
		for _, tick := range counts.Ticks {
			if tick.TextY < largestText || tick.TextY > tick.Y || tick.Y > float64(counts.Base-largestText) {
				t.Errorf("of %d events: %q stands at %.0f, over the line at %.0f of a picture with a height of %d", n, tick.Text, tick.TextY, tick.Y, counts.Height)
			}
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
	counts, waits, backlog := charts([]inspect.Minute{minute(30 * time.Minute), minute(29 * time.Minute), minute(time.Minute)}, now)
	if path := counts.Lines[0].Path; strings.Count(path, "M") != 1 || strings.Count(path, "L") != 58 || counts.Gap != "" {
		t.Errorf("what was emitted is known in every minute: %s, gaps: %q", path, counts.Gap)
	}
	for _, c := range []chart{waits, backlog} {
		if path := c.Lines[0].Path; strings.Count(path, "M") != 2 || strings.Count(path, "L") != 1 || c.Gap == "" {
			t.Errorf("%s has two parts, the second a dot: %s, gaps: %q", c.Title, path, c.Gap)
		}
	}
	var whole []inspect.Minute
	for ago := 60 * time.Minute; ago > 0; ago -= time.Minute {
		whole = append(whole, minute(ago))
	}
	if _, waits, backlog := charts(whole, now); waits.Gap != "" || backlog.Gap != "" || strings.Count(backlog.Lines[0].Path, "M") != 1 {
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
	_, _, backlog := charts([]inspect.Minute{minute(30*time.Minute, new(int64(4))), minute(20*time.Minute, new(int64(0))), minute(10*time.Minute, nil)}, now)
	// A dot, and a line of ten minutes; then something was counted, and not what is pending.
	if path := backlog.Lines[0].Path; strings.Count(path, "M") != 2 || strings.Count(path, "L") != 9 || backlog.Gap == "" {
		t.Errorf("the line is %s, gaps: %q", path, backlog.Gap)
	}
}
