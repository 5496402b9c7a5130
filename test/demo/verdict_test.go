package main

import (
	"testing"
	"time"

	"eventsv2/eventqueue"
)

func TestEachEndGetsItsVerdict(t *testing.T) {
	t.Parallel()
	one, other := digest{1}, digest{2}
	seen := sighting{runs: 1, done: 1, digest: one}
	completed, failed := ending{statusCompleted, one}, ending{statusFailed, one}
	for _, c := range []struct {
		name   string
		ended  ending // zero: the event has not ended
		seen   sighting
		wait   int
		want   string
		wantOK bool
	}{
		{"completed", completed, seen, 0, "emitted=1 completed=1 failed=0 lost=0 duplicates=0", true},
		{"failed", failed, sighting{runs: 3, digest: one}, 0, "emitted=1 completed=0 failed=1 lost=0 duplicates=0", true},
		{"failed, never seen", failed, sighting{}, 0, "emitted=1 completed=0 failed=1 lost=0 duplicates=0", true},
		{"done twice", completed, sighting{runs: 3, done: 2, digest: one}, 0, "emitted=1 completed=1 failed=0 lost=0 duplicates=1", true},
		{"gone", ending{}, seen, 0, "emitted=1 completed=0 failed=0 lost=1 duplicates=0", false},
		{"still waiting", ending{}, sighting{}, 1, "emitted=1 completed=0 failed=0 lost=1 duplicates=0", false},
		{"completed, never done", completed, sighting{runs: 1, digest: one}, 0, "emitted=1 completed=0 failed=0 lost=1 duplicates=0", false},
		{"ended and still waiting", completed, seen, 1, "emitted=1 completed=1 failed=0 lost=0 duplicates=0", false},
		{"other body", completed, sighting{runs: 1, done: 1, digest: other}, 0, "emitted=1 completed=1 failed=0 lost=0 duplicates=0", false},
		{"bodies differ", completed, sighting{runs: 2, done: 1, digest: one, differs: true}, 0, "emitted=1 completed=1 failed=0 lost=0 duplicates=0", false},
		{"other value in event_log", ending{statusFailed, other}, sighting{}, 0, "emitted=1 completed=0 failed=1 lost=0 duplicates=0", false},
	} {
		f := facts{emitted: map[eventqueue.EventID]digest{7: one}, waiting: c.wait, took: 1234 * time.Millisecond,
			ended: map[eventqueue.EventID]ending{}, seen: map[eventqueue.EventID]sighting{8: seen}}
		if c.ended.status != "" {
			f.ended[7] = c.ended
		}
		if c.seen.runs > 0 {
			f.seen[7] = c.seen
		}
		v := judge(f)
		if want := "demo: " + c.want + " seconds=1.2"; v.String() != want || v.ok() != c.wantOK {
			t.Errorf("%s:\n got %s (ok %v)\nwant %s (ok %v)", c.name, v, v.ok(), want, c.wantOK)
		}
	}
}
