package inspect

import (
	"context"
	"time"
)

// MaxRunnable is how far programs that answer autoscalers count. A tenth of that is work for more workers
// than any limit of an autoscaler starts for it.
const MaxRunnable = 100_000

// OldestPending returns for how long the oldest notification that is due has been waiting for a relay to publish it; 0
// if there is none. It reads one entry of an index, whatever waits.
func (r *Reader) OldestPending(ctx context.Context) (oldest time.Duration, err error) {
	err = r.pool.QueryRow(ctx, `SELECT greatest(clock_timestamp() - min(delay_until), interval '0') FROM events_v2 WHERE notified_at IS NULL`).Scan(&oldest)
	return oldest, err
}

// Runnable returns how many events run or could be claimed now, at most so many, by the SQL function
// events_v2_runnable: what an autoscaler of workers goes by. Its cost is bounded, whatever waits.
func (r *Reader) Runnable(ctx context.Context, most int) (n int, err error) {
	err = r.pool.QueryRow(ctx, `SELECT events_v2_runnable($1)`, most).Scan(&n)
	return n, err
}
