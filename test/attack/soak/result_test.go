package main

import (
	"strings"
	"testing"
	"time"
)

func soaked() *result {
	return &result{opts: options{hours: 1, rate: 100, every: time.Minute}, loaded: time.Hour, postgres: "15",
		faults: map[string]int{"kill -9 of Postgres": 60}, total: 60, account: account{accepted: 360_000},
		figures: []figure{
			{measure{goroutines, longLivedLibrary}, trend{judged: true, grows: false}},
			{measure{memory, longLivedWorker}, trend{judged: true, grows: false}},
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
			"soak: hours=0.05 events=360000 faults=60 lost=0 stuck=0 growth=unjudged"},
	} {
		r := soaked()
		c.change(r)
		if r.good() != c.good || r.line() != c.line {
			t.Errorf("good: %v; got\n%s, want\n%s", r.good(), r.line(), c.line)
		}
	}
}

func TestTheReportHasEverything(t *testing.T) {
	t.Parallel()
	r := soaked()
	r.figures[0].trend = trend{start: 20, medians: [quarters]float64{30, 40, 50, 60}, tau: 1, end: 61, judged: true, grows: true}
	r.figures[1].trend.medians[3] = 3 * mebibyte
	page := r.markdown()
	for _, want := range []string{r.line(), "cd test/attack && go run ./soak -hours 1 -rate 100 -every 1m0s", "| kill -9 of Postgres | 60 |",
		"| events accepted | 360000 |", "| goroutines(library) | 20 | 30 | 40 | 50 | 60 | 61 | +1.00 | GROWS |", "3.00 MiB"} {
		if !strings.Contains(page, want) {
			t.Errorf("the report lacks %q:\n%s", want, page)
		}
	}
	if text := r.details(); !strings.Contains(text, "GROWS") || !strings.Contains(text, "memory(worker-1)") {
		t.Errorf("the table is\n%s", text)
	}
}
