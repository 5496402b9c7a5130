package inspect

import (
	"context"

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
}

// What a transaction has written has its number, xmin, so that the sum over all rows changes with any of them.
const pulseSQL = `
SELECT relay, concat_ws(' ', relay,
    (SELECT concat(count(*), '/', sum(number)) FROM (` + pgsession.LiveWorkersSQL + `) AS live),
    (SELECT concat(count(*), '/', sum(xmin::text::bigint)) FROM scheduling_rules),
    (SELECT concat(count(*), '/', sum(xmin::text::bigint), '/', max(minute)) FROM event_minutes
     WHERE minute >= (SELECT date_trunc('minute', clock_timestamp() - interval '1 minute', 'UTC'))))
FROM (SELECT ` + pgsession.RelayRunsSQL + ` AS relay) AS relays`

// Pulse reads the pulse.
func (r *Reader) Pulse(ctx context.Context) (p Pulse, err error) {
	err = r.walk(ctx, pulseSQL, nil, func(rows pgx.Rows) (err error) {
		p, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Pulse])
		return err
	})
	return p, err
}
