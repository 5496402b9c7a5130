package eventqueue_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// TestEmittedEventsAreCounted: new events are, once they are committed. Those of a refused emit, of a rolled-back
// unit of work, and those that the queue has already are not.
func TestEmittedEventsAreCounted(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	pool := testenv.Pool(t)
	store := rig.Faulty(pgstore.New(pool), rig.Faults{})
	queue, err := eventqueue.New(store, memnotify.New(memnotify.Config{}), eventqueue.QueueConfig{
		Canvas: eventqueue.CanvasID{1}, Module: "WORKER", Modifier: "_"})
	if err != nil {
		t.Fatal(err)
	}
	event := func(name, key string) eventqueue.NewEvent {
		return eventqueue.NewEvent{Name: name, Value: []byte("1"), UniqueKey: key}
	}
	refused := errors.New("refused")
	emits := func(events ...eventqueue.NewEvent) error { _, err := queue.EmitMany(ctx, events); return err }
	inTx := func(result error) error {
		return queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
			if _, err := tx.Emit(ctx, event("in_tx", "")); err != nil {
				t.Error(err)
			}
			return result
		})
	}
	if err := errors.Join(emits(event("plain", ""), event("plain", "")), emits(event("keyed", "k")), emits(event("keyed", "k")), inTx(nil)); err != nil {
		t.Fatal(err)
	}
	if err := inTx(refused); !errors.Is(err, refused) {
		t.Errorf("the unit of work ended with %v", err)
	}
	store.Inject(rig.Faults{Before: func(_ context.Context, op rig.Op) error {
		if op == rig.OpInsert {
			return refused
		}
		return nil
	}})
	if err := emits(event("plain", "")); !errors.Is(err, refused) {
		t.Errorf("a refused insert ended with %v", err)
	}
	if err := queue.Close(ctx); err != nil {
		t.Fatal(err)
	}
	emitted := map[string]int64{}
	rows, err := pool.Query(ctx, `SELECT name, emitted FROM event_minutes`)
	if err != nil {
		t.Fatal(err)
	}
	var name string
	var n int64
	if _, err := pgx.ForEachRow(rows, []any{&name, &n}, func() error { emitted[name] += n; return nil }); err != nil {
		t.Fatal(err)
	}
	if len(emitted) != 3 || emitted["plain"] != 2 || emitted["keyed"] != 1 || emitted["in_tx"] != 1 {
		t.Errorf("counted are %v", emitted)
	}
}
