package check

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
)

// grant is one change of the counters of a rate limit.
type grant struct {
	at, window time.Time // window is the beginning of its minute
	writer     string
	scope      eventqueue.Scope
	runs       int // that were counted
}

const readGrantsSQL = `
SELECT at, window_at, writer, canvas_id, module, name, runs
  FROM audit.grants
 ORDER BY at`

// readGrants reads what the rate limits have counted.
func readGrants(ctx context.Context, pool *pgxpool.Pool) ([]grant, error) {
	rows, err := pool.Query(ctx, readGrantsSQL)
	if err != nil {
		return nil, fmt.Errorf("read the record of the rate limits: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (g grant, err error) {
		err = row.Scan(&g.at, &g.window, &g.writer, (*[16]byte)(&g.scope.Canvas), &g.scope.Module, &g.scope.Name, &g.runs)
		return g, err
	})
}
