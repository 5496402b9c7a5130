package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// LogFilter restricts a listing of event_log. An empty field matches everything.
type LogFilter struct {
	Filter
	Status LogStatus
	// Error is a part of the error with which an event failed, and ErrorGroup its group, as operate.ErrorGroup names
	// it. Either is of failed events only.
	Error, ErrorGroup string
	// OlderThan selects events that ended longer ago, and NewerThan those of which that is less long ago; 0: any.
	OlderThan, NewerThan time.Duration
}

// status is the status of what the filter selects; "" is any.
func (f LogFilter) status() LogStatus {
	if f.Status == "" && f.Error+f.ErrorGroup != "" {
		return LogFailed
	}
	return f.Status
}

// byEnd reports whether the newest of what the filter selects are those that ended last. Completed events are in no index by
// their end.
func (f LogFilter) byEnd() bool { return f.status() == LogFailed || f.status() == LogCancelled }

func (f LogFilter) conditions(more ...any) []any {
	return append(f.args(f.hasAttributes(), string(f.status()), f.Error, ageOf(f.OlderThan), ageOf(f.NewerThan)), more...)
}

func ageOf(age time.Duration) *time.Duration {
	if age == 0 {
		return nil
	}
	return &age
}

// A LogPlace is where a page of event_log ends: after an id, and in a list by the end of events after the time of one as well. The
// zero LogPlace is the beginning.
type LogPlace struct {
	ID eventqueue.EventID
	// End is in microseconds since 1970; 0 in a list by id.
	End int64
}

// String is the place as a text, empty for the beginning.
func (p LogPlace) String() string {
	switch {
	case p == LogPlace{}:
		return ""
	case p.End == 0:
		return p.ID.String()
	default:
		return strconv.FormatInt(p.End, 10) + "." + p.ID.String()
	}
}

// ErrNoLogPlace is the error of a text that is no place in event_log.
var ErrNoLogPlace = errors.New("is no place in the list: it is the next of the page before")

// ParseLogPlace reads what String has written. The error is ErrNoLogPlace.
func ParseLogPlace(text string) (p LogPlace, err error) {
	if text == "" {
		return p, nil
	}
	end, id, byEnd := strings.Cut(text, ".")
	if !byEnd {
		id = end
	} else if p.End, err = strconv.ParseInt(end, 10, 64); err != nil || p.End == 0 || max(p.End, -p.End) > math.MaxInt64/16 {
		return LogPlace{}, ErrNoLogPlace
	}
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n <= 0 {
		return LogPlace{}, ErrNoLogPlace
	}
	p.ID = eventqueue.EventID(n)
	return p, nil
}

// fits reports whether the place is one of a list in this order.
func (p LogPlace) fits(byEnd bool) bool { return p == LogPlace{} || byEnd == (p.End != 0) }

// arguments are $9 and $10: where a page begins. The beginning is after all that there is, or before.
func (p LogPlace) arguments(backwards bool) (end *time.Time, id int64) {
	if p.End != 0 {
		end = new(time.UnixMicro(p.End))
	}
	if p.ID == 0 && backwards {
		return end, math.MaxInt64
	}
	return end, int64(p.ID)
}

const (
	endedWithinSQL = `created_at >= coalesce(statement_timestamp() - $8::interval, '-infinity') AND created_at <= coalesce(statement_timestamp() - $7::interval, 'infinity')`

	// loggedSQL is whether a LogFilter selects an entry: $1 to $8. What alsoSQL compares comes beside it.
	loggedSQL = filterSQL + ` AND ($4::jsonb IS NULL OR attributes @> $4) AND ($5::text = '' OR status::text = $5)
    AND ($6::text = '' OR strpos(last_error, $6) > 0) AND ` + endedWithinSQL

	// unsuccessfulSQL has what the indexes of entries that have not completed need: so these are read by them, and no other is.
	unsuccessfulSQL = `status <> 'COMPLETED' AND status = $5::text::event_log_status`
	ofHandlerSQL    = `canvas_id = $1 AND module = $2 AND name = $3 AND `

	beforeEndSQL = `(created_at, id) < (coalesce($9::timestamptz, 'infinity'), $10::bigint)`
	byIDSQL      = `$9::timestamptz IS NULL AND id `
	newestSQL    = `created_at DESC, id DESC`

	loggedColumns = `SELECT id, canvas_id, module, name, attributes, modifier, ordering_key, unique_key, status, last_error, created_at FROM event_log WHERE `
)

// logPageSQL reads a part of event_log and returns of the entries that a filter selects ids, ends and, if $12, errors; then how many were
// read, and the last of them. $1 to $8 are the filter, $9 and $10 the place where the page begins, $11 how many entries are read, $13 how many
// are returned (NULL: all), $14 how much of an error, and $15 to $17 what alsoSQL compares. So its cost is bounded by $11, and not by how few of them the filter selects.
func logPageSQL(where, also, order, reverse string) string {
	selected := ` FROM page WHERE ` + loggedSQL + alsoSQL(15) + also + ` ORDER BY ` + order + ` LIMIT $13)`
	last := ` FROM page ORDER BY ` + reverse + ` LIMIT 1)`
	return `
WITH page AS MATERIALIZED (` + loggedColumns + where + ` LIMIT $11)
SELECT ARRAY(SELECT id` + selected + `,
    ARRAY(SELECT ` + endedSQL + selected + `,
    CASE WHEN $12 THEN ARRAY(SELECT left(coalesce(last_error, ''), $14)` + selected + ` END,
    (SELECT count(*) FROM page), coalesce((SELECT id` + last + `, 0), (SELECT ` + endedSQL + last
}

var (
	oldestByIDSQL     = logPageSQL(byIDSQL+`> $10 ORDER BY id`, ``, `id`, `id DESC`)
	oldestOfStatusSQL = logPageSQL(unsuccessfulSQL+` AND `+byIDSQL+`> $10 ORDER BY id`, ``, `id`, `id DESC`)
	newestByIDSQL     = logPageSQL(byIDSQL+`< $10 ORDER BY id DESC`, ``, `id DESC`, `id`)
	newestByEndSQL    = newestEndedSQL(unsuccessfulSQL)
	newestOfHandler   = newestEndedSQL(ofHandlerSQL + unsuccessfulSQL)
	// The entries of a canvas are by its handlers: one with few of them is read whole.
	newestOfCanvas = logPageSQL(`canvas_id = $1 AND status <> 'COMPLETED'`, ` AND `+beforeEndSQL, newestSQL, `created_at, id`)
)

func newestEndedSQL(where string) string {
	return logPageSQL(where+` AND `+endedWithinSQL+` AND `+beforeEndSQL+` ORDER BY `+newestSQL, ``, newestSQL, `created_at, id`)
}

// logPage is what a statement of logPageSQL returns.
type logPage struct {
	ids    []eventqueue.EventID
	places []LogPlace
	read   int
	last   LogPlace
}

// logReadAtOnce is how many entries one statement reads in search of those that a filter selects.
const logReadAtOnce = 10_000

func (r *Reader) readLog(ctx context.Context, sql string, f LogFilter, newest bool, after LogPlace, read, limit int) (p logPage, err error) {
	end, id := after.arguments(newest)
	var most *int
	if f.ErrorGroup == "" {
		most = &limit
	}
	var ids []eventqueue.EventID
	var ends []time.Time
	var failures []string
	var last *time.Time
	args := append(f.conditions(end, id, read, f.ErrorGroup != "", most, operate.ErrorGroupReads), f.alsoArgs()...)
	if err := r.walkWith(ctx, inOrderSQL, sql, args, func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&ids, &ends, &failures, &p.read, &p.last.ID, &last}, func() error { return nil })
		return err
	}); err != nil {
		return p, err
	}
	byEnd := newest && f.byEnd()
	if last != nil {
		p.last = placeIn(byEnd, p.last.ID, *last)
	}
	for i, id := range ids {
		if len(p.ids) < limit && (f.ErrorGroup == "" || operate.ErrorGroup(failures[i]) == f.ErrorGroup) {
			p.ids, p.places = append(p.ids, id), append(p.places, placeIn(byEnd, id, ends[i]))
		}
	}
	return p, nil
}

func placeIn(byEnd bool, id eventqueue.EventID, ended time.Time) LogPlace {
	if !byEnd {
		return LogPlace{ID: id}
	}
	return LogPlace{id, cmp.Or(ended.UnixMicro(), 1)} // 0 is of lists by id
}

// Log returns at most limit entries of event_log after a place: by their ids or, with newest, the newest first, which are those
// that ended last if the filter selects failed or cancelled events, and otherwise those with the highest ids.
//
// next is the place with which the list goes on, and zero at its end. It goes on after fewer than limit entries, or none, where
// the filter matches few: Log reads at most MostRead entries. A place of another order is ErrNoLogPlace, and a Priority an error.
func (r *Reader) Log(ctx context.Context, f LogFilter, newest bool, after LogPlace, limit int) (entries []LogEntry, next LogPlace, err error) {
	if !after.fits(newest && f.byEnd()) {
		return nil, next, ErrNoLogPlace
	}
	if f.Priority != "" {
		return nil, next, fmt.Errorf("the history does not have priorities: leave out the priority %s", f.Priority)
	}
	found, next, err := r.searchLog(ctx, f, newest, after, limit)
	if err != nil || len(found) == 0 {
		return nil, next, err
	}
	entries, err = r.entries(ctx, found)
	return entries, next, err
}

func (r *Reader) searchLog(ctx context.Context, f LogFilter, newest bool, after LogPlace, limit int) (found []eventqueue.EventID, next LogPlace, err error) {
	sql := newestByIDSQL
	switch {
	case !newest && f.byEnd():
		sql = oldestOfStatusSQL
	case !newest:
		sql = oldestByIDSQL
	case f.byEnd() && f.Canvas != nil && f.Module != "" && f.Name != "":
		sql = newestOfHandler
	case f.byEnd() && f.Canvas != nil:
		page, err := r.readLog(ctx, newestOfCanvas, f, newest, after, mostOfCanvas, limit)
		if err != nil || page.read < mostOfCanvas {
			return page.ids, page.after(limit), err
		}
		fallthrough
	case f.byEnd():
		sql = newestByEndSQL
	}
	for read := 0; ; {
		n := min(logReadAtOnce, r.mostRead-read)
		page, err := r.readLog(ctx, sql, f, newest, after, n, limit-len(found))
		if err != nil {
			return nil, next, err
		}
		if next = page.after(limit - len(found)); next == (LogPlace{}) && page.read == n {
			next = page.last
		}
		found, after = append(found, page.ids...), next
		if read += n; len(found) == limit || page.read < n || read >= r.mostRead {
			return found, next, nil
		}
	}
}

// after is where the list goes on if the page has as many as were wanted.
func (p logPage) after(wanted int) (place LogPlace) {
	if len(p.ids) == wanted && wanted > 0 {
		place = p.places[wanted-1]
	}
	return place
}
