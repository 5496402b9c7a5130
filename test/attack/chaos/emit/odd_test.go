package emit

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"

	"eventsv2/eventqueue"
	"eventsv2/test/attack/chaos/check"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/testenv"
)

// What the table refuses must not be there, and what it has to take must: whatever it answers, the
// checker holds it to that.
func TestForeignRowIsAcknowledgedByItsFate(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	e := &Emitters{pool: pool, acknowledgements: map[string]check.Acknowledgement{}, forms: map[string]int{}}
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
		if err := emit(numberOf(check.FateRefused)); err != errUndo { //nolint:errorlint // the very error
			t.Errorf("with its constraints: %t: a row that is to be refused: %v", constraints, err)
		}
	}
	if _, err := pool.Exec(t.Context(), `ALTER TABLE events_v2 ADD CONSTRAINT too_strict CHECK (delay_until > '2000-01-01')`); err != nil {
		t.Fatal(err)
	}
	if err := emit(numberOf(check.FateRuns)); err != nil {
		t.Errorf("a row that is to be taken, and that the table refuses: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := insertOdd(gone, e, []eventqueue.NewEvent{{Value: task.Task{Tag: "1-1", Odd: 1}.Value()}}); err == nil {
		t.Error("a call that failed has an outcome")
	}
}

// numberOf is the number of the first row of a fate.
func numberOf(f check.Fate) int {
	return 1 + slices.IndexFunc(check.OddRows(), func(r check.OddRow) bool { return r.Fate == f })
}
