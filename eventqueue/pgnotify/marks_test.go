package pgnotify

import (
	"testing"
	"time"
)

func TestMarksBoundTheNextPoll(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	never := next{}
	m := &marks{}
	for i, step := range []struct {
		ms      int
		want    poll
		highest int64 // taken
		full    bool
		then    next
	}{
		{0, poll{0, whole}, 500, true, next{now: true}},
		// In a backlog each poll begins where the last one ended.
		{1, poll{500, front}, 1000, true, next{now: true}},
		{2, poll{1000, front}, 1100, false, next{now: true}},
		// At its end, rows that may have been passed over are polled.
		{3, poll{0, recent}, 0, false, next{at: at(1000)}},
		{1000, poll{0, whole}, 0, false, never},
		{1500, poll{0, recent}, 1200, false, next{at: at(2000)}},
		{2000, poll{0, whole}, 0, false, never},
		{2001, poll{1100, recent}, 1300, false, next{at: at(3000)}},
		{3000, poll{0, whole}, 0, false, never},
		{3001, poll{1200, recent}, 0, false, next{at: at(4000)}},
		// After a crash of Postgres places start again.
		{9000, poll{0, whole}, 3, true, next{now: true}},
		{9001, poll{3, front}, 6, true, next{now: true}},
		{9002, poll{6, front}, 0, false, next{now: true}},
		{9003, poll{3, recent}, 0, false, next{at: at(10_000)}},
		{10_000, poll{0, whole}, 0, false, never},
		{10_001, poll{3, recent}, 0, false, next{at: at(11_000)}},
	} {
		l := m.begin(at(step.ms))
		if l != step.want {
			t.Fatalf("poll %d at %d ms is %+v, want %+v", i, step.ms, l, step.want)
		}
		if then := m.end(l, step.highest, step.full); then != step.then {
			t.Fatalf("after poll %d at %d ms the next is %+v, want %+v", i, step.ms, then, step.then)
		}
	}
}
