package growth

import (
	"strings"
	"testing"
	"time"
)

func TestVerdictNamesTheGrowingSeries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		load            time.Duration
		first, second   bool
		verdict, inPage string
	}{
		{time.Hour, false, false, "none", "| no growth |"},
		{time.Hour, true, false, "goroutines(w1)", "| goroutines(w1) | 20 | 30 | 40 | 50 | 60 | 61 | +1.00 | GROWS |"},
		{time.Hour, true, true, "goroutines(w1),memory(w4)", "| 3.00 MiB | "},
		{3 * time.Minute, true, false, "undecided", "| undecided |"},
	} {
		r := &Report{load: c.load, figures: []figure{
			{measure{goroutines, "w1"}, trend{start: 20, medians: [quarters]float64{30, 40, 50, 60}, tau: 1, end: 61, decided: true, grows: c.first}},
			{measure{memory, "w4"}, trend{medians: [quarters]float64{3: 3 * mebibyte}, decided: true, grows: c.second}},
		}}
		if got := r.Verdict(); got != c.verdict || !strings.Contains(r.Table(), c.inPage) {
			t.Errorf("the verdict is %q, want %q; the table\n%s", got, c.verdict, r.Table())
		}
		if grows := len(r.Growing()) > 0; grows != (c.verdict != "none" && c.verdict != "undecided") {
			t.Errorf("%s: grows: %t", c.verdict, grows)
		}
	}
}
