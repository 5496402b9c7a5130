package memstore_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/memstore"
	"eventsv2/eventqueue/worker"
)

func TestNobodySeesWhatIsNotCommitted(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Config{})
	tx, err := store.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := insert(t, store, tx, eventqueue.NotifyModeSelf)
	if _, ok := claim(t, store, id); ok {
		t.Error("an event was claimed before its transaction has committed")
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustClaim(t, store, id)
	if err := tx.Rollback(t.Context()); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("rollback after the commit: %v", err)
	}
}

func TestRollbackUndoesAll(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Config{})
	held := mustClaim(t, store, insert(t, store, nil, eventqueue.NotifyModeSelf))
	before := store.Events()
	committed := false
	err := store.InTx(t.Context(), func(ctx context.Context, db eventqueue.DB) error {
		memstore.OnCommit(db, func() { committed = true })
		insert(t, store, db, eventqueue.NotifyModeSelf)
		end := worker.Completion{Claim: held, Label: machine.ExecutesToCompletion}
		written, err := store.Complete(ctx, db, []worker.Completion{end}, true)
		if len(written.Done) != 1 || err != nil {
			t.Errorf("finish: %v, %v", written, err)
		}
		return errBroken
	})
	if !errors.Is(err, errBroken) {
		t.Errorf("InTx returned %v", err)
	}
	if !slices.Equal(store.Events(), before) || len(store.Log()) != 0 || committed {
		t.Errorf("after the rollback: %v, %v, committed %t", store.Events(), store.Log(), committed)
	}
	if next := insert(t, store, nil, eventqueue.NotifyModeSelf); next != held.Event+2 {
		t.Errorf("the id after a rollback is %s: ids are not used again", next)
	}
}

func TestRowsBeingWrittenAreSkipped(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Config{})
	held := mustClaim(t, store, insert(t, store, nil, eventqueue.NotifyModeSelf))
	ends := []worker.Completion{{Claim: held, Label: machine.Released}}
	tx, err := store.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if written, err := store.Complete(t.Context(), tx, ends, false); len(written.Done) != 1 || err != nil {
		t.Fatalf("finish in the transaction: %v, %v", written, err)
	}
	renewed, err := store.Renew(t.Context(), []worker.Claim{held})
	if err != nil || len(renewed.Done)+len(renewed.Lost) != 0 {
		t.Errorf("renew: %v, %v", renewed, err)
	}
	finished, err := store.Complete(t.Context(), nil, ends, false)
	if err != nil || len(finished.Done)+len(finished.Lost) != 0 {
		t.Errorf("finish beside the transaction: %v, %v", finished, err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	finished, err = store.Complete(t.Context(), nil, ends, false)
	if err != nil || len(finished.Lost) != 1 {
		t.Errorf("finish after the transaction: %v, %v", finished, err)
	}
}

func TestFailureSpoilsTheTransaction(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Config{})
	err := store.InTx(t.Context(), func(ctx context.Context, db eventqueue.DB) error {
		insert(t, store, db, eventqueue.NotifyModeSelf)
		if _, err := store.Insert(ctx, db, []eventqueue.NewEvent{event("\"\x00\"")}, eventqueue.NotifyModeSelf); err == nil {
			t.Error("a value that Postgres refuses was taken")
		}
		return nil
	})
	if !errors.Is(err, pgx.ErrTxCommitRollback) || len(store.Events()) != 0 {
		t.Errorf("InTx returned %v and left %v", err, store.Events())
	}
}

func TestPanicRollsBack(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Config{})
	func() {
		defer func() { _ = recover() }()
		_ = store.InTx(t.Context(), func(_ context.Context, db eventqueue.DB) error {
			insert(t, store, db, eventqueue.NotifyModeSelf)
			panic("on purpose")
		})
	}()
	if rows := store.Events(); len(rows) != 0 {
		t.Errorf("a panic left %v", rows)
	}
}

func TestOnlyItsOwnTransactions(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Config{})
	tx, err := store.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT 1"); !errors.Is(err, memstore.ErrNoSQL) {
		t.Errorf("Exec: %v", err)
	}
	if err := tx.QueryRow(t.Context(), "SELECT 1").Scan(); !errors.Is(err, memstore.ErrNoSQL) {
		t.Errorf("QueryRow: %v", err)
	}
	foreign := struct{ eventqueue.DB }{tx}
	if _, err := store.Insert(t.Context(), foreign, []eventqueue.NewEvent{event(`1`)}, eventqueue.NotifyModeSelf); err == nil {
		t.Error("a foreign transaction was written in")
	}
}
