package check

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"eventsv2/test/attack/chaos/journal"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/testenv"
)

// rowOf is the number of the first odd row with a fate.
func rowOf(f Fate) int {
	return 1 + slices.IndexFunc(OddRows(), func(r OddRow) bool { return r.Fate == f })
}

func TestTheTableTakesWhatIsOddAndRefusesWhatIsBroken(t *testing.T) {
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
		"and somebody ran it":     {FateStays, func(s *script) { s.run(1, 2, "w1-1", journal.OK) }, other},
		"and somebody deleted it": {FateStays, func(s *script) { s.delete(1, "w1-1") }, lost},
		"and somebody put it off": {FateStays, func(s *script) { s.write(1, "c1-1", func(r *rowState) { r.dueMicros++ }) }, other},
		"it was refused":          {FateRefused, func(s *script) { s.refuse(); delete(s.stories, scriptedEvent) }, ""},
		"it was not refused":      {FateRefused, func(s *script) { s.refuse(); s.well() }, other},
		"it ran":                  {FateRuns, (*script).well, ""},
		"it was not taken":        {FateRuns, func(s *script) { delete(s.stories, scriptedEvent) }, lost},
		"it did not run":          {FateRuns, func(*script) {}, stuck},
		"it ran with its own claims": {FateRuns, func(s *script) {
			s.row.attempts, s.row.retries = 999_999_900, 8
			s.story.changes[0].new = s.row
			s.well()
		}, ""},
		"its claims began anew": {FateRuns, func(s *script) {
			s.row.attempts = 999_999_900
			s.story.changes[0].new = s.row
			s.row.attempts = 0
			s.well()
		}, stale},
		"it was locked by nobody": {FateRuns, func(s *script) {
			s.row.lockedMicros = at(-100).UnixMicro()
			s.story.changes[0].new = s.row
			s.well()
		}, ""},
		"it was locked by nobody for long enough": {FateRuns, func(s *script) {
			s.row.lockedMicros = at(0).UnixMicro()
			s.story.changes[0].new = s.row
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
