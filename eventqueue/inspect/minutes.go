package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/minutes"
)

// Resolution is how long the times are that counts are about.
type Resolution string

// The resolutions. Minutes are retained for 14 days, and hours for a year.
const (
	PerMinute Resolution = "minute"
	PerHour   Resolution = "hour"
)

// Minute has the counts of one handler on one canvas in a minute, an hour or another time. Those of
// a zero Canvas are of further canvases, and those of a zero Scope of further handlers, where a
// minute had too many to count each.
type Minute struct {
	// Begins is the beginning of the time, by the database's clock.
	Begins time.Time
	minutes.Counts
	// Pending is how many events had not ended at its end, of an hour the highest number of its
	// minutes; nil: they were not counted. Of many events it is an estimate. A relay counts once a minute, and no handler again
	// that has no event while nothing happens to it.
	Pending *int64
	// OldestDue is for how long the oldest due event that no worker runs had been due then, of an
	// hour the longest time; nil: there was none.
	OldestDue *time.Duration
	// CountedAt is, of a sum, the beginning of the minute whose count Pending is; zero without Pending.
	CountedAt time.Time
	// Unsummed reports that there are counts whose sums are not known. Only Totals returns such minutes.
	Unsummed bool
	// AsOf is when it was read, by the database's clock.
	AsOf time.Time
}

// The beginning of the time that is asked for is that of the minute, or hour, in which it lies. It is a subquery, since
// no index is searched for what a volatile function returns.
const (
	minutesSQL = `
SELECT minute, canvas_id, module, name, emitted, completed, failed, retried, cancelled, waits, runs, pending, oldest_due, clock_timestamp()
FROM event_minutes
WHERE minute >= (SELECT date_trunc('minute', clock_timestamp() - $4::interval, 'UTC')) AND ` + filterSQL + `
ORDER BY minute, canvas_id, module, name`

	// The latest hours consist of minutes that have not been summarized.
	hoursSQL = `
SELECT hour, canvas_id, module, name, emitted, completed, failed, retried, cancelled, waits, runs, pending, oldest_due, clock_timestamp()
FROM event_hours
WHERE hour >= (SELECT date_trunc('hour', clock_timestamp() - $4::interval, 'UTC')) AND ` + filterSQL + `
UNION ALL
SELECT date_trunc('hour', minute, 'UTC'), canvas_id, module, name, emitted, completed, failed, retried, cancelled, waits, runs, pending, oldest_due, clock_timestamp()
FROM event_minutes
WHERE minute >= (SELECT greatest(date_trunc('hour', clock_timestamp() - $4::interval, 'UTC'),
          coalesce((SELECT hour + interval '1 hour' FROM event_hours ORDER BY hour DESC LIMIT 1), '-infinity')))
  AND ` + filterSQL + `
ORDER BY 1, 2, 3, 4`
)

// Minutes returns the counts of the time since, by its beginning, canvas, module and name. Its cost
// grows with the number of rows there, and not with that of the events.
func (r *Reader) Minutes(ctx context.Context, filter Filter, since time.Duration, resolution Resolution) ([]Minute, error) {
	sql := minutesSQL
	if resolution == PerHour {
		sql = hoursSQL
	}
	minutes, err := walked(ctx, r, scanMinute, sql, filter.args(since)...)
	if err != nil {
		return nil, err
	}
	return mergeNeighbours(minutes), nil
}

func scanMinute(row pgx.CollectableRow) (m Minute, err error) {
	err = row.Scan(&m.Begins, (*[16]byte)(&m.Canvas), &m.Module, &m.Name, &m.Emitted, &m.Completed, &m.Failed, &m.Retried, &m.Cancelled,
		(*[]int64)(&m.Wait), (*[]int64)(&m.Run), &m.Pending, &m.OldestDue, &m.AsOf)
	return m, err
}

// mergeNeighbours merges rows of the same time and scope that follow each other.
func mergeNeighbours(minutes []Minute) []Minute {
	merged := minutes[:0]
	for i := range minutes {
		if last := len(merged) - 1; last >= 0 && merged[last].Begins.Equal(minutes[i].Begins) && merged[last].Scope == minutes[i].Scope {
			merged[last].Merge(&minutes[i].Counts)
			merged[last].Pending = higher(merged[last].Pending, minutes[i].Pending)
			merged[last].OldestDue = higher(merged[last].OldestDue, minutes[i].OldestDue)
			continue
		}
		merged = append(merged, minutes[i])
	}
	return merged
}

func higher[T cmp.Ordered](a, b *T) *T {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// recent is how old a count of what is pending may be to hold for now: cron counts each minute, and
// of more handlers than it visits in one, each every few minutes.
const recent = 3 * time.Minute

// holds reports whether what is pending of a sum holds for now, after what was counted in a minute m: 0 holds until
// something is counted, since a relay does not count again where nothing happens.
func (sum *Minute) holds(m *Minute) bool {
	return m.AsOf.Sub(sum.CountedAt) < recent+time.Minute || sum.Pending != nil && *sum.Pending == 0 && !sum.CountedAt.Before(m.Begins)
}

// SumMinutes sums up the counts of each scope, which are in the order of time, and takes what is pending from the last of its minutes that
// has a count of it: nil if that is older than three minutes, unless it is 0 and nothing was counted since. The sums are
// in the order of the scopes, and begin with the first of their minutes.
func SumMinutes(rows []Minute) []Minute {
	sums := map[eventqueue.Scope]*Minute{}
	for i := range rows {
		m := &rows[i]
		sum := sums[m.Scope]
		if sum == nil {
			sum = &Minute{Begins: m.Begins, AsOf: m.AsOf, Counts: minutes.Counts{Scope: m.Scope}}
			sums[m.Scope] = sum
		}
		sum.Merge(&m.Counts)
		if m.Pending != nil {
			sum.Pending, sum.OldestDue, sum.CountedAt = m.Pending, m.OldestDue, m.Begins
		}
		if !sum.holds(m) {
			sum.Pending, sum.OldestDue, sum.CountedAt = nil, nil, time.Time{}
		}
	}
	list := make([]Minute, 0, len(sums))
	for _, sum := range sums {
		list = append(list, *sum)
	}
	slices.SortFunc(list, func(a, b Minute) int {
		return cmp.Or(slices.Compare(a.Canvas[:], b.Canvas[:]), cmp.Compare(a.Module, b.Module), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// HandlerPending has the pending events of a handler, on all canvases.
type HandlerPending struct {
	Module, Name string
	// Pending is how many of its events had not ended when they were counted last.
	Pending int64
	// OldestDue is for how long its oldest due event that no worker runs had been due then; 0: there was none.
	OldestDue time.Duration
}

// The last count of each scope, if it is no older than that of SumMinutes may be. It is read by its index, as by Totals.
const handlersPendingSQL = `
SELECT module, name, sum(pending)::bigint, coalesce(max(oldest_due), interval '0')
FROM (
    SELECT DISTINCT ON (canvas_id, module, name) module, name, pending, oldest_due
    FROM event_minutes
    WHERE minute >= date_trunc('minute', now() - $1::interval, 'UTC') AND pending IS NOT NULL
    ORDER BY canvas_id, module, name, minute DESC
) AS last
GROUP BY module, name
ORDER BY sum(pending) DESC, module, name`

// HandlersPending returns what is pending of each handler, as a relay has counted it within the last minutes, the most
// first. Its cost grows with the number of rows of counts there, and not with that of the events.
func (r *Reader) HandlersPending(ctx context.Context) ([]HandlerPending, error) {
	rows, err := r.pool.Query(ctx, handlersPendingSQL, recent)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (h HandlerPending, err error) {
		err = row.Scan(&h.Module, &h.Name, &h.Pending, &h.OldestDue)
		return h, err
	})
}
