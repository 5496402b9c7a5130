package memstore_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/memstore"
	"eventsv2/eventqueue/worker"
)

// on fails one operation.
func on(op memstore.Op) func(context.Context, memstore.Op) error {
	return func(_ context.Context, asked memstore.Op) error {
		if asked == op {
			return errBroken
		}
		return nil
	}
}

func TestFaultsBeforeAndAfter(t *testing.T) {
	t.Parallel()
	for _, op := range []memstore.Op{memstore.OpInsert, memstore.OpCommit, memstore.OpBegin} {
		for _, after := range []bool{false, true} {
			store := memstore.New(memstore.Config{})
			faults := memstore.Faults{Before: on(op)}
			if after {
				faults = memstore.Faults{After: on(op)}
			}
			broken := store.Connect(faults)
			err := broken.InTx(t.Context(), func(ctx context.Context, db eventqueue.DB) error {
				_, err := broken.Insert(ctx, db, []eventqueue.NewEvent{event(`1`)}, eventqueue.NotifyModeSelf)
				return err
			})
			want := 0
			if after && op == memstore.OpCommit {
				want = 1 // it has happened, and nobody was told
			}
			if got := len(store.Events()); !errors.Is(err, errBroken) || got != want {
				t.Errorf("%s, after %t: %v, and %d events instead of %d", op, after, err, got, want)
			}
			insert(t, store, nil, eventqueue.NotifyModeSelf) // others are not concerned
		}
	}
}

func TestUnknownOutcomeOfAClaim(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Config{})
	id := insert(t, store, nil, eventqueue.NotifyModeSelf)
	store.Inject(memstore.Faults{After: on(memstore.OpClaim)})
	if _, err := store.Claim(t.Context(), []eventqueue.EventID{id}, handlers, 0); !errors.Is(err, errBroken) {
		t.Errorf("claim: %v", err)
	}
	store.Inject(memstore.Faults{})
	if row := store.Events()[0]; row.Attempts != 1 || row.LockedAt.IsZero() {
		t.Errorf("the claim has not happened: %+v", row)
	}
}

func TestDisconnectFreesWhatIsOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		dying := store.Connect(memstore.Faults{})
		held := mustClaim(t, store, insert(t, store, nil, eventqueue.NotifyModeSelf))
		tx, err := dying.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ends := []worker.Completion{{Claim: held, Label: machine.ExecutesToCompletion}}
		if _, err := dying.Complete(t.Context(), tx, ends, false); err != nil {
			t.Fatal(err)
		}
		listened := make(chan error, 1)
		go func() { listened <- dying.Listen(t.Context(), func() {}) }()
		synctest.Wait()

		dying.Disconnect()
		if err := <-listened; !errors.Is(err, memstore.ErrDisconnected) {
			t.Errorf("Listen returned %v", err)
		}
		if err := tx.Commit(t.Context()); !errors.Is(err, memstore.ErrDisconnected) {
			t.Errorf("commit after the end of the connection: %v", err)
		}
		if written, err := store.Complete(t.Context(), nil, ends, false); len(written.Done) != 1 || err != nil {
			t.Errorf("the row was not given back: %v, %v", written, err)
		}
	})
}

func TestEndedContextDoesNothing(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Insert(ctx, nil, []eventqueue.NewEvent{event(`1`)}, eventqueue.NotifyModeSelf); !errors.Is(err, context.Canceled) {
		t.Errorf("insert: %v", err)
	}
	if rows := store.Events(); len(rows) != 0 {
		t.Errorf("rows: %v", rows)
	}
}

// TestARowThatRefusesToBeWritten fails the operation for all of its rows, and nothing of it has
// happened; rows that would not be written are not asked.
func TestARowThatRefusesToBeWritten(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Config{})
	good, bad := insert(t, store, nil, eventqueue.NotifyModeSelf), insert(t, store, nil, eventqueue.NotifyModeSelf)
	both := []eventqueue.EventID{good, bad}
	var asked int
	refusing := func(refused memstore.Op) {
		asked = 0
		store.Inject(memstore.Faults{Refuse: func(op memstore.Op, id eventqueue.EventID) error {
			asked++
			if op == refused && id == bad {
				return errBroken
			}
			return nil
		}})
	}
	refusing(memstore.OpClaim)
	if _, err := store.Claim(t.Context(), both, handlers, 1); !errors.Is(err, errBroken) || asked != 2 || store.Event(good).Attempts != 0 {
		t.Fatalf("claim: %v after %d rows", err, asked)
	}
	refusing("")
	found, err := store.Claim(t.Context(), both, handlers, 1)
	if err != nil || len(found) != 2 {
		t.Fatalf("claim: %v, %v", found, err)
	}
	var claims []worker.Claim
	var ends []worker.Completion
	for _, f := range found {
		c := worker.Claim{Event: f.Event.ID, Attempt: f.Attempt, ID: f.ClaimID}
		claims = append(claims, c)
		ends = append(ends, worker.Completion{Claim: c, Label: machine.ExecutesToCompletion})
	}
	before := store.Events()
	for op, do := range map[memstore.Op]func() error{
		memstore.OpClaim: func() error { // both are locked: no row is written
			_, err := store.Claim(t.Context(), both, handlers, 2)
			return errors.Join(err, map[bool]error{false: errBroken}[asked > 0])
		},
		memstore.OpRenew:    func() error { _, err := store.Renew(t.Context(), claims); return err },
		memstore.OpGiveBack: func() error { _, err := store.GiveBack(t.Context(), 1, both); return err },
		memstore.OpComplete: func() error { _, err := store.Complete(t.Context(), nil, ends, false); return err },
	} {
		refusing(op)
		if err := do(); !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", op, err)
		}
		if after := store.Events(); !slices.Equal(before, after) {
			t.Errorf("%s has written %+v", op, after)
		}
	}
	refusing("")
	if written, err := store.Complete(t.Context(), nil, ends, false); err != nil || len(written.Done) != 2 || store.Event(good).ID != 0 {
		t.Errorf("complete: %+v, %v", written, err)
	}
}
