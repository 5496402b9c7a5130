package model_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
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
		{"insertRows", 1, w.insertRows},
		{"claim", 6, w.claim},
		{"claimAtOnce", 2, w.claimAtOnce},
		{"claimUnderWay", 2, w.claimUnderWay},
		{"ruleWaitsForClaim", 1, w.ruleWaitsForClaim},
		{"finish", 5, w.complete},
		{"finishAtOnce", 2, w.unlessLimited(w.completeAtOnce, w.complete)},
		{"unitOfWork", 1, w.unitOfWork},
		{"begin", 1, w.begin},
		{"end", 1, w.end},
		{"advance", 5, w.advance},
		{"renew", 2, w.renew},
		{"giveBack", 2, w.giveBack},
		{"markPending", 2, w.markPending},
		{"takePending", 1, w.takePending},
		{"unclaimed", 2, w.unclaimed},
		{"takeDue", 2, w.takeDue},
		{"takeLost", 2, w.takeLost},
		{"sweep", 3, w.sweep},
		{"takeAtOnce", 1, w.unlessLimited(w.takeAtOnce, w.sweep)},
		{"runnable", 2, w.runnable},
		{"addRule", 1, w.addRule},
		{"liftRule", 2, w.liftRule},
		{"expiredRules", 1, w.expiredRules},
		{"release", 1, w.release},
		{"waitingScopes", 1, w.waitingScopes},
		{"takeWaiting", 2, w.takeWaiting},
		{"deleteKeys", 1, w.deleteKeys},
		{"setConcurrencyLimit", 2, w.setConcurrencyLimit},
		{"fillLines", 1, w.fillGroups},
		{"setRateLimit", 2, w.setRateLimit},
		{"removeRateLimit", 1, w.removeRateLimit},
		{"takeRate", 4, w.takeRate},
		{"checkRates", 1, w.checkRates},
		{"takeLimited", 2, w.takeLimited},
		{"addMinutes", 2, w.addMinutes},
		{"countPending", 1, w.countPending},
		{"sumHour", 1, w.sumHour},
		{"pruneMinutes", 1, w.pruneMinutes},
		{"minutes", 1, w.readMinutes},
		{"remove", 2, w.remove},
		{"edit", 2, w.edit},
		{"requeue", 2, w.requeue},
		{"retry", 2, w.retry},
		{"deleteLogged", 1, w.deleteLogged},
		{"select", 2, w.selectEvents},
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

var announces = []eventqueue.NotifyMode{eventqueue.NotifyModeSelf, eventqueue.NotifyModeRelay, eventqueue.NotifyModeLater}

func (w *world) insert(t *rapid.T) {
	where, inTx := w.drawIn(t)
	events, mode := w.drawEvents(t, inTx), pick(t, "announce", announces)
	pg, pgErr := w.store.Insert(w.ctx, where.pg, events, mode)
	mem, memErr := w.mem.Insert(w.ctx, where.mem, events, mode)
	if inTx {
		for _, e := range events {
			w.keys[eventqueue.UniqueKey{Canvas: e.Canvas, Key: e.UniqueKey}] = true
		}
	}
	w.sameErrors(t, pgErr, memErr, inTx)
	same(t, "Insert", pg, mem)
	w.recordInserted(pg)
}

// insertSQL emits within a transaction of database/sql, which the model takes
// for one of its own.
func (w *world) insertSQL(t *rapid.T) {
	events, mode := w.drawEvents(t, false), pick(t, "announce", announces)
	pg, pgErr := w.insertInSQL(events, mode)
	mem, memErr := w.mem.Insert(w.ctx, nil, events, mode)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "InsertSQL", pg, mem)
	w.recordInserted(pg)
}

func (w *world) insertInSQL(events []eventqueue.NewEvent, mode eventqueue.NotifyMode) (inserted []eventqueue.Inserted, err error) {
	tx, err := w.sql.BeginTx(w.ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if inserted, err = w.store.InsertSQL(w.ctx, tx, events, mode); err != nil {
		return nil, err
	}
	return inserted, tx.Commit()
}

func (w *world) recordInserted(inserted []eventqueue.Inserted) {
	for _, row := range inserted {
		w.lastID = max(w.lastID, row.ID)
	}
}

func (w *world) complete(t *rapid.T) {
	where, inTx := w.drawIn(t)
	completions, retain := w.drawCompletions(t, lastErrors), rapid.Bool().Draw(t, "retain")
	placed, misled := completions, []worker.Completion(nil)
	if !inTx { // where no place is believed
		placed, misled = w.drawPlaces(t, completions)
	}
	pg, pgErr := w.store.Complete(w.ctx, where.pg, slices.Concat(placed, misled), retain)
	// A store that is impatient believes no places: then they may be written.
	lost := w.notHeld(misled)
	for _, end := range misled {
		if slices.Contains(pg.Done, end.Event) || slices.Contains(lost, end.Event) {
			placed = append(placed, end)
		}
	}
	mem, memErr := w.mem.Complete(w.ctx, where.mem, placed, retain)
	w.sameErrors(t, pgErr, memErr, inTx)
	same(t, "Finish", byID(pg), byID(mem))
	if inTx {
		for _, id := range pg.Done {
			w.writing[id] = true
		}
	}
}

// notHeld are the ends whose claims do not hold.
func (w *world) notHeld(completions []worker.Completion) (ids []eventqueue.EventID) {
	for _, end := range completions {
		if !slices.ContainsFunc(w.mem.Events(), func(r row) bool {
			return r.ID == end.Event && r.Attempts == end.Attempt && r.ClaimID == end.ID && !r.LockedAt.IsZero()
		}) {
			ids = append(ids, end.Event)
		}
	}
	return ids
}

// readCommitted is the isolation level that the documentation asks callers to use.
var readCommitted = pgx.TxOptions{IsoLevel: pgx.ReadCommitted}

func (w *world) begin(t *rapid.T) {
	if w.pgTx != nil {
		t.Skip("one is open")
	}
	var err error
	if w.pgTx, err = w.pool.BeginTx(w.ctx, readCommitted); err != nil {
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
	events, mode := w.drawEvents(t, false), pick(t, "announce", announces)
	completions := w.drawCompletions(t, lastErrors)
	retain, ignore := rapid.Bool().Draw(t, "retain"), rapid.Bool().Draw(t, "ignoreErrors")
	var result error
	if rapid.IntRange(0, 2).Draw(t, "rollback") == 2 {
		result = errRollback
	}
	type answers struct {
		inserted []eventqueue.Inserted
		written  worker.WriteResult
		errs     [2]string
	}
	body := func(store interface {
		eventqueue.EmitStore
		worker.Store
	}) (a answers, err error) {
		err = store.InTx(w.ctx, func(ctx context.Context, db eventqueue.DB) error {
			var insertErr, completeErr error
			a.inserted, insertErr = store.Insert(ctx, db, events, mode)
			a.written, completeErr = store.Complete(ctx, db, completions, retain)
			a.written = byID(a.written)
			a.errs = [2]string{kind(insertErr), kind(completeErr)}
			if ignore {
				return result
			}
			return errors.Join(insertErr, completeErr, result)
		})
		return a, err
	}
	pg, pgErr := body(w.store)
	mem, memErr := body(w.mem)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "unit of work", pg, mem)
	w.recordInserted(pg.inserted)
}

// sameErrors fails the test unless both operations failed in the same way, or
// neither did.
func (w *world) sameErrors(t rapid.TB, pg, mem error, inTx bool) {
	t.Helper()
	if kind(pg) != kind(mem) {
		var refused *pgconn.PgError
		where := ""
		if errors.As(pg, &refused) {
			where = refused.Where
		}
		t.Fatalf("Postgres and the model differ in the error\n  Postgres: %v; %s\n  model:    %v", pg, where, mem)
	}
	if pg != nil && inTx {
		clear(w.writing) // the transaction is spoilt and has undone what it wrote
		clear(w.keys)
	}
}

func (w *world) deleteKeys(t *rapid.T) {
	limit := pick(t, "limit", limits)
	for after, more := (eventqueue.UniqueKey{}), true; more; more = after != (eventqueue.UniqueKey{}) {
		pg, pgNext, pgErr := w.store.DeleteKeys(w.ctx, after, limit)
		mem, memNext, memErr := w.mem.DeleteKeys(w.ctx, after, limit)
		w.sameErrors(t, pgErr, memErr, false)
		same(t, "DeleteKeys", []any{pg, pgNext}, []any{mem, memNext})
		after = pgNext
	}
}

// kind is what a caller can learn from an error.
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
func byID(w worker.WriteResult) worker.WriteResult {
	return worker.WriteResult{Done: slices.Sorted(slices.Values(w.Done)), Lost: slices.Sorted(slices.Values(w.Lost)), Advanced: eventsByID(w.Advanced)}
}

func eventsByID(advanced []eventqueue.Event) []eventqueue.Event {
	return slices.SortedFunc(slices.Values(advanced), func(a, b eventqueue.Event) int { return int(a.ID - b.ID) })
}

// advance has events, that are there or not, leave their ordering groups and arrive.
func (w *world) advance(t *rapid.T) {
	left, arrived := w.drawIDs(t, "left"), w.drawIDs(t, "arrived")
	if rapid.Bool().Draw(t, "all") { // as when a batch was emitted
		for _, r := range w.mem.Events() {
			arrived = append(arrived, r.ID)
		}
		slices.Sort(arrived)
		arrived = slices.Compact(arrived)
	}
	if !w.limited { // events without an ordering group are not reported
		free := map[eventqueue.EventID]bool{}
		for _, r := range w.mem.Events() {
			free[r.ID] = r.OrderingKey == ""
		}
		arrived = slices.DeleteFunc(arrived, func(id eventqueue.EventID) bool { return free[id] })
	}
	pg, pgErr := w.store.Advance(w.ctx, left, arrived)
	mem, memErr := w.mem.Advance(w.ctx, left, arrived)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "Advance", eventsByID(pg), eventsByID(mem))
}
