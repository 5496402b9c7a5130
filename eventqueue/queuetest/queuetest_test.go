package queuetest_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/queuetest"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

var (
	key   = eventqueue.HandlerKey{Module: "WORKER", Name: "remind", Modifier: "_"}
	event = eventqueue.NewEvent{Canvas: eventqueue.CanvasID{1}, Module: key.Module, Name: key.Name, Modifier: key.Modifier, Value: json.RawMessage(`"Ada"`)}
)

// This is the program of docs/testing.md.
func TestDelayOfAnHourTakesNoTime(t *testing.T) {
	t.Parallel()
	databaseURL := testenv.DatabaseURL(t)
	synctest.Test(t, func(t *testing.T) {
		store, notifier := pgstore.New(queuetest.Pool(t, databaseURL)), memnotify.New(memnotify.Config{})
		queue, err := eventqueue.New(store, notifier, eventqueue.QueueConfig{})
		if err != nil {
			t.Fatal(err)
		}
		ran := make(chan time.Time, 1)
		handlers := eventqueue.NewHandlers()
		err = handlers.Register(key, eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error {
			ran <- time.Now()
			return nil
		}), eventqueue.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := worker.New(queue, store, notifier, handlers, worker.Config{})
		if err != nil {
			t.Fatal(err)
		}
		relay, err := maintenance.NewRelay(store, notifier, maintenance.RelayConfig{})
		if err != nil {
			t.Fatal(err)
		}
		run(t, w.Run)
		run(t, relay.Run)

		emitted := time.Now()
		event := event
		event.DelayUntil = emitted.Add(time.Hour)
		if _, err := queue.Emit(t.Context(), event); err != nil {
			t.Fatal(err)
		}
		if after := (<-ran).Sub(emitted); after < time.Hour || after > time.Hour+time.Minute {
			t.Errorf("the event ran %s after it was emitted", after)
		}
		if err := queue.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestDatabaseClockFollowsTheBubble(t *testing.T) {
	t.Parallel()
	databaseURL := testenv.DatabaseURL(t)
	synctest.Test(t, func(t *testing.T) {
		pool := queuetest.Pool(t, databaseURL)
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.Background()) }()
		for range 2 { // the clock goes on within a transaction
			time.Sleep(time.Hour)
			var shown, stored time.Time
			err := tx.QueryRow(t.Context(), `INSERT INTO events_v2 (canvas_id, module, name, modifier, value) VALUES ($1, 'M', 'n', '_', '1')
				RETURNING clock_timestamp(), delay_until`, event.Canvas).Scan(&shown, &stored)
			if now := time.Now(); err != nil || !shown.Equal(now) || !stored.Equal(now) {
				t.Errorf("at %v the clock is %v and the default of a column %v (%v)", now, shown, stored, err)
			}
		}
	})
}

func TestListeningConnectionLetsTimeAdvance(t *testing.T) {
	t.Parallel()
	databaseURL := testenv.DatabaseURL(t)
	synctest.Test(t, func(t *testing.T) {
		pool := queuetest.Pool(t, databaseURL)
		listening, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer listening.Release()
		exec := func(on interface {
			Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
		}, sql string, arguments ...any) {
			if _, err := on.Exec(t.Context(), sql, arguments...); err != nil {
				t.Fatal(err)
			}
		}
		exec(listening, `LISTEN something`)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begun := time.Now()
		if _, err := listening.Conn().WaitForNotification(ctx); ctx.Err() == nil || time.Since(begun) != time.Hour {
			t.Fatalf("after %s: %v", time.Since(begun), err)
		}
		exec(pool, `NOTIFY something, 'before'`)
		time.AfterFunc(time.Minute, func() { exec(pool, `NOTIFY something, 'later'`) })
		for _, want := range []string{"before", "later"} {
			n, err := listening.Conn().WaitForNotification(t.Context())
			if err != nil || n.Payload != want {
				t.Fatalf("heard is %+v, %v; want %s", n, err, want)
			}
		}
		if at := time.Since(begun); at != time.Hour+time.Minute {
			t.Errorf("the last was heard after %s", at)
		}
		time.AfterFunc(time.Minute, func() { exec(pool, `SELECT pg_terminate_backend($1)`, listening.Conn().PgConn().PID()) })
		if _, err := listening.Conn().WaitForNotification(t.Context()); err == nil {
			t.Error("a connection that the server has ended still waits")
		}
	})
}

// run runs a part of the queue until the test ends.
func run(t *testing.T, part func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- part(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
