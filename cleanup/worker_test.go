package cleanup

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

var reportConfig = Config{Key: "todo", Inputs: []string{"to"}}

// report is a handler whose runs fail at three places before one is through.
func (r *rig) report(ctx context.Context, run *eventqueue.Run) error {
	var value struct{ To, Text string }
	if err := json.Unmarshal(run.Value, &value); err != nil {
		return eventqueue.Permanent(err)
	}
	key, err := NewKey(run.Canvas, "slack", reportConfig, map[string]any{"to": value.To, "text": value.Text})
	if err != nil {
		return eventqueue.Permanent(err)
	}
	pub := r.publication(key, value.Text)
	send := pub.Send
	pub.Send = func(ctx context.Context, intent Intent) ([]byte, error) {
		switch run.Retries {
		case 0:
			return nil, errors.New("the service is away")
		case 1:
			_, _ = send(ctx, intent)
			panic("after it was sent")
		}
		return send(ctx, intent)
	}
	if _, err := NewPublications(r.pool).Publish(ctx, run, pub); err != nil {
		return err
	}
	if run.Retries == 2 {
		return errors.New("after it was remembered")
	}
	return nil
}

// work runs a worker with the handler until the test ends.
func (r *rig) work() *eventqueue.Queue {
	r.Helper()
	notifier := memnotify.New(memnotify.Config{})
	queue, err := eventqueue.New(pgstore.New(r.pool), notifier, eventqueue.QueueConfig{})
	if err != nil {
		r.Fatal(err)
	}
	retries := 3
	handlers := eventqueue.NewHandlers()
	name := eventqueue.HandlerKey{Module: "WORKER", Name: "report", Modifier: "_"}
	if err := handlers.Register(name, eventqueue.HandlerFunc(r.report), eventqueue.Policy{
		MaxRetries: &retries, Backoff: func(int) time.Duration { return time.Millisecond },
	}); err != nil {
		r.Fatal(err)
	}
	w, err := worker.New(queue, pgstore.New(r.pool), notifier, handlers, worker.Config{})
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			r.Error(err)
		}
	})
	r.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return queue
}

// TestWorkerReportsPublications: a worker runs reports for two people on two canvases. Each
// run fails or panics at another place before it is through; in the end each person has
// the last report, and no other.
func TestWorkerReportsPublications(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	queue := r.work()
	second := eventqueue.CanvasID{0xca, 15: 2}
	for _, text := range []string{"monday", "tuesday", "wednesday"} {
		for _, to := range []string{"anna", "ben"} {
			for _, c := range []eventqueue.CanvasID{canvas, second} {
				value, _ := json.Marshal(map[string]string{"To": to, "Text": text + " for " + to})
				if _, err := queue.Emit(r.ctx, eventqueue.NewEvent{Canvas: c, Module: "WORKER", Name: "report", Modifier: "_", Value: value}); err != nil {
					t.Fatal(err)
				}
			}
		}
		testenv.Eventually(t, "the reports of "+text+" have ended", func() bool {
			var n int
			return r.pool.QueryRow(r.ctx, `SELECT count(*) FROM events_v2`).Scan(&n) == nil && n == 0
		})
	}
	for _, to := range []string{"anna", "ben"} {
		key := keyOf(t, reportConfig, map[string]any{"to": to})
		r.wantTexts(key, "wednesday for "+to)
		r.wantRows(key)
		key.Canvas = second
		r.wantTexts(key, "wednesday for "+to)
		r.wantRows(key)
	}
	if r.service.sent != 12 {
		t.Errorf("12 reports were sent %d times", r.service.sent)
	}
}
