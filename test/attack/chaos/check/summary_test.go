package check

import (
	"strings"
	"testing"
)

func TestVerdictCountsByClass(t *testing.T) {
	t.Parallel()
	for want, found := range map[string][]class{
		" lost=0 stuck=0 early=0 stale_writes=0 unexplained_duplicates=0":         nil,
		" lost=2 stuck=1 early=1 stale_writes=1 unexplained_duplicates=1":         {lost, lost, stuck, early, stale, duplicates},
		" lost=0 stuck=0 early=0 stale_writes=0 unexplained_duplicates=0 other=1": {other},
	} {
		j := &Findings{}
		for _, c := range found {
			j.violations = append(j.violations, violation{class: c, what: "an event of class " + string(c)})
		}
		if got := j.Counts(); got != want || j.Good() != (len(found) == 0) {
			t.Errorf("good: %t, the verdict is\n%s, want\n%s", j.Good(), got, want)
		}
		for _, c := range found {
			if text := string(c) + ": an event of class " + string(c); !strings.Contains(j.Details(), text) {
				t.Errorf("no %q in:\n%s", text, j.Details())
			}
		}
	}
}
