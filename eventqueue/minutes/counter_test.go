package minutes

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
)

// minuteTable takes hand-ins, or refuses them.
type minuteTable struct {
	handIns [][]Counts
	at      []time.Time

	mu     sync.Mutex
	refuse error
}

// accept has it take hand-ins from now on.
func (m *minuteTable) accept() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuse = nil
}

func (m *minuteTable) AddMinutes(_ context.Context, counts []Counts) (time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = append(m.at, time.Now())
	if m.refuse != nil {
		return time.Time{}, m.refuse
	}
	m.handIns = append(m.handIns, counts)
	return time.Now(), nil
}

func (m *minuteTable) sum() (sum Counts) {
	for _, counts := range m.handIns {
		for i := range counts {
			sum.Merge(&counts[i])
		}
	}
	return sum
}

func countOf(m *Counter, canvas byte, runs int) {
	for range runs {
		m.CountRuns([]CountedRun{{Scope: eventqueue.Scope{Canvas: eventqueue.CanvasID{canvas}, Module: "M", Name: "n"}, Waited: time.Second, Took: 3 * time.Millisecond}})
	}
}

func noJitter(time.Duration) time.Duration { return 0 }

// TestIdleProgramsWriteNoCounts: counts go out once a minute while there are any, and an idle
// program sends nothing for as long as it is idle.
func TestIdleProgramsWriteNoCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := &minuteTable{}
		m := New(table, noJitter, zap.NewNop())
		time.Sleep(3 * time.Minute)
		if synctest.Wait(); len(table.at) != 0 {
			t.Fatalf("idle from the start: %d statements", len(table.at))
		}
		for range 600 { // ten minutes of work
			countOf(m, 1, 2)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		busy := len(table.at)
		if busy < 10 || busy > 11 {
			t.Errorf("%d statements in ten minutes of work", busy)
		}
		for i := 1; i < busy; i++ {
			if gap := table.at[i].Sub(table.at[i-1]); gap < time.Minute {
				t.Errorf("two hand-ins within %s", gap)
			}
		}
		time.Sleep(3 * time.Minute)
		if synctest.Wait(); len(table.at) != busy {
			t.Errorf("idle: %d statements", len(table.at)-busy)
		}
		if sum := table.sum(); sum.Completed != 1200 || sum.Wait.Count() != 1200 || sum.Run.Count() != 1200 {
			t.Errorf("%+v was handed in of 1200 runs", sum)
		}
	})
}

// TestRefusedCountsAreWrittenWithTheNext, and nothing is lost or counted twice.
func TestRefusedCountsAreWrittenWithTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := &minuteTable{refuse: errors.New("down")}
		m := New(table, noJitter, zap.NewNop())
		countOf(m, 1, 5)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(table.at) != 2 {
			t.Errorf("%d tries in two minutes", len(table.at))
		}
		countOf(m, 1, 7)
		table.accept()
		time.Sleep(time.Minute)
		synctest.Wait()
		if sum := table.sum(); sum.Completed != 12 || len(table.handIns) != 1 {
			t.Errorf("%d of 12 runs in %d hand-ins", sum.Completed, len(table.handIns))
		}
		if err := m.HandIn(t.Context()); err != nil || len(table.handIns) != 1 {
			t.Errorf("with nothing to hand in: %v, %d hand-ins", err, len(table.handIns))
		}
	})
}

// TestCountsAreWrittenInBoundedBatches, and all counts.
func TestCountsAreWrittenInBoundedBatches(t *testing.T) {
	t.Parallel()
	table := &minuteTable{}
	m := New(table, noJitter, zap.NewNop())
	const canvases = 10_000
	for n := range canvases {
		m.CountRuns([]CountedRun{{Scope: eventqueue.Scope{Canvas: eventqueue.CanvasID{1, byte(n >> 8), byte(n)}, Module: "M", Name: "n"}}})
	}
	for n := range 3 * minuteScopes {
		m.CountRuns([]CountedRun{{Scope: eventqueue.Scope{Canvas: eventqueue.CanvasID{2}, Module: "M", Name: string([]rune{'a' + rune(n/100), 'a' + rune(n%100)})}}})
	}
	if err := m.HandIn(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rows := len(table.handIns[0]); rows > 2*minuteScopes+1 {
		t.Errorf("%d rows", rows)
	}
	if sum := table.sum(); sum.Completed != canvases+3*minuteScopes {
		t.Errorf("%d runs are counted of %d", sum.Completed, canvases+3*minuteScopes)
	}
}

// TestHistogramsMergeExactly, and quantiles are in the bucket of the exact ones.
func TestHistogramsMergeExactly(t *testing.T) {
	t.Parallel()
	var all, odd, even Histogram
	for n := range 1000 {
		d := time.Duration(n*n) * time.Millisecond
		all.Add(d)
		if n%2 == 0 {
			even.Add(d)
		} else {
			odd.Add(d)
		}
	}
	odd.Merge(even)
	for i := range all {
		if all[i] != odd[i] {
			t.Errorf("bucket %d has %d, and %d merged", i, all[i], odd[i])
		}
	}
	for q, exact := range map[float64]time.Duration{0.5: 499 * 499 * time.Millisecond, 0.99: 989 * 989 * time.Millisecond} {
		if got := all.Quantile(q); float64(got) < float64(exact)/1.42 || float64(got) > float64(exact)*1.42 {
			t.Errorf("p%v is %s, exactly %s", 100*q, got, exact)
		}
	}
	for _, d := range []time.Duration{-time.Hour, 0, time.Millisecond} {
		h := Histogram{}
		if h.Add(d); len(h) != 1 {
			t.Errorf("%s is in bucket %d", d, len(h)-1)
		}
	}
	var longest Histogram
	if longest.Add(1000 * 24 * time.Hour); len(longest) != Buckets {
		t.Errorf("the longest is in bucket %d", len(longest)-1)
	}
}

// TestCountsSurviveRefusedWrites, each in its scope and its field, also those that come during a refusal.
func TestCountsSurviveRefusedWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := &minuteTable{refuse: errors.New("down")}
		m := New(table, noJitter, zap.NewNop())
		scopes := []eventqueue.Scope{{Canvas: eventqueue.CanvasID{1}, Module: "M", Name: "n"}, {Canvas: eventqueue.CanvasID{2}, Module: "M", Name: "o"}}
		want := map[eventqueue.Scope]*Counts{scopes[0]: {Scope: scopes[0]}, scopes[1]: {Scope: scopes[1]}}
		for try := range 3 {
			for i, scope := range scopes {
				c := want[scope]
				for range 1 + i {
					m.CountEmits(slices.Values([]eventqueue.Scope{scope, scope, scope}))
					m.CountCancelled(slices.Values([]eventqueue.Scope{scope, scope}))
					c.Emitted, c.Cancelled = c.Emitted+3, c.Cancelled+2
				}
				for end, of := range map[RunEnd]*int64{RunCompleted: &c.Completed, RunFailed: &c.Failed, RunRetried: &c.Retried} {
					for range 1 + int(end) + 4*i {
						waited, took := time.Duration(try+1)*time.Minute, time.Duration(end+1)*time.Millisecond
						m.CountRuns([]CountedRun{{Scope: scope, End: end, Waited: waited, Took: took}})
						c.Wait.Add(waited)
						c.Run.Add(took)
						*of++
					}
				}
			}
			if err := m.HandIn(t.Context()); err == nil {
				t.Error("the refusal is no error")
			}
		}
		table.accept()
		if err := m.HandIn(t.Context()); err != nil || len(table.handIns) != 1 {
			t.Fatalf("%v, %d hand-ins", err, len(table.handIns))
		}
		for _, got := range table.handIns[0] {
			if !reflect.DeepEqual(got, *want[got.Scope]) {
				t.Errorf("handed in are %+v, want %+v", got, *want[got.Scope])
			}
		}
		if len(table.handIns[0]) != len(want) {
			t.Errorf("%d scopes were handed in, want %d", len(table.handIns[0]), len(want))
		}
	})
}

// TestCountsAddUpWithoutHistograms adds up everything but the histograms, by which scopes are ordered.
func TestCountsAddUpWithoutHistograms(t *testing.T) {
	t.Parallel()
	c := Counts{Emitted: 1, Completed: 10, Failed: 100, Retried: 1000, Cancelled: 10_000}
	if got := c.Events(); got != 11_111 {
		t.Errorf("%d events, want 11,111", got)
	}
}
