package growth

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// hourly makes the series of an hour: a value every 15 seconds. x is the share of
// the hour that has passed, noise a normal deviate.
func hourly(seed uint64, value func(x, noise float64) float64) []point {
	random := rand.New(rand.NewPCG(seed, 7))
	const n = 240
	points := make([]point, n)
	for i := range points {
		x := float64(i) / n
		points[i] = point{time.Duration(x * float64(time.Hour)), value(x, random.NormFloat64())}
	}
	return points
}

// tested is a kind of measure with an allowance of 10, or a tenth.
var tested = kind{"tested", pieces, 10, 0.1}

// step is 0 before a time and 1 after it.
func step(x, at float64) float64 {
	if x < at {
		return 0
	}
	return 1
}

// phase is how far a saw-tooth of n teeth an hour has come within its tooth.
func phase(x, n float64) float64 { return x*n - math.Floor(x*n) }

func TestBoundedSeriesAreNotGrowth(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]func(x, noise float64) float64{
		"nothing at all":        func(_, _ float64) float64 { return 0 },
		"flat":                  func(_, _ float64) float64 { return 100 },
		"noise":                 func(_, noise float64) float64 { return 100 + 30*noise },
		"much noise":            func(_, noise float64) float64 { return 100 + 300*noise },
		"rare peaks":            func(_, noise float64) float64 { return 100 + 1000*step(noise, 2) },
		"saw-tooth of minutes":  func(x, noise float64) float64 { return 100 + 80*phase(x, 15) + 5*noise },
		"saw-tooth of 20 min":   func(x, noise float64) float64 { return 100 + 80*phase(x, 3) + 5*noise },
		"a step early":          func(x, noise float64) float64 { return 100 + 60*step(x, 0.3) + 5*noise },
		"a step in the middle":  func(x, noise float64) float64 { return 100 + 60*step(x, 0.5) + 5*noise },
		"a step in the third":   func(x, noise float64) float64 { return 100 + 60*step(x, 0.6) + 5*noise },
		"a step late":           func(x, noise float64) float64 { return 100 + 60*step(x, 0.8) + 5*noise },
		"warm-up":               func(x, noise float64) float64 { return 200 - 190*math.Exp(-x*20) + 5*noise },
		"warm-up of half":       func(x, noise float64) float64 { return 100 + 200*min(x, 0.24) + 3*noise },
		"a rise that is little": func(x, noise float64) float64 { return 100 + 15*x + noise },
		"a fall":                func(x, noise float64) float64 { return 300 - 200*x + 5*noise },
		"a hill":                func(x, noise float64) float64 { return 100 + 100*math.Sin(math.Pi*x) + 5*noise },
	} {
		for seed := range uint64(200) {
			if got := trendOf(hourly(seed, value), time.Hour, tested); got.grows || !got.decided {
				t.Errorf("%s, seed %d: %+v", name, seed, got)
			}
		}
	}
}

func TestRisingSeriesAreGrowth(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]func(x, noise float64) float64{
		"a slow leak":               func(x, _ float64) float64 { return 100 + 30*x },
		"a slow leak in noise":      func(x, noise float64) float64 { return 100 + 40*x + 8*noise },
		"a leak under a saw-tooth":  func(x, noise float64) float64 { return 100 + 120*x + 60*phase(x, 15) + 5*noise },
		"a leak with each fault":    func(x, noise float64) float64 { return 20 + math.Floor(60*x) + noise },
		"a leak with each fifth":    func(x, noise float64) float64 { return 20 + 5*math.Floor(12*x) + noise },
		"a leak after the warm-up":  func(x, noise float64) float64 { return 200 - 190*math.Exp(-x*20) + 100*x + 5*noise },
		"a leak that gets faster":   func(x, noise float64) float64 { return 100 + 150*x*x + 5*noise },
		"a leak that begins at 0":   func(x, _ float64) float64 { return 50 * x },
		"many steps":                func(x, noise float64) float64 { return 100 + 20*math.Floor(8*x) + 5*noise },
		"a leak from the beginning": func(x, noise float64) float64 { return 1000 + 1000*x + 50*noise },
	} {
		for seed := range uint64(200) {
			if got := trendOf(hourly(seed, value), time.Hour, tested); !got.grows {
				t.Errorf("%s, seed %d: %+v", name, seed, got)
			}
		}
	}
}

func TestFewValuesAreNotChecked(t *testing.T) {
	t.Parallel()
	leak := hourly(1, func(x, _ float64) float64 { return 1000 * x })
	for name, points := range map[string][]point{
		"none":                    nil,
		"too few":                 leak[:16],
		"a quarter is missing":    append(append([]point{}, leak[:60]...), leak[120:]...),
		"nothing after a quarter": leak[:60],
	} {
		if got := trendOf(points, time.Hour, tested); got.decided || got.grows {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// A gap, such as an outage makes, is no reason to give up.
	gap := append(append([]point{}, leak[:70]...), leak[80:]...)
	if got := trendOf(gap, time.Hour, tested); !got.grows {
		t.Errorf("with a gap: %+v", got)
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	if got := median([]float64{9, 1, 5}); got != 5 {
		t.Errorf("got %g, want 5", got)
	}
	if got := median([]float64{9, 1, 5, 7}); got != 6 {
		t.Errorf("got %g, want 6", got)
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("got %g, want NaN", got)
	}
}

func TestSampleEvery(t *testing.T) {
	t.Parallel()
	for load, want := range map[time.Duration]time.Duration{
		time.Minute: time.Second, time.Hour: 15 * time.Second, 7 * 24 * time.Hour: 5 * time.Minute,
	} {
		if got := sampleEvery(load); got != want {
			t.Errorf("%s: every %s, want %s", load, got, want)
		}
	}
}
