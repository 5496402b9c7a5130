package memstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// Tx is an open transaction, for one goroutine at a time. It implements pgx.Tx, so that it
// can be committed, rolled back and passed to the Store. Its SQL methods return ErrNoSQL.
type Tx struct {
	noSQL
	store *Store

	// Guarded by the database's lock:
	closed   bool  // committed, rolled back, or cut off
	err      error // why it was cut off
	spoilt   bool  // an operation failed and undid everything; it can only be closed
	writes   map[eventqueue.EventID]*Row
	logged   map[eventqueue.EventID]LogRow
	unlogged []eventqueue.EventID // deleted from event_log
	attempts []AttemptRow
	keys     map[eventqueue.UniqueKey]eventqueue.EventID
	expiries map[eventqueue.EventID]ExpiryRow // the zero ExpiryRow removes one
	places   map[placeID]*place
	wake     bool // its commit wakes the listeners
	onEnd    []func(committed bool)
}

var _ pgx.Tx = (*Tx)(nil)

// Begin opens a transaction, as a caller of eventqueue.Queue.EmitTx does.
func (s *Store) Begin(ctx context.Context) (*Tx, error) {
	var tx *Tx
	err := s.atOnce(ctx, OpBegin, func() { tx = s.begin() })
	if err != nil {
		if tx != nil {
			_ = tx.Rollback(ctx) // cannot fail
		}
		return nil, err
	}
	return tx, nil
}

func (s *Store) begin() *Tx {
	tx := &Tx{
		store:    s,
		writes:   map[eventqueue.EventID]*Row{},
		logged:   map[eventqueue.EventID]LogRow{},
		keys:     map[eventqueue.UniqueKey]eventqueue.EventID{},
		expiries: map[eventqueue.EventID]ExpiryRow{},
		places:   map[placeID]*place{},
	}
	s.db.open[tx] = struct{}{}
	return tx
}

// InTx implements eventqueue.EmitStore. The DB that f gets is a *Tx.
func (s *Store) InTx(ctx context.Context, f func(ctx context.Context, db eventqueue.DB) error) error {
	tx, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // also on panic; after a commit it does nothing
	if err := f(ctx, tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// OnCommit makes the commit of the transaction call f, as part of the commit. It is for
// effects that are in the same database in reality. f is called with a lock held, so it
// must return fast and not call the Store. OnCommit panics if db is neither a transaction
// of this package nor one of a Queue on it.
func OnCommit(db eventqueue.DB, f func()) {
	OnEnd(db, func(committed bool) {
		if committed {
			f()
		}
	})
}

// OnEnd is OnCommit for every end of the transaction, including a rollback and a cut by
// Disconnect. It is for locks that are held until the end. If the transaction has ended
// already, f is called at once.
func OnEnd(db eventqueue.DB, f func(committed bool)) {
	tx, err := txOf(db)
	if err != nil || tx == nil {
		panic(fmt.Sprintf("memstore: OnCommit and OnEnd need the transaction that InTx or Begin gives, not a %T", db))
	}
	tx.store.db.mu.Lock()
	defer tx.store.db.mu.Unlock()
	if tx.ended() {
		f(false)
		return
	}
	tx.onEnd = append(tx.onEnd, f)
}

// Commit makes all writes of the transaction visible at once. If an operation in it has
// failed, it is rolled back and the error is pgx.ErrTxCommitRollback.
func (tx *Tx) Commit(ctx context.Context) error {
	err := tx.store.before(ctx, OpCommit)
	tx.store.db.mu.Lock()
	switch {
	case tx.closed:
		err = errors.Join(pgx.ErrTxClosed, tx.err)
	case err != nil:
		tx.end(false) // the connection is gone, and the transaction with it
	case tx.spoilt:
		err = pgx.ErrTxCommitRollback
	default:
		tx.apply()
		tx.end(true)
	}
	tx.closed = true
	tx.store.db.mu.Unlock()
	if err != nil {
		return err
	}
	return tx.store.after(ctx, OpCommit)
}

// Rollback discards the writes of the transaction. After a commit it does nothing and
// returns pgx.ErrTxClosed.
func (tx *Tx) Rollback(context.Context) error {
	tx.store.db.mu.Lock()
	defer tx.store.db.mu.Unlock()
	if tx.closed {
		return pgx.ErrTxClosed
	}
	tx.closed = true
	tx.end(false)
	return nil
}

func (tx *Tx) ended() bool {
	_, open := tx.store.db.open[tx]
	return !open
}

// end releases the rows that the transaction was writing. Only the first call has an
// effect.
func (tx *Tx) end(committed bool) {
	if tx.ended() {
		return
	}
	db := tx.store.db
	for id := range tx.writes {
		if r, ok := db.events[id]; ok && r.writer == tx {
			r.writer = nil
		}
	}
	maps.DeleteFunc(db.keyLocks, func(_ eventqueue.UniqueKey, owner *Tx) bool { return owner == tx })
	delete(db.open, tx)
	for _, f := range tx.onEnd {
		f(committed)
	}
	if committed && tx.wake {
		db.wake()
	}
}

// apply copies the writes of the transaction into the tables.
func (tx *Tx) apply() {
	db := tx.store.db
	tx.applyKeys()
	for _, id := range tx.unlogged {
		delete(db.log, id)
	}
	now := db.now()
	for _, id := range slices.Sorted(maps.Keys(tx.writes)) {
		change := Change{At: now, After: tx.writes[id]}
		if r, ok := db.events[id]; ok {
			before := r.Row
			change.Before = &before
		}
		if logged, ok := tx.logged[id]; ok {
			db.log[id] = logged
			change.Logged = &logged
		}
		if change.After == nil {
			delete(db.events, id)
		} else {
			after := *change.After
			db.events[id] = &record{Row: after}
		}
		if change.Before != nil || change.After != nil {
			db.config.Observe(change)
		}
	}
	tx.applyPlaces()
	tx.applyAttempts()
}

// applyKeys writes keys and their expiries into the tables.
func (tx *Tx) applyKeys() {
	db := tx.store.db
	for key, id := range tx.keys {
		db.keys[key] = id
	}
	for id, end := range tx.expiries {
		if end == (ExpiryRow{}) {
			delete(db.expiries, id)
		} else {
			db.expiries[id] = end
		}
	}
}

func (tx *Tx) applyPlaces() {
	for id, p := range tx.places {
		if p == nil {
			delete(tx.store.db.places, id)
		} else {
			tx.store.db.places[id] = *p
		}
	}
}

// row returns the version of a row that the transaction sees: its own, or the committed one.
func (tx *Tx) row(id eventqueue.EventID) (Row, bool) {
	if own, written := tx.writes[id]; written {
		if own == nil {
			return Row{}, false
		}
		return *own, true
	}
	r, ok := tx.store.db.events[id]
	if !ok {
		return Row{}, false
	}
	return r.Row, true
}

// mayWrite reports whether no other transaction is writing the row (SKIP LOCKED).
func (tx *Tx) mayWrite(id eventqueue.EventID) bool {
	r, ok := tx.store.db.events[id]
	return !ok || r.writer == nil || r.writer == tx
}

// write sets the transaction's version of a row; nil deletes it.
func (tx *Tx) write(id eventqueue.EventID, row *Row) {
	tx.writes[id] = row
	if r, ok := tx.store.db.events[id]; ok {
		r.writer = tx
	}
}

// inTx runs a writing operation in the given transaction, or with nil in one of
// its own, which commits when f returns nil. f is called with the lock held.
func (s *Store) inTx(ctx context.Context, in eventqueue.DB, op Op, f func(tx *Tx) error) error {
	tx, err := txOf(in)
	if err != nil {
		return err
	}
	err = s.do(ctx, op, func() error {
		s.db.mu.Lock()
		defer s.db.mu.Unlock()
		if tx != nil {
			if err := tx.usable(); err != nil {
				return err
			}
			return f(tx)
		}
		own := s.begin()
		err := f(own)
		if own.closed { // cut off while it waited
			err = errors.Join(pgx.ErrTxClosed, own.err)
		}
		if err == nil {
			own.apply()
		}
		own.end(err == nil)
		return err
	})
	if err != nil && tx != nil {
		tx.spoil()
	}
	return err
}

// usable returns the error of Postgres for an operation in a transaction that has
// ended, or in which an operation has failed.
func (tx *Tx) usable() error {
	switch {
	case tx.closed:
		return errors.Join(pgx.ErrTxClosed, tx.err)
	case tx.spoilt:
		return refusal("25P02", "current transaction is aborted, commands ignored until end of transaction block")
	default:
		return nil
	}
}

// spoil ends a transaction after a failed operation: it undoes everything at once,
// including locks. The owner can then only close the transaction.
func (tx *Tx) spoil() {
	tx.store.db.mu.Lock()
	defer tx.store.db.mu.Unlock()
	tx.spoilt = true
	tx.end(false)
}

func txOf(in eventqueue.DB) (*Tx, error) {
	switch db := in.(type) {
	case nil:
		return nil, nil
	case *Tx:
		return db, nil
	case *eventqueue.Tx:
		return txOf(db.DB)
	default:
		return nil, fmt.Errorf("memstore: cannot write in a %T: use the transaction that InTx or Begin gives", in)
	}
}
