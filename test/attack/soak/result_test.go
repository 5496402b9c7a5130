package main

import (
	"strings"
	"testing"
	"time"

	"eventsv2/test/attack/harness"
)

func soaked() *result {
	return &result{opts: options{harness.Options{Length: 1, Rate: 100}, time.Minute}, loaded: time.Hour, where: "here",
		faults: map[string]int{"kill -9 of Postgres": 60}, total: 60, account: account{accepted: 360_000},
		figures: []figure{
			{measure{goroutines, longLivedLibrary}, trend{decided: true, grows: false}},
			{measure{memory, longLivedWorker}, trend{decided: true, grows: false}},
		}}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(*result)
		good   bool
		line   string
	}{
		{func(*result) {}, true, "soak: hours=1 events=360000 faults=60 lost=0 stuck=0 growth=none"},
		{func(r *result) { r.figures[0].trend.grows = true }, false, "soak: hours=1 events=360000 faults=60 lost=0 stuck=0 growth=goroutines(library)"},
		{func(r *result) { r.figures[0].trend.grows, r.figures[1].trend.grows = true, true }, false,
			"soak: hours=1 events=360000 faults=60 lost=0 stuck=0 growth=goroutines(library),memory(worker-1)"},
		{func(r *result) { r.account.losses = 2 }, false, "soak: hours=1 events=360000 faults=60 lost=2 stuck=0 growth=none"},
		{func(r *result) { r.stuck = 3 }, false, "soak: hours=1 events=360000 faults=60 lost=0 stuck=3 growth=none"},
		{func(r *result) { r.failed = 4 }, false, "soak: hours=1 events=360000 faults=60 lost=0 stuck=0 failed=4 growth=none"},
		{func(r *result) { r.loaded, r.figures[0].trend.grows = 3*time.Minute, true }, true,
			"soak: hours=0.05 events=360000 faults=60 lost=0 stuck=0 growth=undecided"},
	} {
		r := soaked()
		c.change(r)
		if r.Good() != c.good || r.Line() != c.line {
			t.Errorf("good: %v; got\n%s, want\n%s", r.Good(), r.Line(), c.line)
		}
	}
}

func TestTheReportHasEverything(t *testing.T) {
	t.Parallel()
	r := soaked()
	r.figures[0].trend = trend{start: 20, medians: [quarters]float64{30, 40, 50, 60}, tau: 1, end: 61, decided: true, grows: true}
	r.figures[1].trend.medians[3] = 3 * mebibyte
	page := r.Page()
	for _, want := range []string{r.Line(), "cd test/attack && go run ./soak -hours 1 -rate 100 -every 1m0s", "| kill -9 of Postgres | 60 |",
		"| events accepted | 360000 |", "| goroutines(library) | 20 | 30 | 40 | 50 | 60 | 61 | +1.00 | GROWS |", "3.00 MiB"} {
		if !strings.Contains(page, want) {
			t.Errorf("the report lacks %q:\n%s", want, page)
		}
	}
	if text := r.Details(); !strings.Contains(text, "GROWS") || !strings.Contains(text, "memory(worker-1)") {
		t.Errorf("the table is\n%s", text)
	}
}
