package inspect

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
)

// Reader reads one database. It is safe for concurrent use.
type Reader struct{ pool *pgsession.Pool }

// New makes a Reader on a pool, which the caller closes.
func New(pool *pgxpool.Pool) *Reader { return &Reader{pool: pgsession.On(pool)} }

// Filter restricts a listing. An empty field matches everything.
type Filter struct {
	Canvas *eventqueue.CanvasID
	Module string
	Name   string
}

// filterSQL compares $1 to $3, the arguments of Filter, with the columns
// of a table.
const filterSQL = `($1::uuid IS NULL OR canvas_id = $1) AND ($2::text = '' OR module = $2) AND ($3::text = '' OR name = $3)`

func (f Filter) args(more ...any) []any {
	return append([]any{(*[16]byte)(f.Canvas), f.Module, f.Name}, more...)
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
