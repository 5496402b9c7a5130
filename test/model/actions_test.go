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
		{"takeTurns", 5, w.takeTurns},
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
		{"forgetKeys", 1, w.forgetKeys},
		{"setRateLimit", 2, w.setRateLimit},
		{"removeRateLimit", 1, w.removeRateLimit},
		{"takeRate", 4, w.takeRate},
		{"lookAtRates", 1, w.lookAtRates},
		{"takeLimited", 2, w.takeLimited},
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
	events, announce := w.drawEvents(t, inTx), pick(t, "announce", announces)
	pg, pgErr := w.store.Insert(w.ctx, where.pg, events, announce)
	mem, memErr := w.mem.Insert(w.ctx, where.mem, events, announce)
	if inTx {
		for _, e := range events {
			w.keys[eventqueue.UniqueKey{Canvas: e.Canvas, Key: e.UniqueKey}] = true
		}
	}
	w.sameErrors(t, pgErr, memErr, inTx)
	same(t, "Insert", pg, mem)
	w.noteInserted(pg)
}

// insertSQL emits within a transaction of database/sql, which the model takes
// for one of its own.
func (w *world) insertSQL(t *rapid.T) {
	events, announce := w.drawEvents(t, false), pick(t, "announce", announces)
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
	placed, misled := ends, []eventqueue.End(nil)
	if !inTx { // where no place is believed
		placed, misled = w.drawPlaces(t, ends)
	}
	pg, pgErr := w.store.Finish(w.ctx, where.pg, slices.Concat(placed, misled), keep)
	// A store that is impatient believes no places: then they may be written.
	lost := w.notHeld(misled)
	for _, end := range misled {
		if slices.Contains(pg.Done, end.Event) || slices.Contains(lost, end.Event) {
			placed = append(placed, end)
		}
	}
	mem, memErr := w.mem.Finish(w.ctx, where.mem, placed, keep)
	w.sameErrors(t, pgErr, memErr, inTx)
	same(t, "Finish", byID(pg), byID(mem))
	if inTx {
		for _, id := range pg.Done {
			w.writing[id] = true
		}
	}
}

// notHeld are the ends whose claims do not hold.
func (w *world) notHeld(ends []eventqueue.End) (ids []eventqueue.EventID) {
	for _, end := range ends {
		if !slices.ContainsFunc(w.mem.Events(), func(r row) bool {
			return r.ID == end.Event && r.Attempts == end.Attempt && !r.LockedAt.IsZero()
		}) {
			ids = append(ids, end.Event)
		}
	}
	return ids
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
	clear(w.keys)
	w.sameErrors(t, pgErr, memErr, false)
}

// errRollback is what a unit of work returns that is not to be.
var errRollback = errors.New("roll it back")

// unitOfWork emits and finishes in a transaction of InTx, which may be rolled
// back, by an error of an operation or by its own.
func (w *world) unitOfWork(t *rapid.T) {
	events, announce := w.drawEvents(t, false), pick(t, "announce", announces)
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
		clear(w.keys)
	}
}

func (w *world) forgetKeys(t *rapid.T) {
	limit := pick(t, "limit", limits)
	for after, more := (eventqueue.UniqueKey{}), true; more; more = after != (eventqueue.UniqueKey{}) {
		pg, pgNext, pgErr := w.store.ForgetKeys(w.ctx, after, limit)
		mem, memNext, memErr := w.mem.ForgetKeys(w.ctx, after, limit)
		w.sameErrors(t, pgErr, memErr, false)
		same(t, "ForgetKeys", []any{pg, pgNext}, []any{mem, memNext})
		after = pgNext
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
	return eventqueue.Written{Done: slices.Sorted(slices.Values(w.Done)), Lost: slices.Sorted(slices.Values(w.Lost)), Turns: byTurn(w.Turns)}
}

func byTurn(turns []eventqueue.Event) []eventqueue.Event {
	return slices.SortedFunc(slices.Values(turns), func(a, b eventqueue.Event) int { return int(a.ID - b.ID) })
}

// takeTurns has events of lines, that are there or not, leave and arrive.
func (w *world) takeTurns(t *rapid.T) {
	left, arrived := w.drawIDs(t, "left"), w.drawIDs(t, "arrived")
	if rapid.Bool().Draw(t, "all") { // as when a batch was emitted
		for _, r := range w.mem.Events() {
			arrived = append(arrived, r.ID)
		}
		slices.Sort(arrived)
		arrived = slices.Compact(arrived)
	}
	free := map[eventqueue.EventID]bool{}
	for _, r := range w.mem.Events() {
		free[r.ID] = r.OrderingKey == ""
	}
	arrived = slices.DeleteFunc(arrived, func(id eventqueue.EventID) bool { return free[id] })
	lockTimeout := pick(t, "lockTimeout", lockTimeouts)
	pg, pgErr := w.store.TakeTurns(w.ctx, left, arrived, lockTimeout)
	mem, memErr := w.mem.TakeTurns(w.ctx, left, arrived, lockTimeout)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "TakeTurns", byTurn(pg), byTurn(mem))
}
