package grid_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/grid"
	"eventsv2/test/testenv"
)

func (r *rig) sweep() int {
	r.Helper()
	sweeper, err := grid.NewSweeper(r.pool, grid.SweeperConfig{Logger: testenv.Logger(r)})
	if err != nil {
		r.Fatal(err)
	}
	n, err := sweeper.Pass(testenv.Context(r))
	if err != nil {
		r.Fatal(err)
	}
	return n
}

// A run that failed for good keeps its outputs for as long as it can be retried;
// retried, it goes on where it stopped.
func TestFailedRunCanBeRetried(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.on("bad", func(context.Context, call) (string, error) { return "", eventqueue.Permanent(errors.New("no use")) })
	r.start(r.definition("a", "bad a=a"), grid.Config{}, worker.Config{})
	first, second := r.emit(1), r.emit(2)
	r.await(machine.FailedForGood)
	r.await(machine.FailedForGood)
	if n := r.sweep(); n != 0 {
		t.Errorf("%d outputs of runs that can be retried were removed", n)
	}
	r.exec(`DELETE FROM event_log WHERE id = $1`, int64(first))
	if n := r.sweep(); n != 1 {
		t.Errorf("%d outputs were removed, want that of the run that is gone", n)
	}
	r.on("bad", nil)
	if _, err := r.store.Retry(testenv.Context(t), operate.Edit{}, []eventqueue.EventID{second}); err != nil {
		t.Fatal(err)
	}
	if n := r.sweep(); n != 0 {
		t.Errorf("%d outputs of a run that is retried were removed", n)
	}
	r.publishAgain()
	r.await(machine.ExecutesToCompletion)
	r.wantCalls("a", "a", "bad", "bad", "bad")
	r.completed()
}

// More runs than a statement looks at, some of which stay.
func TestSweeperReadsAllPages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(`INSERT INTO grid_outputs (event_id, action, canvas_id, definition, attempt)
		SELECT run, action, gen_random_uuid(), '', 1 FROM generate_series(1, 1200) AS run, unnest('{a,b}'::text[]) AS action`)
	r.exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at)
		SELECT id, gen_random_uuid(), 'GRID', 'g', '_', '1', CASE WHEN id % 2 = 0 THEN 'FAILED' ELSE 'COMPLETED' END::event_log_status, 0, 1, now()
		FROM generate_series(1, 100) AS id`)
	if n := r.sweep(); n != 2*1150 {
		t.Errorf("%d outputs were removed, want %d", n, 2*1150)
	}
	if n := one[int](r, `SELECT count(*) FROM grid_outputs`); n != 2*50 {
		t.Errorf("%d outputs are left, want %d", n, 2*50)
	}
}

// The loop goes on after a pass that failed, and ends with its context.
func TestSweeperContinuesAfterAFailedPass(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(`ALTER TABLE grid_outputs RENAME TO elsewhere`)
	sweeper, err := grid.NewSweeper(r.pool, grid.SweeperConfig{Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sweeper.Pass(testenv.Context(t)); err == nil || !strings.HasPrefix(err.Error(), "remove old outputs of grids: ") {
		t.Errorf("a pass without its table: %v", err)
	}
	ctx, stop := context.WithCancel(testenv.Context(t))
	ended := make(chan error)
	go func() { ended <- sweeper.Run(ctx) }()
	r.exec(`INSERT INTO elsewhere (event_id, action, canvas_id, definition, attempt) VALUES (1, 'a', gen_random_uuid(), '', 1)`)
	r.exec(`ALTER TABLE elsewhere RENAME TO grid_outputs`)
	testenv.Eventually(t, "it is removed", func() bool { return one[int](r, `SELECT count(*) FROM grid_outputs`) == 0 })
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run returned %v", err)
	}
}

func TestNewSweeperRefusesInvalidConfig(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if _, err := grid.NewSweeper(nil, grid.SweeperConfig{}); err == nil {
		t.Error("a sweeper without a database was made")
	}
	if _, err := grid.NewSweeper(r.pool, grid.SweeperConfig{Interval: -1}); err == nil {
		t.Error("an interval below 0 was accepted")
	}
}
