package grid_test

import (
	"context"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/grid"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

// TestServiceRunsGridsAndSweeper: a grid that is registered with a service runs there, and what runs that
// cannot be retried have left behind is removed.
func TestServiceRunsGridsAndSweeper(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(`INSERT INTO grid_outputs (event_id, action, canvas_id, definition, attempt) VALUES (1000000, 'a', gen_random_uuid(), '', 1)`)
	s, err := service.Open(testenv.Context(t), service.Config{Pool: r.pool, Notifier: service.Memory, Logger: testenv.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	runner, err := grid.NewRunner(s.Pool(), grid.Config{Policy: eventqueue.Policy{Timeout: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	report := r.definition("a", "b a=a")
	if err := runner.Register(s, report); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(testenv.Context(t))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	event, err := report.NewInput(eventqueue.CanvasID{1}, "instance", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Emit(ctx, event); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the run has ended and no output is left", func() bool {
		return one[int](r, `SELECT count(*) FROM events_v2`) == 0 && one[int](r, `SELECT count(*) FROM grid_outputs`) == 0
	})
	r.wantCalls("a", "b")
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run returned %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close returned %v", err)
	}
}
