package emit

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/internal/backoff"
)

// backlogSeconds is how many seconds' worth of events may be due and unfinished
// before the emitters pause. A machine that cannot bear the rate is then given
// fewer events; what is lost or stuck does not depend on its speed.
const backlogSeconds = 10

// backpressureEvery is how often the backlog is counted.
const backpressureEvery = time.Second

const countDueSQL = `
SELECT count(*)
  FROM (SELECT 1
          FROM events_v2
         WHERE delay_until <= clock_timestamp()
         LIMIT $1) AS due`

// Backpressure counts the backlog for the emitters until ctx ends. While Postgres does
// not answer the last count holds: nobody can emit then anyway.
func (e *Emitters) Backpressure(ctx context.Context, pool *pgxpool.Pool) {
	for ctx.Err() == nil {
		var n int64
		if err := pool.QueryRow(ctx, countDueSQL, e.mostWaiting).Scan(&n); err == nil {
			e.waiting.Store(n)
		}
		backoff.Sleep(ctx, backpressureEvery)
	}
}
