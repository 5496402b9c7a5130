package minutes

import (
	"math"
	"time"
)

// Histogram counts durations in buckets whose bounds are the same everywhere and at all times, so
// that sums of histograms are exact. Bucket 0 has what takes a millisecond at most, and the upper
// bound of each further one is √2 times that of the one before; the last bucket has all that
// is longer than 25 days. The empty buckets at the end are left out. The zero value is empty.
type Histogram []int64

// Buckets is the length of the longest Histogram.
const Buckets = 64

// Add counts a duration; a negative one counts as 0.
func (h *Histogram) Add(d time.Duration) {
	bucket := 0
	if ms := float64(d) / float64(time.Millisecond); ms > 1 {
		// The tolerance has each bound in its own bucket.
		bucket = min(int(math.Ceil(2*math.Log2(ms)-1e-9)), Buckets-1)
	}
	h.extend(bucket + 1)
	(*h)[bucket]++
}

// Merge adds the counts of another histogram.
func (h *Histogram) Merge(other Histogram) {
	h.extend(len(other))
	for i, n := range other {
		(*h)[i] += n
	}
}

func (h *Histogram) extend(buckets int) {
	for len(*h) < buckets {
		*h = append(*h, 0)
	}
}

// Trimmed returns the histogram without empty buckets at the end.
func (h Histogram) Trimmed() Histogram {
	for len(h) > 0 && h[len(h)-1] == 0 {
		h = h[:len(h)-1]
	}
	return h
}

// Count is how many durations were counted.
func (h Histogram) Count() (total int64) {
	for _, n := range h {
		total += n
	}
	return total
}

// Quantile estimates the duration that the fraction q of all durations does not exceed, such as 0.99
// for p99. It is in the same bucket as the exact one, so neither is more than √2 times the other
// above a millisecond. Of an empty histogram it is 0.
func (h Histogram) Quantile(q float64) time.Duration {
	rank := q * float64(h.Count())
	below := 0.0
	for i, n := range h {
		if n == 0 || below+float64(n) < rank {
			below += float64(n)
			continue
		}
		low, high := 0.0, bucketBound(i)
		if i > 0 {
			low = bucketBound(i - 1)
		}
		return time.Duration(low + (high-low)*(max(rank-below, 0)/float64(n)))
	}
	return 0
}

// bucketBound is the upper bound of a bucket in nanoseconds.
func bucketBound(bucket int) float64 {
	return float64(time.Millisecond) * math.Pow(2, float64(bucket)/2)
}
