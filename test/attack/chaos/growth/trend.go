package growth

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// point is one value of a measure, with the time since the load began.
type point struct {
	at    time.Duration
	value float64
}

// The growth of a measure is decided in these steps; see doc.go.
const (
	quarters = 4
	// minInQuarter is how many values each quarter needs for a median.
	minInQuarter = 5
	// shareOfRise is how much of the whole rise each half of it has to be: what
	// has risen in one step only does not go on growing.
	shareOfRise = 0.25
	// windows are what the last three quarters are cut into for the trend, and
	// minTrend how many more pairs of windows rise than fall, as a share of all.
	windows  = 18
	minTrend = 0.5
)

// trend is what became of a measure over a run.
type trend struct {
	start, end float64
	medians    [quarters]float64
	tau        float64 // from -1, always falling, to 1, always rising
	decided    bool    // there were enough values
	grows      bool
}

// trendOf reports whether a measure goes on growing over a run of the given length.
// Points are in the order of their times.
func trendOf(points []point, length time.Duration, k kind) trend {
	var t trend
	if len(points) == 0 || length <= 0 {
		return t
	}
	t.start, t.end = points[0].value, points[len(points)-1].value
	parts := cut(points, 0, length, quarters)
	t.decided = true
	for i, part := range parts {
		t.medians[i] = median(part)
		t.decided = t.decided && len(part) >= minInQuarter
	}
	t.tau = tau(cut(points, length/quarters, length, windows))
	rise := t.medians[3] - t.medians[1]
	allowed := max(k.absolute, k.relative*t.medians[1])
	t.grows = t.decided && rise > allowed &&
		t.medians[2]-t.medians[1] >= shareOfRise*rise &&
		t.medians[3]-t.medians[2] >= shareOfRise*rise &&
		t.tau >= minTrend
	return t
}

// cut divides the values from one time to another into parts of equal length. A
// value at or after the end belongs to the last part.
func cut(points []point, from, to time.Duration, parts int) [][]float64 {
	all := make([][]float64, parts)
	for _, p := range points {
		if p.at < from {
			continue
		}
		i := int(float64(parts) * float64(p.at-from) / float64(to-from))
		i = min(i, parts-1)
		all[i] = append(all[i], p.value)
	}
	return all
}

// median is NaN when there are no values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// tau is Kendall's rank correlation of the medians of windows with time: the
// pairs that rise less those that fall, as a share of all pairs. Windows without
// values are left out.
func tau(parts [][]float64) float64 {
	var medians []float64
	for _, part := range parts {
		if len(part) > 0 {
			medians = append(medians, median(part))
		}
	}
	pairs, sum := 0, 0
	for i, earlier := range medians {
		for _, later := range medians[i+1:] {
			pairs++
			sum += cmp.Compare(later, earlier)
		}
	}
	if pairs == 0 {
		return 0
	}
	return float64(sum) / float64(pairs)
}
