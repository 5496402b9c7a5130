package model_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"eventsv2/eventqueue"
)

// actions are all operations, the more often drawn the higher their weight.
func (w *world) actions() map[string]func(*rapid.T) {
	actions := map[string]func(*rapid.T){"": func(t *rapid.T) { w.compare(t) }}
	for _, a := range []struct {
		name   string
		weight int
		f      func(*rapid.T)
	}{
		{"insert", 4, w.insert},
		{"insertSQL", 1, w.insertSQL},
		{"claim", 6, w.claim},
		{"claimAtOnce", 2, w.claimAtOnce},
		{"claimUnderWay", 2, w.claimUnderWay},
		{"ruleWaitsForClaim", 1, w.ruleWaitsForClaim},
		{"finish", 5, w.finish},
		{"finishAtOnce", 2, w.finishAtOnce},
		{"unitOfWork", 1, w.unitOfWork},
		{"begin", 1, w.begin},
		{"end", 1, w.end},
		{"renew", 2, w.renew},
		{"owe", 2, w.owe},
		{"takeOwed", 1, w.takeOwed},
		{"takeDue", 2, w.takeDue},
		{"takeLost", 2, w.takeLost},
		{"sweep", 3, w.sweep},
		{"takeAtOnce", 1, w.takeAtOnce},
		{"runnable", 2, w.runnable},
		{"addRule", 1, w.addRule},
		{"liftRule", 2, w.liftRule},
		{"takeWaiting", 2, w.takeWaiting},
		{"letTimePass", 5, w.letTimePass},
	} {
		for i := range a.weight {
			actions[fmt.Sprintf("%s%.*s", a.name, i, "''''''")] = a.f
		}
	}
	return actions
}

func (w *world) letTimePass(t *rapid.T) {
	w.now = w.now.Add(pick(t, "duration", durations)).Truncate(1000)
	w.setClock(t)
}

var announces = []eventqueue.Announce{eventqueue.AnnounceSelf, eventqueue.AnnounceRelay, eventqueue.AnnounceLater}

func (w *world) insert(t *rapid.T) {
	where, inTx := w.drawIn(t)
	events, announce := w.drawEvents(t), pick(t, "announce", announces)
	pg, pgErr := w.store.Insert(w.ctx, where.pg, events, announce)
	mem, memErr := w.mem.Insert(w.ctx, where.mem, events, announce)
	w.sameErrors(t, pgErr, memErr, inTx)
	same(t, "Insert", pg, mem)
	w.noteInserted(pg)
}

// insertSQL emits within a transaction of database/sql, which the model takes
// for one of its own.
func (w *world) insertSQL(t *rapid.T) {
	events, announce := w.drawEvents(t), pick(t, "announce", announces)
	pg, pgErr := w.insertInSQL(events, announce)
	mem, memErr := w.mem.Insert(w.ctx, nil, events, announce)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "InsertSQL", pg, mem)
	w.noteInserted(pg)
}

func (w *world) insertInSQL(events []eventqueue.NewEvent, announce eventqueue.Announce) (inserted []eventqueue.Inserted, err error) {
	tx, err := w.sql.BeginTx(w.ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if inserted, err = w.store.InsertSQL(w.ctx, tx, events, announce); err != nil {
		return nil, err
	}
	return inserted, tx.Commit()
}

func (w *world) noteInserted(inserted []eventqueue.Inserted) {
	for _, row := range inserted {
		w.lastID = max(w.lastID, row.ID)
	}
}

func (w *world) finish(t *rapid.T) {
	where, inTx := w.drawIn(t)
	ends, keep := w.drawEnds(t, lastErrors), rapid.Bool().Draw(t, "keep")
	pg, pgErr := w.store.Finish(w.ctx, where.pg, ends, keep)
	mem, memErr := w.mem.Finish(w.ctx, where.mem, ends, keep)
	w.sameErrors(t, pgErr, memErr, inTx)
	same(t, "Finish", byID(pg), byID(mem))
	if inTx {
		for _, id := range pg.Done {
			w.writing[id] = true
		}
	}
}

func (w *world) begin(t *rapid.T) {
	if w.pgTx != nil {
		t.Skip("one is open")
	}
	var err error
	if w.pgTx, err = w.pool.Begin(w.ctx); err != nil {
		t.Fatal(err)
	}
	if w.memTx, err = w.mem.Begin(w.ctx); err != nil {
		t.Fatal(err)
	}
}

func (w *world) end(t *rapid.T) {
	if w.pgTx == nil {
		t.Skip("none is open")
	}
	var pgErr, memErr error
	if rapid.Bool().Draw(t, "commit") {
		pgErr, memErr = w.pgTx.Commit(w.ctx), w.memTx.Commit(w.ctx)
	} else {
		pgErr, memErr = w.pgTx.Rollback(w.ctx), w.memTx.Rollback(w.ctx)
	}
	w.pgTx, w.memTx = nil, nil
	clear(w.writing)
	w.sameErrors(t, pgErr, memErr, false)
}

// errRollback is what a unit of work returns that is not to be.
var errRollback = errors.New("roll it back")

// unitOfWork emits and finishes in a transaction of InTx, which may be rolled
// back, by an error of an operation or by its own.
func (w *world) unitOfWork(t *rapid.T) {
	events, announce := w.drawEvents(t), pick(t, "announce", announces)
	ends := w.drawEnds(t, lastErrors)
	keep, ignore := rapid.Bool().Draw(t, "keep"), rapid.Bool().Draw(t, "ignoreErrors")
	var result error
	if rapid.IntRange(0, 2).Draw(t, "rollback") == 2 {
		result = errRollback
	}
	type answers struct {
		inserted []eventqueue.Inserted
		written  eventqueue.Written
		errs     [2]string
	}
	body := func(store interface {
		eventqueue.EmitStore
		eventqueue.ClaimStore
	}) (a answers, err error) {
		err = store.InTx(w.ctx, func(ctx context.Context, db eventqueue.DB) error {
			var insertErr, finishErr error
			a.inserted, insertErr = store.Insert(ctx, db, events, announce)
			a.written, finishErr = store.Finish(ctx, db, ends, keep)
			a.written = byID(a.written)
			a.errs = [2]string{kind(insertErr), kind(finishErr)}
			if ignore {
				return result
			}
			return errors.Join(insertErr, finishErr, result)
		})
		return a, err
	}
	pg, pgErr := body(w.store)
	mem, memErr := body(w.mem)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "unit of work", pg, mem)
	w.noteInserted(pg.inserted)
}

// sameErrors fails the test unless both operations failed in the same way, or
// neither did.
func (w *world) sameErrors(t rapid.TB, pg, mem error, inTx bool) {
	t.Helper()
	if kind(pg) != kind(mem) {
		t.Fatalf("Postgres and the model differ in the error\n  Postgres: %v\n  model:    %v", pg, mem)
	}
	if pg != nil && inTx {
		clear(w.writing) // the transaction is spoilt and has undone what it wrote
	}
}

// kind is what a caller can tell of an error.
func kind(err error) string {
	var refused *pgconn.PgError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refused):
		return refused.Code
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return "commit of a spoilt transaction"
	case errors.Is(err, errRollback):
		return "rolled back"
	default:
		return "other: " + err.Error()
	}
}

// byID orders an answer whose order is open.
func byID(w eventqueue.Written) eventqueue.Written {
	return eventqueue.Written{Done: slices.Sorted(slices.Values(w.Done)), Lost: slices.Sorted(slices.Values(w.Lost))}
}
