package inspect

import (
	"context"

	"eventsv2/eventqueue/pgsession"
)

// Pulse reports whether the data behind an overview has changed, at the cost of one small statement.
type Pulse struct {
	// RelayRuns reports whether a relay is connected to the database.
	RelayRuns bool
	// Mark changes when counts are handed in or what is pending was counted, when a worker or a relay has come
	// or gone, or when a rule has changed.
	Mark string
}

// What a transaction has written has its number, xmin, so that the sum over all rows changes with any of them. The two
// minutes are compared for equality, so that the planner reads them by their index whatever else it believes.
const pulseSQL = `
SELECT relay, concat_ws(' ', relay,
    (SELECT concat(count(*), '/', sum(number)) FROM (` + pgsession.LiveWorkersSQL + `) AS live),
    (SELECT concat(count(*), '/', sum(xmin::text::bigint)) FROM scheduling_rules),
    (SELECT concat(sum(counted.rows), '/', sum(counted.changes), '/', max(recent.minute) FILTER (WHERE counted.rows > 0))
     FROM (SELECT date_trunc('minute', clock_timestamp() - ago * interval '1 minute', 'UTC') AS minute FROM generate_series(0, 1) AS ago OFFSET 0) AS recent
     CROSS JOIN LATERAL (SELECT count(*) AS rows, sum(xmin::text::bigint) AS changes FROM event_minutes m WHERE m.minute = recent.minute) AS counted))
FROM (SELECT ` + pgsession.RelayRunsSQL + ` AS relay) AS relays`

// Pulse reads the pulse.
func (r *Reader) Pulse(ctx context.Context) (p Pulse, err error) {
	err = r.pool.QueryRow(ctx, pulseSQL).Scan(&p.RelayRuns, &p.Mark)
	return p, err
}
