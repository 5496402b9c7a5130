package check

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/attack/record"
	"eventsv2/test/oracle"
	"eventsv2/test/testenv"
)

// rowOf is the number of the first odd row with a fate.
func rowOf(f Fate) int {
	return 1 + slices.IndexFunc(OddRows(), func(r OddRow) bool { return r.Fate == f })
}

func TestTableTakesForeignRowsAndRefusesBrokenOnes(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	for i, row := range OddRows() {
		job := task.Task{Tag: "1-1", Do: task.Succeed, Odd: i + 1}
		_, err := pool.Exec(t.Context(), row.InsertSQL(), uuid.New(), task.Module, "quick", string(job.Value()), row.Column != "value")
		if (err != nil) != (row.Fate == FateRefused) {
			t.Errorf("%s: %v", row, err)
		}
	}
}

func TestOddRowsAreChecked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fate Fate
		play func(s *script)
		want class // "": nothing
	}{
		"nobody can run it":       {FateStays, func(*script) {}, ""},
		"and somebody claimed it": {FateStays, func(s *script) { s.claim(1, "w1-1") }, other},
		"and somebody ran it":     {FateStays, func(s *script) { s.run(1, 2, "w1-1", oracle.OK) }, other},
		"and somebody deleted it": {FateStays, func(s *script) { s.delete(1, "w1-1") }, lost},
		"and somebody put it off": {FateStays, func(s *script) { s.write(1, "c1-1", func(r *record.RowState) { r.DueMicros++ }) }, other},
		"it was refused":          {FateRefused, func(s *script) { s.refuse(); delete(s.traces, scriptedEvent) }, ""},
		"it was not refused":      {FateRefused, func(s *script) { s.refuse(); s.well() }, other},
		"it ran":                  {FateRuns, (*script).well, ""},
		"it was not taken":        {FateRuns, func(s *script) { delete(s.traces, scriptedEvent) }, lost},
		"it did not run":          {FateRuns, func(*script) {}, stuck},
		"it ran with its own claims": {FateRuns, func(s *script) {
			s.row.Attempts, s.row.Retries = 999_999_900, 8
			s.trace.Changes[0].New = s.row
			s.well()
		}, ""},
		"its claims began anew": {FateRuns, func(s *script) {
			s.row.Attempts = 999_999_900
			s.trace.Changes[0].New = s.row
			s.row.Attempts = 0
			s.well()
		}, stale},
		"it was locked by nobody": {FateRuns, func(s *script) {
			s.row.LockedMicros = at(-100).UnixMicro()
			s.trace.Changes[0].New = s.row
			s.well()
		}, ""},
		"it was locked by nobody for long enough": {FateRuns, func(s *script) {
			s.row.LockedMicros = at(0).UnixMicro()
			s.trace.Changes[0].New = s.row
			s.well()
		}, stale},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(task.Task{Do: task.Succeed, Odd: rowOf(test.fate)})
			test.play(s)
			j := Check(s.Evidence)
			if test.want == "" && len(j.violations) > 0 || test.want != "" && j.count(test.want) == 0 {
				t.Errorf("violations: %+v, want of class %q", j.violations, test.want)
			}
		})
	}
}

// refuse has the table refuse the row.
func (s *script) refuse() { s.Acknowledgements["1-1"] = Undone }
