package inspect

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// ExplainStuck is what Postgres did for the first statement of Stuck.
func (r *Reader) ExplainStuck(ctx context.Context, filter Filter, long StuckAfter, lockTimeout time.Duration) (plan string, err error) {
	args := stuckArgs(filter, long, firstStuckPlace(filter), 0, 50, lockTimeout)
	err = r.walk(ctx, `EXPLAIN (ANALYZE, TIMING off) `+stuckSQL, args, func(rows pgx.Rows) error {
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan = strings.Join(lines, "\n")
		return err
	})
	return plan, err
}
