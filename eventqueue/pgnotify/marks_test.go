package pgnotify

import (
	"testing"
	"time"
)

func TestMarks(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	never := next{}
	m := &marks{}
	for i, step := range []struct {
		ms      int
		want    look
		highest int64 // taken
		full    bool
		then    next
	}{
		{0, look{0, whole}, 500, true, next{now: true}},
		// In a backlog each look begins where the last one ended.
		{1, look{500, front}, 1000, true, next{now: true}},
		{2, look{1000, front}, 1100, false, next{now: true}},
		// At its end, what may have been passed over is looked at.
		{3, look{0, settled}, 0, false, next{at: at(1000)}},
		{1000, look{0, whole}, 0, false, never},
		{1500, look{0, settled}, 1200, false, next{at: at(2000)}},
		{2000, look{0, whole}, 0, false, never},
		{2001, look{1100, settled}, 1300, false, next{at: at(3000)}},
		{3000, look{0, whole}, 0, false, never},
		{3001, look{1200, settled}, 0, false, next{at: at(4000)}},
		// After a crash of Postgres places begin anew.
		{9000, look{0, whole}, 3, true, next{now: true}},
		{9001, look{3, front}, 6, true, next{now: true}},
		{9002, look{6, front}, 0, false, next{now: true}},
		{9003, look{3, settled}, 0, false, next{at: at(10_000)}},
	} {
		l := m.begin(at(step.ms))
		if l != step.want {
			t.Fatalf("look %d at %d ms is %+v, want %+v", i, step.ms, l, step.want)
		}
		if then := m.end(l, step.highest, step.full); then != step.then {
			t.Fatalf("after look %d at %d ms the next is %+v, want %+v", i, step.ms, then, step.then)
		}
	}
}
