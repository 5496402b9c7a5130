package main

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"

	"eventsv2/eventqueue"
	"eventsv2/test/attack/chaos/journal"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/testenv"
)

// numberOf is the number of the first odd row with a fate.
func numberOf(f fate) int {
	return 1 + slices.IndexFunc(oddRows(), func(r oddRow) bool { return r.fate == f })
}

func TestTheTableTakesWhatIsOddAndRefusesWhatIsBroken(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	for i, row := range oddRows() {
		job := task.Task{Tag: "1-1", Do: task.Succeed, Odd: i + 1}
		_, err := pool.Exec(t.Context(), row.insertSQL(), uuid.New(), task.Module, "quick", string(job.Value()), row.column != "value")
		if (err != nil) != (row.fate == fateRefused) {
			t.Errorf("%s: %v", row, err)
		}
	}
}

// What the table refuses must not be there, and what it has to take must: whatever it answers, the
// checker holds it to that.
func TestAnOddRowIsAcknowledgedByItsFate(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	e := &emitters{pool: pool, acknowledgements: map[string]acknowledgement{}, forms: map[string]int{}}
	emit := func(number int) error {
		job := task.Task{Tag: "1-1", Do: task.Succeed, Odd: number}
		return insertOdd(t.Context(), e, []eventqueue.NewEvent{{Canvas: eventqueue.CanvasID(uuid.New()), Module: task.Module, Name: "quick", Value: job.Value()}})
	}
	for _, constraints := range []bool{true, false} {
		if !constraints { // a table that takes everything
			if _, err := pool.Exec(t.Context(), `ALTER TABLE events_v2 DROP CONSTRAINT events_v2_readable`); err != nil {
				t.Fatal(err)
			}
		}
		if err := emit(numberOf(fateRefused)); err != errUndo { //nolint:errorlint // the very error
			t.Errorf("with its constraints: %t: a row that is to be refused: %v", constraints, err)
		}
	}
	if _, err := pool.Exec(t.Context(), `ALTER TABLE events_v2 ADD CONSTRAINT too_strict CHECK (delay_until > '2000-01-01')`); err != nil {
		t.Fatal(err)
	}
	if err := emit(numberOf(fateRuns)); err != nil {
		t.Errorf("a row that is to be taken, and that the table refuses: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := insertOdd(gone, e, []eventqueue.NewEvent{{Value: task.Task{Tag: "1-1", Odd: 1}.Value()}}); err == nil {
		t.Error("a call that failed has an outcome")
	}
}

func TestOddRowsAreChecked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fate fate
		play func(s *script)
		want class // "": nothing
	}{
		"nobody can run it":       {fateStays, func(*script) {}, ""},
		"and somebody claimed it": {fateStays, func(s *script) { s.claim(1, "w1-1") }, other},
		"and somebody ran it":     {fateStays, func(s *script) { s.run(1, 2, "w1-1", journal.OK) }, other},
		"and somebody deleted it": {fateStays, func(s *script) { s.delete(1, "w1-1") }, lost},
		"and somebody put it off": {fateStays, func(s *script) { s.write(1, "c1-1", func(r *rowState) { r.dueMicros++ }) }, other},
		"it was refused":          {fateRefused, func(s *script) { s.refuse(); delete(s.stories, scriptedEvent) }, ""},
		"it was not refused":      {fateRefused, func(s *script) { s.refuse(); s.well() }, other},
		"it ran":                  {fateRuns, (*script).well, ""},
		"it was not taken":        {fateRuns, func(s *script) { delete(s.stories, scriptedEvent) }, lost},
		"it did not run":          {fateRuns, func(*script) {}, stuck},
		"it ran with its own claims": {fateRuns, func(s *script) {
			s.row.attempts, s.row.retries = 999_999_900, 8
			s.story.changes[0].new = s.row
			s.well()
		}, ""},
		"its claims began anew": {fateRuns, func(s *script) {
			s.row.attempts = 999_999_900
			s.story.changes[0].new = s.row
			s.row.attempts = 0
			s.well()
		}, stale},
		"it was locked by nobody": {fateRuns, func(s *script) {
			s.row.lockedMicros = at(-100).UnixMicro()
			s.story.changes[0].new = s.row
			s.well()
		}, ""},
		"it was locked by nobody for long enough": {fateRuns, func(s *script) {
			s.row.lockedMicros = at(0).UnixMicro()
			s.story.changes[0].new = s.row
			s.well()
		}, stale},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(task.Task{Do: task.Succeed, Odd: numberOf(test.fate)})
			test.play(s)
			j := check(s.evidence)
			if test.want == "" && len(j.violations) > 0 || test.want != "" && j.count(test.want) == 0 {
				t.Errorf("violations: %+v, want of class %q", j.violations, test.want)
			}
		})
	}
}

// refuse has the table refuse the row.
func (s *script) refuse() { s.acknowledgements["1-1"] = undone }
