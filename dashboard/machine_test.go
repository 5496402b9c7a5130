package dashboard

import (
	"slices"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/machine"
)

// The picture has every state and every arrow of the code, and a way to each label.
func TestPictureShowsTheMachine(t *testing.T) {
	t.Parallel()
	for _, a := range machine.Arrows() {
		p := wayOf(inspect.Explanation{Reasons: []inspect.Reason{{Label: a.Label}}})
		if len(p.Arrows) != len(machine.Arrows()) {
			t.Fatalf("%d arrows are drawn, the machine has %d", len(p.Arrows), len(machine.Arrows()))
		}
		taken := false
		for _, drawn := range p.Arrows {
			taken = taken || drawn.Taken && drawn.Label == string(a.Label)
			if drawn.Y <= 0 || drawn.Y > p.Height {
				t.Errorf("the arrow %q is drawn at %d of %d", drawn.Label, drawn.Y, p.Height)
			}
		}
		if !taken || !strings.HasPrefix(p.Text, "Queue ") {
			t.Errorf("no way with %q: %s", a.Label, p.Text)
		}
	}
}

// An event that was cancelled while it waited did not run.
func TestCancelledEventShowsNoRun(t *testing.T) {
	t.Parallel()
	p := wayOf(inspect.Explanation{Shown: inspect.Shown{Logged: &inspect.LogEntry{Status: inspect.LogCancelled}}, Reasons: []inspect.Reason{{Label: machine.FailedForGood}}})
	for _, a := range p.Arrows {
		if a.Taken {
			t.Errorf("it has taken %q", a.Label)
		}
	}
	for _, b := range p.Boxes {
		if b.Reached != (b.Name == string(machine.Queue)) {
			t.Errorf("%s: %t", b.Name, b.Reached)
		}
	}
	if p.Text != "Queue, until it was cancelled" {
		t.Error(p.Text)
	}
}

// An event that its handler has refused for good has not been through the check of its retries.
func TestPermanentFailureShowsItsPath(t *testing.T) {
	t.Parallel()
	for label, want := range map[machine.Label]bool{machine.RetryTooMany: true, machine.FailedForGood: false} {
		p := wayOf(inspect.Explanation{Shown: inspect.Shown{Logged: &inspect.LogEntry{Status: inspect.LogFailed}}, Reasons: []inspect.Reason{{Label: label}}})
		if checked := strings.Contains(p.Text, string(machine.RetryCheck)); checked != want || !strings.HasSuffix(p.Text, string(machine.End)) {
			t.Errorf("the way of %s is %s", label, p.Text)
		}
	}
}

// End is lit for an event that has ended, and for no other: a notification may end while its event waits. What was tried
// again has been back in the queue.
func TestPictureShowsTheEndAndTheRetries(t *testing.T) {
	t.Parallel()
	logged, queued := &inspect.LogEntry{Status: inspect.LogCompleted}, &inspect.QueuedEvent{}
	logged.Retries = 2
	for label, c := range map[machine.Label]struct {
		shown          inspect.Shown
		ended, retried bool
	}{
		machine.ExecutesToCompletion: {inspect.Shown{Logged: logged}, true, true},
		machine.Paused:               {inspect.Shown{Queued: queued}, false, false},
	} {
		p := wayOf(inspect.Explanation{Shown: c.shown, Reasons: []inspect.Reason{{Label: label}}})
		for _, b := range p.Boxes {
			if b.Name == string(machine.End) && b.Reached != c.ended || b.Name == string(machine.RetryCheck) && b.Reached != c.retried {
				t.Errorf("%s: %s is lit: %t", label, b.Name, b.Reached)
			}
		}
		if got := strings.HasPrefix(p.Text, "2 times: Queue "); got != c.retried {
			t.Errorf("%s: the way in words is %s", label, p.Text)
		}
	}
}

// A line of the same number of runs each minute ends as high as it began, also while a minute goes on.
func TestUnfinishedMinuteIsNoDrop(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 17, 30, 40, 0, time.UTC)
	var list []inspect.Minute
	for ago := range 6 * 60 {
		m := inspect.Minute{Begins: now.Truncate(time.Minute).Add(-time.Duration(ago) * time.Minute), AsOf: now}
		if m.Completed = 7; ago == 0 {
			m.Completed = 1
		}
		list = append(list, m)
	}
	slices.Reverse(list)
	points := strings.Fields(sparkline(list, now).Lines[0].Points)
	_, want, _ := strings.Cut(points[len(points)/2], ",")
	if last := points[len(points)-1]; !strings.HasSuffix(last, ","+want) {
		t.Errorf("the line ends at %s, and goes on at %s", last, want)
	}
	for _, s := range spans {
		counts, _, _ := charts(list, s.axis(now, list[0].Begins))
		values := strings.Split(counts.Lines[1].Values, "|")
		if last := values[len(values)-1]; last != values[len(values)-2] {
			t.Errorf("the values of %s end with %s: %v", s.words, last, values)
		}
	}
}
