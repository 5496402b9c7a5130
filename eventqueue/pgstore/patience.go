package pgstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
)

// A row that somebody is writing must not keep a whole batch waiting (I15). To
// skip such rows, a statement has to lock all its rows before it writes them,
// which costs a third of its time and as much again in the write-ahead log. So
// the first try does not: it waits, for each such row for a short while, since
// most rows that are being written are free after one commit. Only if one was
// not, the statement is run again, and skips; and so do all others for a while.

// patientSQL is a condition that always holds, for a part of the waiting form
// which is evaluated before any row is locked: from there on, and until the
// statement ends, it waits for a locked row for 100 ms. A session may have a
// patience of its own.
const patientSQL = `(SELECT set_config('lock_timeout',
    coalesce(nullif(current_setting('eventsv2.patience', true), ''), '100ms'), true)) IS NOT NULL`

// Statements that are in both forms are planned without scans of whole tables: a
// plan that was made for an empty table, and kept, would read all of a full one
// for each id (I12). Without them the costs that the planner sees are not real,
// and would start the JIT compiler. Connections of Open are set so for good; for
// others, each statement brings the settings.
const (
	planSQL = `SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)`

	// In a transaction of the caller's the settings are put back.
	keepSQL = `SELECT set_config('eventsv2.enable_seqscan', current_setting('enable_seqscan'), true),
    set_config('eventsv2.jit', current_setting('jit'), true)`
	putBackSQL = `SELECT set_config('enable_seqscan', current_setting('eventsv2.enable_seqscan'), true),
    set_config('jit', current_setting('eventsv2.jit'), true)`
)

// keptPlanSQL has a claim of few events use the plan that Postgres keeps. Left to
// itself it makes one for the number of events that it sees, each time, since so few
// cost less than the ten that it has to assume for any number: and that takes seven
// times as long as the claim. For more it decides for the kept plan as well.
const (
	keptPlanSQL = `SELECT set_config('plan_cache_mode', 'force_generic_plan', true)`
	fewEvents   = 10
)

// walkSQL is for statements that read a page along an index, and are bounded by it.
// With the statistics of a queue, which are wrong as soon as they are made, the
// planner would collect and sort all that follows, for each page.
const walkSQL = `
SELECT set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)`

// planning are the settings of planSQL for the whole life of a connection.
var planning = map[string]string{"enable_seqscan": "off", "jit": "off"}

// forms are the two forms of a statement. One that has nothing to wait for has only
// the form that skips.
type forms struct{ waits, skips string }

// query is a statement with its arguments, and what reads its answer.
type query struct {
	forms
	arguments []any
	read      func(rows pgx.Rows) error
	keepsPlan bool // see keptPlanSQL
}

// patiently runs statements in a transaction of their own, in one round trip: in
// the form that waits, and in the one that skips if that has waited in vain.
func (s *Store) patiently(ctx context.Context, queries []query) error {
	var err error
	if time.Now().UnixNano() >= s.impatientUntil.Load() {
		if err = s.run(ctx, waiting, queries...); !waitedInVain(err) {
			return err
		}
		s.impatientUntil.Store(time.Now().Add(impatience).UnixNano())
	}
	return s.run(ctx, skipping, queries...)
}

// impatience is how long a store that has waited in vain does not wait: who has
// locked one row for so long may have locked many, and for longer.
const impatience = 5 * time.Second

// waitedInVain tells whether somebody held a lock for longer than a statement waits.
func waitedInVain(err error) bool {
	const lockNotAvailable = "55P03"
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == lockNotAvailable
}

// run runs statements in one of their forms, in a transaction of their own and one
// round trip.
func (s *Store) run(ctx context.Context, form func(forms) string, queries ...query) error {
	before := s.settings
	if slices.ContainsFunc(queries, func(q query) bool { return q.keepsPlan }) {
		before = append(slices.Clip(before), keptPlanSQL)
	}
	return send(ctx, s.pool, queries, form, before, nil)
}

// walk runs a statement that reads a page along an index, in a transaction of its
// own and one round trip.
func (s *Store) walk(ctx context.Context, sql string, arguments []any, read func(rows pgx.Rows) error) error {
	return send(ctx, s.pool, []query{{forms: forms{skips: sql}, arguments: arguments, read: read}}, skipping, []string{walkSQL}, nil)
}

// within runs statements in a transaction of the caller's. They skip what
// somebody is writing: one that gives up would spoil the transaction.
func within(ctx context.Context, in eventqueue.DB, queries []query) error {
	return send(ctx, in, queries, skipping, []string{keepSQL, planSQL}, []string{putBackSQL})
}

func waiting(f forms) string  { return f.waits }
func skipping(f forms) string { return f.skips }

// send sends settings, statements and settings at once and reads the answers.
func send(ctx context.Context, db eventqueue.DB, queries []query, form func(forms) string, before, after []string) (err error) {
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
