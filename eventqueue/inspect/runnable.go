package inspect

import (
	"context"
	"time"

	"eventsv2/internal/mayrun"
)

// MaxRunnable is how far programs that answer autoscalers count. A tenth of that is work for more workers
// than any limit of an autoscaler starts for it.
const MaxRunnable = 100_000

// OldestPending returns for how long the oldest notification that is due has been waiting for a relay to publish it; 0
// if there is none. It reads one entry of each of two indexes, whatever waits. Those of low priority, which wait for their turn, do not count.
func (r *Reader) OldestPending(ctx context.Context) (oldest time.Duration, err error) {
	err = r.pool.QueryRow(ctx, `
SELECT greatest(clock_timestamp() - least(
    (SELECT min(delay_until) FROM events_v2 WHERE notified_at IS NULL AND priority IS NULL),
    (SELECT min(delay_until) FROM events_v2 WHERE notified_at IS NULL AND priority = 'high')), interval '0')`).Scan(&oldest)
	return oldest, err
}

const runnableSQL = `
SELECT CASE WHEN ` + mayrun.WholeQueueRuledSQL + ` THEN (SELECT count(*)::integer FROM (SELECT FROM events_v2 e WHERE e.begun LIMIT $1::integer) AS running)
    ELSE events_v2_runnable($1::integer) END`

// Runnable returns how many events run or could be claimed now, at most so many, by the SQL function
// events_v2_runnable: what an autoscaler of workers goes by. Its cost is bounded, whatever waits. While the whole queue is held,
// only what has been running for long counts.
func (r *Reader) Runnable(ctx context.Context, most int) (n int, err error) {
	err = r.pool.QueryRow(ctx, runnableSQL, most).Scan(&n)
	return n, err
}
