package eventqueue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/rig"
)

// inserting has pages, and the next ids for what is inserted.
type inserting struct {
	*rig.Pages
	last eventqueue.EventID
}

func (i *inserting) Insert(_ context.Context, _ eventqueue.DB, events []eventqueue.NewEvent, mode eventqueue.NotifyMode) ([]eventqueue.Inserted, error) {
	rows := make([]eventqueue.Inserted, len(events))
	for n := range rows {
		i.last++
		rows[n] = eventqueue.Inserted{ID: i.last, MustNotify: mode == eventqueue.NotifyModeSelf}
		if mode != eventqueue.NotifyModeSelf {
			i.Pending[i.last] = true
		}
	}
	return rows, nil
}

// TestRecoveredNotifierIsNoticed (I2) by the emits that it made nobody wait for.
func TestRecoveredNotifierIsNoticed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &inserting{Pages: rig.NewPages(0, 0)}
		q, err := eventqueue.New(store, store, eventqueue.QueueConfig{PublishRest: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		emit := func() eventqueue.EventID {
			id, err := q.Emit(t.Context(), rig.Event(`1`))
			if err != nil {
				t.Error(err)
			}
			rig.Pass(time.Minute)
			return id
		}
		store.Failing = true
		if id := emit(); !store.Pending[id] {
			t.Error("a notification that was not published is not pending")
		}
		store.Failing = false
		emit() // pending as well, and tried
		if id := emit(); store.Published[id] != 1 || store.Pending[id] {
			t.Errorf("published %d times after the notifier came back, pending: %v; want once, and never pending", store.Published[id], store.Pending[id])
		}
	})
}

// TestHangingNotifierDelaysNoEmit (I12), not beyond the time for one request.
func TestHangingNotifierDelaysNoEmit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, let := &inserting{Pages: rig.NewPages(0, 0)}, make(chan struct{})
		store.Sending = func() { <-let }
		q, err := eventqueue.New(store, store, eventqueue.QueueConfig{PublishTimeout: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		emitted := make(chan error, 1)
		go func() {
			_, err := q.Emit(t.Context(), rig.Event(`1`))
			emitted <- err
		}()
		rig.Pass(time.Minute)
		if len(emitted) == 0 {
			t.Error("the emit waits for the notifier")
		}
		close(let)
		if err := <-emitted; err != nil {
			t.Error(err)
		}
	})
}
