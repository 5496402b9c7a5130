package minutes

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
)

// TestRefusalOfCountsIsLoggedOnce, and again after a success.
func TestRefusalOfCountsIsLoggedOnce(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.WarnLevel)
	table := &minuteTable{}
	m := New(table, noJitter, zap.New(core))
	for outage := range 3 {
		table.refuse = errors.New("down")
		for range 3 {
			countOf(m, 1, 1)
			if err := m.HandIn(t.Context()); err == nil {
				t.Error("the refusal is no error")
			}
		}
		table.accept()
		if err := m.HandIn(t.Context()); err != nil {
			t.Error(err)
		}
		if n := logs.Len(); n != outage+1 {
			t.Errorf("%d warnings of %d outages", n, outage+1)
		}
	}
}

// aheadTable is a table of a database whose clock is ahead of this machine's, or behind.
type aheadTable struct {
	minuteTable
	by time.Duration
}

func (a *aheadTable) AddMinutes(ctx context.Context, counts []Counts) (time.Time, error) {
	now, err := a.minuteTable.AddMinutes(ctx, counts)
	return now.Add(a.by), err
}

// TestHandInsFollowTheDatabasesClock: each minute of its clock gets one hand-in, at the same second.
func TestHandInsFollowTheDatabasesClock(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{-17 * time.Second, 0, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			table := &aheadTable{by: by}
			m := New(table, noJitter, zap.NewNop())
			for range 100 {
				countOf(m, 1, 1)
				<-time.After(3 * time.Second)
			}
			if err := m.HandIn(t.Context()); err != nil {
				t.Error(err)
			}
			if len(table.at) < 5 {
				t.Fatalf("%d hand-ins in five minutes", len(table.at))
			}
			for _, at := range table.at[1 : len(table.at)-1] { // its clock is unknown before the first
				if theirs := at.Add(by); theirs.Sub(theirs.Truncate(time.Minute)) != handInMargin {
					t.Errorf("a clock %s ahead: handed in at its %s", by, theirs.Format(time.TimeOnly))
				}
			}
		})
	}
}

// TestHandInBeginsWithTheBusiestScopes, since a full minute takes the first ones.
func TestHandInBeginsWithTheBusiestScopes(t *testing.T) {
	t.Parallel()
	table := &minuteTable{}
	m := New(table, noJitter, zap.NewNop())
	for canvas, runs := range []int{2, 5, 1, 9} {
		countOf(m, byte(canvas), runs)
	}
	if err := m.HandIn(t.Context()); err != nil {
		t.Fatal(err)
	}
	var runs []int64
	for _, c := range table.handIns[0] {
		runs = append(runs, c.Completed)
	}
	if !slices.Equal(runs, []int64{9, 5, 2, 1}) {
		t.Errorf("scopes with %v runs are handed in, in this order", runs)
	}
}

// TestFurtherCanvasesAreCountedByHandler: beyond the bound of scopes, the canvas is no longer told apart, and the handler is.
func TestFurtherCanvasesAreCountedByHandler(t *testing.T) {
	t.Parallel()
	table := &minuteTable{}
	m := New(table, noJitter, zap.NewNop())
	emit := func(canvas int, name string) {
		m.CountEmits(slices.Values([]eventqueue.Scope{{Canvas: eventqueue.CanvasID{1, byte(canvas >> 8), byte(canvas)}, Module: "M", Name: name}}))
	}
	for n := range minuteScopes {
		emit(n, "own")
	}
	for n := range 10 {
		emit(minuteScopes+n, fmt.Sprint("further", n%2))
	}
	if err := m.HandIn(t.Context()); err != nil {
		t.Fatal(err)
	}
	further := map[string]int64{}
	for _, c := range table.handIns[0] {
		if c.Canvas == (eventqueue.CanvasID{}) {
			further[c.Name] += c.Emitted
		}
	}
	if len(further) != 2 || further["further0"] != 5 || further["further1"] != 5 {
		t.Errorf("of further canvases %v was counted, want 5 of each of two handlers", further)
	}
}

// TestQuantilesDifferWithinABucket: they lie between its bounds, in proportion to the rank.
func TestQuantilesDifferWithinABucket(t *testing.T) {
	t.Parallel()
	var h Histogram
	for range 100 {
		h.Add(100 * time.Millisecond) // between 90.5 and 128 ms
	}
	low, high := h.Quantile(0), h.Quantile(1)
	if middle := h.Quantile(0.5); low > 91*time.Millisecond || low < 90*time.Millisecond || high != 128*time.Millisecond || (middle-(low+high)/2).Abs() > time.Microsecond {
		t.Errorf("quantiles of a bucket are %s, %s and %s", low, middle, high)
	}
}

// TestBoundsAreInTheirOwnBuckets, to the nanosecond.
func TestBoundsAreInTheirOwnBuckets(t *testing.T) {
	t.Parallel()
	for bucket := 1; bucket < Buckets-1; bucket++ {
		bound := time.Duration(float64(time.Millisecond) * math.Pow(2, float64(bucket)/2))
		var h Histogram
		if h.Add(bound); len(h) != bucket+1 {
			t.Errorf("%s is in bucket %d, want %d", bound, len(h)-1, bucket)
		}
	}
}
