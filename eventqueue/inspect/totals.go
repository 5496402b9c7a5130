package inspect

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/minutes"
)

// The planner knows what now() is, and so how few of all rows are newer: it reads these by their index.
//
// A histogram of a minute is the sum of those of its rows, element by element. Each row is read once for the sums of
// all canvases, and those of the canvases once more for theirs.
var totalsSQL = `
SELECT NULL::uuid AS part, m.minute, ` + totalSumsSQL() + `, clock_timestamp()
FROM event_minutes m WHERE $1 AND m.minute >= date_trunc('minute', now() - $3::interval, 'UTC')
GROUP BY m.minute
UNION ALL
SELECT m.canvas_id, m.minute, ` + totalSumsSQL() + `, clock_timestamp()
FROM event_minutes m WHERE m.canvas_id = ANY ($2) AND m.minute >= date_trunc('minute', now() - $3::interval, 'UTC')
GROUP BY m.canvas_id, m.minute
ORDER BY 2`

// totalSumsSQL are the sums of the rows of a minute. Sums of single elements cost a tenth of grouping by element, and sums
// of floating-point numbers, which are exact up to 2^53, less than those of bigint, which are numeric.
func totalSumsSQL() string {
	elements := make([]string, minutes.Buckets)
	for i := range elements {
		elements[i] = fmt.Sprintf("coalesce(sum(m.waits[%d]::float8), 0)::bigint", i+1)
	}
	return `sum(m.emitted)::bigint, sum(m.completed)::bigint, sum(m.failed)::bigint, sum(m.retried)::bigint, sum(m.cancelled)::bigint,
    ARRAY[` + strings.Join(elements, ", ") + `], sum(m.pending)::bigint, max(m.oldest_due)`
}

// Totals returns the sums over all handlers for each minute of the time since that has counts, with a zero
// Scope and without Run: those of each of the canvases, and with all those of all canvases, as those of the
// zero Canvas. They are read at one moment, with one statement. Its cost grows with the number of rows of counts
// there, and not with that of the events.
func (r *Reader) Totals(ctx context.Context, all bool, canvases []eventqueue.CanvasID, since time.Duration) (map[eventqueue.CanvasID][]Minute, error) {
	totals := map[eventqueue.CanvasID][]Minute{}
	rows, err := r.pool.Query(ctx, totalsSQL, all, uuids(canvases), since)
	if err != nil {
		return nil, err
	}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (none struct{}, err error) {
		var m Minute
		var part *[16]byte
		err = row.Scan(&part, &m.Begins, &m.Emitted, &m.Completed, &m.Failed, &m.Retried, &m.Cancelled, (*[]int64)(&m.Wait), &m.Pending, &m.OldestDue, &m.AsOf)
		var of eventqueue.CanvasID
		if part != nil {
			of = *part
		}
		m.Wait = m.Wait.Trimmed()
		totals[of] = append(totals[of], m)
		return none, err
	})
	return totals, err
}
