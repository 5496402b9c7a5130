package inspect

import (
	"context"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

const (
	// MostRead is how many events a list reads, at most, in search of those that its filter matches.
	MostRead = 50_000
	// mostOfCanvas is up to how many events of a canvas are read by the canvas, and not by their ids.
	mostOfCanvas = 10_000
	// mostJudged is of how many events, at most, a list that is restricted to a state finds out the state.
	mostJudged = 10_000
)

// A window is the events of the queue that a list reads: so its cost is bounded by how many these are, and not by how few of them
// the filter matches. It returns the ids of those that match, and the last id that was read if there may be more.
// $1 to $3 are the filter, $4 its attributes, $5 the id after which the window begins, $6 how many events are read, $7
// how many ids are returned, $8 to $10 what alsoSQL compares, $11 how long ago the events were emitted at most, and $12 their priority.
func windowSQL(page, also, order, last string) string {
	return `
WITH page AS MATERIALIZED (SELECT id, canvas_id, module, name, attributes, modifier, ordering_key, unique_key, enqueued_at, priority FROM events_v2 WHERE ` + page + `)
SELECT ARRAY(SELECT id FROM page WHERE ` + filterSQL + ` AND ($4::jsonb IS NULL OR attributes @> $4)` + alsoSQL(8) + `
        AND ($11::interval IS NULL OR enqueued_at >= statement_timestamp() - $11) AND ($12::text = '' OR coalesce(priority::text, 'normal') = $12) AND ` + also + ` ORDER BY ` + order + ` LIMIT $7),
    (SELECT CASE WHEN count(*) = $6 THEN ` + last + ` ELSE 0 END FROM page)`
}

// windows are the statements that read a window: of all events, of those of a handler on a canvas, and of those of a canvas.
type windows struct{ queued, handler, canvas string }

// Ranges of rows, and their order, follow the index events_v2_handler, so that no other way is as cheap.
var (
	oldestFirst = windows{
		windowSQL(`id > $5 ORDER BY id LIMIT $6`, `true`, `id`, `max(id)`),
		windowSQL(`canvas_id = $1 AND (module, name, id) > ($2, $3, $5) AND (module, name, id) <= ($2, $3, 9223372036854775807)
    ORDER BY module, name, id LIMIT $6`, `true`, `id`, `max(id)`),
		windowSQL(`canvas_id = $1 ORDER BY module, name, id LIMIT $6`, `id > $5`, `id`, `max(id)`),
	}
	newestFirst = windows{
		windowSQL(`id < $5 ORDER BY id DESC LIMIT $6`, `true`, `id DESC`, `min(id)`),
		windowSQL(`canvas_id = $1 AND (module, name, id) < ($2, $3, $5) AND (module, name, id) >= ($2, $3, 0)
    ORDER BY module DESC, name DESC, id DESC LIMIT $6`, `true`, `id DESC`, `min(id)`),
		windowSQL(`canvas_id = $1 ORDER BY module, name, id LIMIT $6`, `id < $5`, `id DESC`, `min(id)`),
	}
)

// window is the part of a list found so far.
type window struct {
	ids []eventqueue.EventID
	// next is the id after which the list goes on; 0 at its end.
	next eventqueue.EventID
	// cut reports whether there was more to read.
	cut bool
}

// read reads a window.
func (r *Reader) read(ctx context.Context, sql string, f Filter, after eventqueue.EventID, read, limit int) (w window, err error) {
	err = r.pool.QueryRow(ctx, sql, slices.Concat(f.args(f.hasAttributes(), int64(after), read, limit), f.alsoArgs(), []any{ageOf(f.EmittedWithin), f.Priority})...).Scan(&w.ids, &w.next)
	if w.cut = w.next > 0; len(w.ids) == limit {
		w.next = w.ids[limit-1]
	}
	return w, err
}

// queued returns the ids of at most limit events in the queue that match the filter.
func (r *Reader) queued(ctx context.Context, f Filter, newest bool, after eventqueue.EventID, limit int) (window, error) {
	in := oldestFirst
	if newest {
		in = newestFirst
		if after == 0 {
			after = math.MaxInt64
		}
	}
	switch {
	case f.Canvas == nil:
	case f.Module != "" && f.Name != "":
		return r.read(ctx, in.handler, f, after, r.mostRead, limit)
	default:
		w, err := r.read(ctx, in.canvas, f, after, mostOfCanvas, limit)
		if err != nil || !w.cut {
			return w, err
		}
	}
	return r.read(ctx, in.queued, f, after, r.mostRead, limit)
}

// byID collects the rows of some ids.
func byID[T any](ctx context.Context, r *Reader, scan pgx.RowToFunc[T], sql string, args []any) ([]T, error) {
	rows, err := r.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}
