package sim

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
)

// transaction is an open one of a process. Its statements pass the gate, each by itself.
type transaction struct {
	pgx.Tx
	p      *process
	writes []func()                      // into the history, when it commits
	emits  []eventqueue.Inserted         // in it
	keys   map[eventqueue.UniqueKey]bool // whose rows it has written
}

// raw is what the store writes in: nil, or the transaction without its gate.
func raw(in eventqueue.DB) eventqueue.DB {
	if tx := transactionOf(in); tx != nil {
		return tx.Tx
	}
	return nil
}

func transactionOf(in eventqueue.DB) *transaction {
	switch in := in.(type) {
	case *transaction:
		return in
	case *eventqueue.Tx:
		return transactionOf(in.DB)
	default:
		return nil
	}
}

func (s *port) begin(ctx context.Context) (tx *transaction, err error) {
	err = s.do(ctx, "Begin", "", func() (string, error) {
		begun, err := s.p.w.tables.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
		if err != nil {
			return "", err
		}
		tx = &transaction{Tx: begun, p: s.p, keys: map[eventqueue.UniqueKey]bool{}}
		s.p.w.mu.Lock()
		defer s.p.w.mu.Unlock()
		s.p.open = append(s.p.open, tx)
		return "", nil
	})
	if err != nil && tx != nil {
		_ = tx.Rollback(ctx) // nobody knows of it
	}
	return tx, err
}

func (s *port) commit(ctx context.Context, tx *transaction) error {
	var emitted []eventqueue.Inserted
	err := s.do(ctx, "Commit", "", func() (string, error) {
		err := tx.Tx.Commit(ctx)
		tx.close()
		if err == nil {
			for _, write := range tx.writes {
				write()
			}
			emitted = tx.emits
		}
		return "", err
	})
	if err != nil {
		s.p.w.unanswered(s.p, emitted)
	}
	return err
}

// end gives a transaction up, unless it has been committed.
func (s *port) end(ctx context.Context, tx *transaction) {
	_ = tx.Rollback(ctx) // after a commit it does nothing
	s.p.w.poke()         // others may wait for its keys
}

// Rollback implements pgx.Tx.
func (tx *transaction) Rollback(ctx context.Context) error {
	err := tx.Tx.Rollback(context.WithoutCancel(ctx))
	tx.close()
	return err
}

func (tx *transaction) close() {
	tx.p.w.mu.Lock()
	defer tx.p.w.mu.Unlock()
	tx.p.open = slices.DeleteFunc(tx.p.open, func(other *transaction) bool { return other == tx })
}

// Exec implements eventqueue.DB.
func (tx *transaction) Exec(ctx context.Context, sql string, arguments ...any) (tag pgconn.CommandTag, err error) {
	err = tx.p.store().do(ctx, "Exec in a transaction", "", func() (string, error) {
		tag, err = tx.Tx.Exec(ctx, sql, arguments...)
		return "", err
	})
	return tag, err
}

// SendBatch implements eventqueue.DB.
func (tx *transaction) SendBatch(ctx context.Context, batch *pgx.Batch) (results pgx.BatchResults) {
	err := tx.p.store().do(ctx, "SendBatch in a transaction", "", func() (string, error) {
		results = tx.Tx.SendBatch(ctx, batch)
		return "", nil
	})
	if err == nil {
		return results
	}
	if results != nil {
		_ = results.Close()
	}
	return failedBatch{err}
}

// failedBatch is the answer to a batch of which nothing is known.
type failedBatch struct{ err error }

func (b failedBatch) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, b.err }
func (b failedBatch) Query() (pgx.Rows, error)         { return nil, b.err }
func (b failedBatch) QueryRow() pgx.Row                { return failedRow(b) }
func (b failedBatch) Close() error                     { return b.err }
func (failedBatch) Tx() pgx.Tx                         { return nil }

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }
