package inspect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue/pgsession"
)

// Pulse reports whether the data behind an overview has changed, at the cost of one small statement.
type Pulse struct {
	// RelayRuns reports whether a relay is connected to the database.
	RelayRuns bool
	// Mark changes when counts are handed in or what is pending was counted, when a worker or a relay has come
	// or gone, or when a rule has changed.
	Mark string
	// QueueUsage is how full the server's queue of notifications is, from 0 to 1, and QueueLimit from where on wake-ups are left out.
	QueueUsage, QueueLimit float64
	// Foreign reports whether workers got notifications of another queue in the last minutes.
	Foreign bool
	// CountedSince is the first minute of the last eight days that has counts; zero: none has.
	CountedSince time.Time
}

// What a transaction has written has its number, xmin, so that the sum over all rows changes with any of them. The two
// minutes are compared for equality, so that the planner reads them by their index whatever else it believes.
const pulseSQL = `
SELECT relay, usage, bound, shared, concat_ws(' ', relay, shared, CASE WHEN usage >= bound / 2 THEN floor(usage * 20) END,
    (SELECT concat(count(*), '/', sum(number)) FROM (` + pgsession.LiveWorkersSQL + `) AS live),
    (SELECT concat(count(*), '/', sum(xmin::text::bigint)) FROM scheduling_rules),
    (SELECT concat(sum(counted.rows), '/', sum(counted.changes), '/', max(recent.minute) FILTER (WHERE counted.rows > 0))
     FROM (SELECT date_trunc('minute', clock_timestamp() - ago * interval '1 minute', 'UTC') AS minute FROM generate_series(0, 1) AS ago OFFSET 0) AS recent
     CROSS JOIN LATERAL (SELECT count(*) AS rows, sum(xmin::text::bigint) AS changes FROM event_minutes m WHERE m.minute = recent.minute) AS counted)),
    (SELECT minute FROM event_minutes WHERE minute >= (SELECT date_trunc('minute', clock_timestamp() - interval '8 days', 'UTC')) ORDER BY minute LIMIT 1)
FROM (SELECT ` + pgsession.RelayRunsSQL + ` AS relay, pg_notification_queue_usage() AS usage, events_v2_notify_limit() AS bound,
    EXISTS (SELECT FROM events_v2_settings WHERE foreign_at > clock_timestamp() - interval '3 minutes') AS shared) AS relays`

// Pulse reads the pulse.
func (r *Reader) Pulse(ctx context.Context) (p Pulse, err error) {
	var since *time.Time
	err = r.pool.QueryRow(ctx, pulseSQL).Scan(&p.RelayRuns, &p.QueueUsage, &p.QueueLimit, &p.Foreign, &p.Mark, &since)
	if since != nil {
		p.CountedSince = *since
	}
	return p, err
}

// QueueFills reports whether the server's queue of notifications is so full that it is worth a word.
func (p Pulse) QueueFills() bool { return pgsession.QueueFills(p.QueueUsage, p.QueueLimit) }

// QueueHolder names the session that keeps the server's queue of notifications from being emptied, as far as it can be seen.
func (r *Reader) QueueHolder(ctx context.Context) (holder string, err error) {
	err = r.pool.QueryRow(ctx, pgsession.QueueHolderSQL).Scan(&holder)
	if errors.Is(err, pgx.ErrNoRows) {
		return pgsession.HolderUnknown, nil
	}
	return holder, err
}

// QueueUsage is how full the server's queue of notifications is, from 0 to 1, and from where on wake-ups are left out.
func (r *Reader) QueueUsage(ctx context.Context) (usage, limit float64, err error) {
	if err := r.pool.QueryRow(ctx, `SELECT pg_notification_queue_usage(), events_v2_notify_limit()`).Scan(&usage, &limit); err != nil {
		return 0, 0, fmt.Errorf("read how full the queue of notifications is: %w", err)
	}
	return usage, limit, nil
}
