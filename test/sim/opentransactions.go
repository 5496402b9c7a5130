package sim

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// transaction is an open one of a process.
type transaction struct {
	pgx.Tx
	owner  string
	writes []func()                      // into the history, when it commits
	emits  []eventqueue.Inserted         // in it
	keys   map[eventqueue.UniqueKey]bool // whose rows it has written
}

// raw is what the store writes in: nil, or a transaction without its gate.
func raw(in eventqueue.DB) eventqueue.DB {
	if tx := transactionOf(in); tx != nil {
		return tx.Tx
	}
	return nil
}

func transactionOf(in eventqueue.DB) *transaction {
	switch in := in.(type) {
	case interface{ inner() *transaction }:
		return in.inner()
	case *eventqueue.Tx:
		return transactionOf(in.DB)
	default:
		return nil
	}
}

func (t *tables) begin(ctx context.Context, owner string) (*transaction, error) {
	begun, err := t.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return nil, err
	}
	tx := &transaction{Tx: begun, owner: owner, keys: map[eventqueue.UniqueKey]bool{}}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = append(t.open, tx)
	return tx, nil
}

// ended forgets a transaction that was committed or rolled back.
func (t *tables) ended(tx *transaction) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = slices.DeleteFunc(t.open, func(other *transaction) bool { return other == tx })
}

// keysFree reports whether an insert of events would wait for no transaction that has one of their keys.
func (t *tables) keysFree(events []eventqueue.NewEvent) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !slices.ContainsFunc(t.open, func(tx *transaction) bool {
		return slices.ContainsFunc(events, func(e eventqueue.NewEvent) bool {
			return e.UniqueKey != "" && tx.keys[eventqueue.UniqueKey{Canvas: e.Canvas, Key: e.UniqueKey}]
		})
	})
}
