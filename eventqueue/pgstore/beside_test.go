package pgstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// other is another transaction, on a connection of its own.
type other struct {
	r    *rig
	conn *pgxpool.Conn
}

// begin opens one. It is rolled back at the end of the test if not before.
func (r *rig) begin() *other {
	r.t.Helper()
	conn, err := r.pool.Acquire(testenv.Context(r.t))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(conn.Release) // which closes a connection with an open transaction
	o := &other{r, conn}
	o.exec(`BEGIN`)
	return o
}

func (o *other) exec(sql string, args ...any) {
	o.r.t.Helper()
	if _, err := o.conn.Exec(testenv.Context(o.r.t), sql, args...); err != nil {
		o.r.t.Fatalf("%s: %v", sql, err)
	}
}

// lock locks the row of an event, as a handler's own transaction does, or an
// operator's.
func (o *other) lock(id eventqueue.EventID) {
	o.r.t.Helper()
	o.exec(`SELECT FROM events_v2 WHERE id = $1 FOR UPDATE`, id)
}

// claim claims an event that is free.
func (o *other) claim(id eventqueue.EventID) {
	o.r.t.Helper()
	found, err := pgstore.ClaimIn(testenv.Context(o.r.t), o.conn, []eventqueue.EventID{id}, handlers, 0)
	if err != nil || len(found) != 1 || !found[0].Facts.Claimed {
		o.r.t.Fatalf("claim event %s in a transaction: %+v, %v", id, found, err)
	}
}

// end commits it or rolls it back, as sql says.
func (o *other) end(sql string) {
	o.r.t.Helper()
	o.exec(sql)
	o.conn.Release()
}

// endWhenWaitedFor is end as soon as another transaction waits for this one.
func (o *other) endWhenWaitedFor(sql string) {
	o.r.t.Helper()
	o.whenWaitedFor(sql)
	o.conn.Release()
}

// whenWaitedFor runs sql as soon as another transaction waits for this one. The
// server checks, so that it does so long before the maximum wait of the other one is over.
func (o *other) whenWaitedFor(sql string) {
	o.r.t.Helper()
	o.exec(`DO $$ DECLARE
		until timestamptz := clock_timestamp() + interval '` + stuckAfter + `';
	BEGIN
		WHILE NOT EXISTS (SELECT FROM pg_locks
			WHERE locktype = 'transactionid' AND transactionid = pg_current_xact_id()::xid AND NOT granted)
		LOOP
			IF clock_timestamp() > until THEN RAISE 'nobody waits for this transaction'; END IF;
			PERFORM pg_sleep(0.001);
		END LOOP;
	END $$; ` + sql)
}

// beside runs f beside the test, which fails when f does and ends after it.
func beside[T any](r *rig, f func(ctx context.Context) (T, error)) <-chan T {
	r.t.Helper()
	ctx := testenv.Context(r.t)
	result, over := make(chan T, 1), make(chan struct{})
	go func() {
		defer close(over)
		v, err := f(ctx)
		if err != nil {
			r.t.Error(err)
		}
		result <- v
	}()
	r.t.Cleanup(func() { <-over })
	return result
}

// stuckAfter is much longer than any statement of the queue waits for another
// else's transaction, also on a slow machine, and soon enough for a test to fail.
const stuckAfter = "5 s"

// stuck reports whether a session of this database has been waiting for a lock for
// so long that it is going to wait for the end of the transaction which has it.
func (r *rig) stuck() bool {
	r.t.Helper()
	return one[bool](r, `SELECT EXISTS (SELECT FROM pg_locks JOIN pg_stat_activity USING (pid)
		WHERE datname = current_database() AND NOT granted AND waitstart < clock_timestamp() - interval '`+stuckAfter+`')`)
}

// returns runs f, which has to return although there is a transaction that it
// could wait for. The context of f ends when it does not.
func (r *rig) returns(what string, f func(ctx context.Context)) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(testenv.Context(r.t))
	defer cancel()
	returned := make(chan struct{})
	go func() { defer close(returned); f(ctx) }()
	testenv.Eventually(r.t, what+" has returned or is stuck", func() bool {
		select {
		case <-returned:
			return true
		default:
			return r.stuck()
		}
	})
	select {
	case <-returned:
	default:
		r.t.Errorf("%s waits for the end of another transaction", what)
		cancel()
		<-returned
	}
}

// forms are the forms of the statements: the store's own transactions wait for a
// moment and then skip what is being written; a transaction of the caller skips
// it at once.
var forms = []form{{"in a transaction of its own", false}, {"in a transaction of the caller", true}}

type form struct {
	name string
	in   bool
}

// claim asks for the claims of events.
func (f form) claim(ctx context.Context, r *rig, ids ...eventqueue.EventID) (found []worker.ClaimResult, err error) {
	if !f.in {
		return r.store.Claim(ctx, ids, handlers, 0)
	}
	err = r.store.InTx(ctx, func(ctx context.Context, db eventqueue.DB) error {
		found, err = pgstore.ClaimIn(ctx, db, ids, handlers, 0)
		return err
	})
	return found, err
}

// complete writes ends.
func (f form) complete(ctx context.Context, r *rig, retain bool, completions ...worker.Completion) (written worker.WriteResult, err error) {
	if !f.in {
		return r.store.Complete(ctx, nil, completions, retain)
	}
	err = r.store.InTx(ctx, func(ctx context.Context, db eventqueue.DB) error {
		written, err = r.store.Complete(ctx, db, completions, retain)
		return err
	})
	return written, err
}

// inForms runs a test of each form.
func (r *rig) inForms(test func(r *rig, f form)) {
	for _, f := range forms {
		r.t.Run(f.name, func(t *testing.T) { test(&rig{t, r.pool, r.store}, f) })
	}
}

// write is a fenced write of one claim.
type write struct {
	name string
	do   func(ctx context.Context, r *rig, f form, c worker.Claim) (worker.WriteResult, error)
}

// writes are the ways in which a claim can end, and its renewal, which is never
// in a transaction of the caller.
func writes(f form) []write {
	var all []write
	for _, way := range ways {
		all = append(all, write{way.name, func(ctx context.Context, r *rig, f form, c worker.Claim) (worker.WriteResult, error) {
			return f.complete(ctx, r, way.retain, worker.Completion{Claim: c, Label: way.label, Delay: time.Second, LastError: "no luck"})
		}})
	}
	if f.in {
		return all
	}
	return append(all, write{"renewed", func(ctx context.Context, r *rig, _ form, c worker.Claim) (worker.WriteResult, error) {
		return r.store.Renew(ctx, []worker.Claim{c})
	}})
}
