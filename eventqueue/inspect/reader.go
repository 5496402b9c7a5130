package inspect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/attributes"
)

// Reader reads one database. It is safe for concurrent use.
type Reader struct {
	pool                  *pgsession.Pool
	mostRead, mostGrouped int
}

// New makes a Reader on a pool, which the caller closes.
func New(pool *pgxpool.Pool) *Reader { return NewIn("", pool) }

// NewIn is New for the queue in a schema; "" is public.
func NewIn(schema pgsession.Schema, pool *pgxpool.Pool) *Reader {
	reading := pgsession.On(pool, schema)
	reading.NoJIT = true
	return &Reader{pool: reading, mostRead: MostRead, mostGrouped: MostGrouped}
}

// Filter restricts a listing. An empty field matches everything.
type Filter struct {
	Canvas *eventqueue.CanvasID
	Module string
	Name   string
	// Attributes are pairs that the events have to have. List and Log heed them, and these.
	Attributes                       map[string]string
	Modifier, OrderingKey, UniqueKey string
	// EmittedWithin selects events that were emitted less long ago; 0: any. Only List heeds it.
	EmittedWithin time.Duration
	// Priority is high, normal or low. Only List heeds it; the history has no priorities, and Log refuses it.
	Priority string
}

// filterSQL compares $1 to $3, the arguments of Filter, with the columns
// of a table.
const filterSQL = `($1::uuid IS NULL OR canvas_id = $1) AND ($2::text = '' OR module = $2) AND ($3::text = '' OR name = $3)`

func (f Filter) args(more ...any) []any {
	return append([]any{(*[16]byte)(f.Canvas), f.Module, f.Name}, more...)
}

// alsoSQL compares three arguments, the first with a number, with columns that List and Log search in the rows that they read.
func alsoSQL(first int) string {
	return fmt.Sprintf(` AND ($%[1]d::text = '' OR modifier = $%[1]d) AND ($%[2]d::text = '' OR ordering_key = $%[2]d) AND ($%[3]d::text = '' OR unique_key = $%[3]d)`, first, first+1, first+2)
}

// alsoArgs are the arguments of alsoSQL.
func (f Filter) alsoArgs() []any { return []any{f.Modifier, f.OrderingKey, f.UniqueKey} }

// hasAttributes is the argument of attributesSQL: NULL for no restriction.
func (f Filter) hasAttributes() *string {
	if len(f.Attributes) == 0 {
		return nil
	}
	return new(attributes.Encode(f.Attributes))
}

// FilterOf returns the filter for exactly one scope.
func FilterOf(s eventqueue.Scope) Filter {
	return Filter{Canvas: &s.Canvas, Module: s.Module, Name: s.Name}
}

// optional reads one row, or none.
func optional[T any](ctx context.Context, db eventqueue.DB, scan pgx.RowToFunc[T], sql string, args ...any) (*T, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &found, err
}

// walk runs a statement that reads a page along an index, in a transaction of its
// own and one round trip.
func (r *Reader) walk(ctx context.Context, sql string, args []any, read func(rows pgx.Rows) error) error {
	return r.walkWith(ctx, pgsession.WalkSQL, sql, args, read)
}

// inOrderSQL is pgsession.WalkSQL for statements whose page has the order of an index: the planner takes no other one and sorts.
const inOrderSQL = pgsession.WalkSQL + `, set_config('enable_sort', 'off', true)`

func (r *Reader) walkWith(ctx context.Context, settings, sql string, args []any, read func(rows pgx.Rows) error) error {
	batch := &pgx.Batch{}
	batch.Queue(settings)
	batch.Queue(sql, args...).Query(read)
	return r.pool.SendBatch(ctx, batch).Close()
}

// walked collects the rows of a statement that walks along an index: the planner reads all counts of two weeks for those of
// an hour, as it knows neither the clock nor how many of them the last hour has.
func walked[T any](ctx context.Context, r *Reader, scan pgx.RowToFunc[T], sql string, args ...any) (found []T, err error) {
	err = r.walk(ctx, sql, args, func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, scan)
		return err
	})
	return found, err
}
