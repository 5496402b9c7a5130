package pgstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
)

// One locked row must not keep a whole batch waiting (I15). To skip locked rows, a
// statement has to lock all its rows before it writes them, which costs a third of
// its time and as much again in the write-ahead log. So the first try does not skip.
// It waits for each locked row for a short while, since most are free after one
// commit. Only if a row stays locked is the statement run again in the form that
// skips, which is then used for all statements for a while.

// lockWaitSQL is a condition that is always true, for a part of the waiting form that
// is evaluated before any row is locked. From then until the statement ends, it waits
// 100 ms for a locked row. The setting eventsv2.lock_wait of a session overrides this.
const lockWaitSQL = `(SELECT set_config('lock_timeout',
    coalesce(nullif(current_setting('eventsv2.lock_wait', true), ''), '100ms'), true)) IS NOT NULL`

// Statements that are in both forms are planned without scans of whole tables: a
// plan that was made for an empty table, and kept, would read all of a full one
// for each id (I12). Without them the costs that the planner sees are not real,
// and would start the JIT compiler. Connections of Open are set so for good; for
// others, each statement brings the settings.
const (
	planSQL = `SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)`

	// In a transaction of the caller's the settings are put back.
	saveSettingsSQL = `SELECT set_config('eventsv2.enable_seqscan', current_setting('enable_seqscan'), true),
    set_config('eventsv2.jit', current_setting('jit'), true)`
	restoreSettingsSQL = `SELECT set_config('enable_seqscan', current_setting('eventsv2.enable_seqscan'), true),
    set_config('jit', current_setting('eventsv2.jit'), true)`
)

// keptPlanSQL has a claim of few events use the plan that Postgres keeps. By default
// Postgres would plan each such claim anew, because fewer events cost less than the ten
// that a kept plan assumes; planning takes seven times as long as the claim. For more
// events Postgres chooses the kept plan itself.
const (
	keptPlanSQL = `SELECT set_config('plan_cache_mode', 'force_generic_plan', true)`
	fewEvents   = 10
)

// jumpSQL is pgsession.WalkSQL for statements that jump along an index from one group of rows to the
// next. The right one among several has the rows of a group in order.
const jumpSQL = pgsession.WalkSQL + `, set_config('enable_sort', 'off', true), set_config('enable_incremental_sort', 'off', true)`

// planning are the settings of planSQL for the whole life of a connection.
var planning = pgsession.Settings{"enable_seqscan": "off", "jit": "off"}

// forms are the two forms of a statement. One that has nothing to wait for has only
// the form that skips.
type forms struct{ waits, skips string }

// and adds the same to both forms.
func (f forms) and(more string) forms { return forms{f.waits + more, f.skips + more} }

// query is a statement with its arguments, and what reads its answer.
type query struct {
	forms
	arguments    []any
	read         func(rows pgx.Rows) error
	usesKeptPlan bool // see keptPlanSQL
}

// waitThenSkip runs statements in a transaction of their own, in one round trip: in the
// form that waits, and if that has waited too long, in the form that skips.
func (s *Store) waitThenSkip(ctx context.Context, queries []query) error {
	return s.waitingThenSkipping(func(form func(forms) string) error { return s.run(ctx, form, queries...) })
}

// waitingThenSkipping is waitThenSkip for a transaction that run makes.
func (s *Store) waitingThenSkipping(run func(form func(forms) string) error) error {
	if time.Now().UnixNano() >= s.skipUntil.Load() {
		if err := run(waiting); !lockWaitExpired(err) {
			return err
		}
		s.skipUntil.Store(time.Now().Add(skipFor).UnixNano())
	}
	return run(skipping)
}

// skipFor is how long a store skips locked rows after it has waited too long for one:
// whoever locked that row may have locked many, and for longer.
const skipFor = 5 * time.Second

// lockWaitExpired reports whether a row stayed locked for longer than a statement waits.
func lockWaitExpired(err error) bool {
	const lockNotAvailable = "55P03"
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == lockNotAvailable
}

// run runs statements in one of their forms, in a transaction of their own and one
// round trip.
func (s *Store) run(ctx context.Context, form func(forms) string, queries ...query) error {
	conn, ready, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	before := make([]string, 0, 3)
	if !ready {
		before = append(before, pgsession.LevelSQL, planSQL)
	}
	if slices.ContainsFunc(queries, func(q query) bool { return q.usesKeptPlan }) {
		before = append(before, keptPlanSQL)
	}
	return send(ctx, s.pool.In(conn), queries, form, before, nil)
}

// walk runs a statement that reads a page along an index, in a transaction of its
// own and one round trip.
func (s *Store) walk(ctx context.Context, sql string, arguments []any, read func(rows pgx.Rows) error) error {
	return send(ctx, s.pool, []query{{forms: forms{skips: sql}, arguments: arguments, read: read}}, skipping, []string{pgsession.WalkSQL}, nil)
}

// jump is walk with jumpSQL.
func (s *Store) jump(ctx context.Context, sql string, arguments []any, read func(rows pgx.Rows) error) error {
	return send(ctx, s.pool, []query{{forms: forms{skips: sql}, arguments: arguments, read: read}}, skipping, []string{jumpSQL}, nil)
}

// within runs statements in a transaction of the caller. They skip locked rows: a
// statement that fails would abort the transaction.
func within(ctx context.Context, in eventqueue.DB, queries []query) error {
	return send(ctx, in, queries, skipping, []string{saveSettingsSQL, planSQL}, []string{restoreSettingsSQL})
}

func waiting(f forms) string  { return f.waits }
func skipping(f forms) string { return f.skips }

// batcher is a pool, a connection or a transaction.
type batcher interface {
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// send sends settings, statements and settings at once and reads the answers.
func send(ctx context.Context, db batcher, queries []query, form func(forms) string, before, after []string) (err error) {
	batch := &pgx.Batch{}
	for _, sql := range before {
		batch.Queue(sql)
	}
	for _, q := range queries {
		batch.Queue(form(q.forms), q.arguments...)
	}
	for _, sql := range after {
		batch.Queue(sql)
	}
	results := db.SendBatch(ctx, batch)
	defer func() {
		if closeErr := results.Close(); err == nil { // the first error says what went wrong
			err = closeErr
		}
	}()
	for range before {
		if _, err := results.Exec(); err != nil {
			return err
		}
	}
	for _, q := range queries {
		rows, err := results.Query()
		if err != nil {
			return err
		}
		if err := q.read(rows); err != nil {
			return err
		}
	}
	return nil
}
