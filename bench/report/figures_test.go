package report

import (
	"math"
	"testing"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		values []float64
		want   float64
		ok     bool
	}{
		{"none", nil, 0, false},
		{"one", []float64{7}, 7, true},
		{"odd", []float64{9, 1, 5}, 5, true},
		{"even", []float64{4, 1, 3, 100}, 3.5, true},
		{"an outlier does not count", []float64{10, 11, 1e9}, 11, true},
		{"negative", []float64{-3, -1, -2}, -2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := NewFigures()
			for _, v := range c.values {
				f.Add("a", "ms", v)
			}
			if got, ok := f.median("a"); got != c.want || ok != c.ok {
				t.Errorf("the median of %v is %v, %v; want %v, %v", c.values, got, ok, c.want, c.ok)
			}
			for i, v := range c.values {
				if f.values["a"][i] != v {
					t.Fatalf("the rounds are no longer in their order: %v", f.values["a"])
				}
			}
		})
	}
}

func TestResultsAreMediansOfTheRatiosOfOneRound(t *testing.T) {
	t.Parallel()
	f := NewFigures()
	// The machine was three times as slow in the second round. The ratio of the
	// medians would be 1.
	for _, round := range []struct{ ours, theirs float64 }{{200, 100}, {100, 50}, {50, 100}} {
		f.Add("ours", "events/s", round.ours)
		f.Add("theirs", "events/s", round.theirs)
	}
	f.Add("once", "MB", 80)
	measures := []Measure{
		{Name: "ratio", Of: "ours", By: "theirs", Goal: AtLeast(2)},
		{Name: "first round only", Of: "once", By: "theirs", Goal: AtMost(1)},
		{Name: "alone", Of: "ours", Goal: AtLeast(1000)},
		{Name: "not measured", Of: "nothing", Goal: AtLeast(1)},
		{Name: "no peer", Of: "ours", By: "nothing", Goal: AtLeast(1)},
	}
	results := f.Results(measures)
	want := []struct {
		name  string
		value float64
		ok    bool
	}{{"ratio", 2, true}, {"first round only", 0.8, true}, {"alone", 100, false}}
	if len(results) != len(want) {
		t.Fatalf("%d results %v, want %d", len(results), results, len(want))
	}
	for i, w := range want {
		if r := results[i]; r.Name != w.name || r.Value != w.value || r.OK() != w.ok {
			t.Errorf("result %d is %s, want %+v", i, r, w)
		}
	}
}

func TestGoal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		goal  Goal
		value float64
		ok    bool
		score float64
	}{
		{AtLeast(5), 5, true, 1},
		{AtLeast(5), 10, true, 2},
		{AtLeast(5), 4.5, false, 0.9},
		{AtLeast(5), 0, false, 0},
		{AtLeast(5), -5, false, 0},
		{AtMost(0.6), 0.6, true, 1},
		{AtMost(0.6), 0.3, true, 2},
		{AtMost(0.6), 1.2, false, 0.5},
		{AtMost(3), 0, true, math.Inf(1)},
		{AtMost(3), -0.2, true, math.Inf(1)},
		{AtMost(0), 0, true, 1},
		{AtMost(0), 12, false, 0},
		{AtLeast(5), math.NaN(), false, 0},
		{AtMost(5), math.NaN(), false, 0},
	} {
		r := Result{Measure{Goal: c.goal}, c.value}
		if got := r.OK(); got != c.ok {
			t.Errorf("%v against %s is ok: %v, want %v", c.value, c.goal, got, c.ok)
		}
		if got := c.goal.score(c.value); got != c.score {
			t.Errorf("%v against %s scores %v, want %v", c.value, c.goal, got, c.score)
		}
	}
}

func TestResultIsOneLine(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]Result{
		"ratio drain                        5.23 goal >=5     ok":    {Measure{Name: "drain", Goal: AtLeast(5)}, 5.23},
		"ratio a-name-of-22-letters-.     123457 goal <=0.25  short": {Measure{Name: "a-name-of-22-letters-.", Goal: AtMost(0.25)}, 123456.7},
		"ratio idle                            0 goal <=0     ok":    {Measure{Name: "idle", Goal: AtMost(0)}, 0},
	} {
		if got := r.String(); got != want {
			t.Errorf("the line is\n%s\nwant\n%s", got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value           float64
		number, grouped string
	}{
		{0, "0", "0"},
		{0.01234, "0.0123", "0.0123"},
		{0.1, "0.10", "0.10"},
		{5.234, "5.23", "5.23"},
		{12.34, "12.3", "12.3"},
		{123.4, "123", "123"},
		{1234.5, "1234", "1,234"},
		{1234567, "1234567", "1,234,567"},
		{-1.5, "-1.50", "-1.50"},
		{-123, "-123", "-123"},
		{-1234, "-1234", "-1,234"},
	} {
		if got := Number(c.value); got != c.number {
			t.Errorf("Number(%v) = %s, want %s", c.value, got, c.number)
		}
		if got := grouped(c.number); got != c.grouped {
			t.Errorf("grouped(%s) = %s, want %s", c.number, got, c.grouped)
		}
	}
}

func TestNote(t *testing.T) {
	t.Parallel()
	f := NewFigures()
	if got := f.otherLoad()[0].Value; got != unknown {
		t.Errorf("without a note the other load is %q, want %q", got, unknown)
	}
	f.Note(0, 0) // not measured
	f.Note(1.8, 0.5)
	f.Note(1.9, 0)
	f.Note(1.7, 0.125)
	if got, want := f.otherLoad()[0].Value, "0.12 cores in the median run, 0.50 at most"; got != want {
		t.Errorf("the other load is %q, want %q", got, want)
	}
}
