package pgstore

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue/ratelimit"
	"eventsv2/eventqueue/worker"
	"eventsv2/internal/mayrun"
)

// A take asks about scopes and counts what they get, under row locks:
//
//   - applied are the limits of the scopes that are asked for, as the statement's
//     snapshot has them, so that a change of a limit holds from the next take on.
//   - locked are their counters, locked in the order of their key, so that no two
//     takes wait for each other (I15), and as they are when the lock is there.
//   - clock is read after that: what is granted last has the last time.
//   - ready are the scopes whose limits are all locked; nothing is granted to, or
//     counted for, the others.
//   - fits is what a handler's limit lets through, and granted what of that the canvas'
//     limit lets through, in the order in which the scopes were given. So an event
//     passes both, and one that either refuses is counted by neither.
//   - Those that were put off before are granted first. Others leave the room that those
//     need that were put off to these windows and have yet to come (held), and those that were put off
//     the room of older ones of their handler (ahead).
//   - counted writes the sums, and which limit has granted them: the highest one of a window
//     bounds the window, whatever the limit is changed to.
//
// The counters are found by their key once more, not by their place: the version that
// was locked may be newer than the snapshot.
var (
	takeRateSQL = `
WITH asked AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
        WITH ORDINALITY AS asked (canvas_id, module, name, want, ran, put_off, first, first_new, place)
), applied AS MATERIALIZED (
    SELECT DISTINCT l.canvas_id, l.module, l.name, l.per_minute, l.per_day, l.mode
    FROM asked CROSS JOIN LATERAL (
        SELECT * FROM rate_limits l
        WHERE l.canvas_id = asked.canvas_id AND l.module IN ('', asked.module) AND l.name IN ('', asked.name)
        OFFSET 0) AS l
), locked AS MATERIALIZED (
    SELECT c.* FROM rate_counters c
    WHERE (c.canvas_id, c.module, c.name) IN (SELECT canvas_id, module, name FROM applied)`
	takeRateRestSQL = `
), clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now FROM (SELECT count(*) FROM locked) AS held
), ready AS MATERIALIZED (
    SELECT * FROM asked
    WHERE NOT EXISTS (
        SELECT FROM applied a
        WHERE a.canvas_id = asked.canvas_id AND a.module IN ('', asked.module) AND a.name IN ('', asked.name)
          AND (a.canvas_id, a.module, a.name) NOT IN (SELECT canvas_id, module, name FROM locked))
), rolled AS MATERIALIZED (
    SELECT l.*, r.*, c.waiting AS waiting_before
    FROM clock CROSS JOIN applied l JOIN locked c USING (canvas_id, module, name) CROSS JOIN LATERAL (` + mayrun.RolledRateSQL + `) AS r
), states AS MATERIALIZED (
    SELECT rolled.*, greatest(least(per_minute - minute_used - ran, per_day - day_used - ran), 0) AS room, ran, opens,
        CASE WHEN comes AND waiting_before > 0 AND clock.now < opens THEN
            CASE module WHEN '' THEN ` + heldRateSQL("") + ` ELSE ` + heldRateSQL(" AND e.module = rolled.module AND e.name = rolled.name") + ` END
        ELSE 0 END AS held
    FROM clock CROSS JOIN rolled CROSS JOIN LATERAL (
        SELECT coalesce(sum(ready.ran), 0)::bigint AS ran, coalesce(bool_or(ready.want > ready.put_off), false) AS comes FROM ready
        WHERE ready.canvas_id = rolled.canvas_id AND rolled.module IN ('', ready.module) AND rolled.name IN ('', ready.name)) AS runs
    CROSS JOIN LATERAL (
        SELECT CASE WHEN per_minute IS NULL THEN day_at + interval '15 minutes' ELSE minute_at + interval '40 seconds' END AS opens) AS times
), waiting AS MATERIALIZED (
    SELECT asked.*, CASE WHEN put_off > 0 THEN (
            SELECT coalesce(max(` + aheadRateSQL + `), 0) FROM clock CROSS JOIN states s
            WHERE s.canvas_id = asked.canvas_id AND s.module IN ('', asked.module) AND s.name IN ('', asked.name) AND s.waiting_before > 0 AND clock.now < s.opens)
        ELSE 0 END AS ahead
    FROM ready AS asked
), fitting AS MATERIALIZED (
    SELECT asked.*, CASE WHEN states.room IS NULL THEN put_off ELSE least(put_off, greatest(states.room - ahead, 0)) END AS fits_again,
        CASE WHEN states.room IS NULL THEN want - put_off ELSE least(want - put_off, greatest(states.room - put_off - held, 0)) END AS fits_new
    FROM waiting AS asked LEFT JOIN states USING (canvas_id, module, name)
), granting AS MATERIALIZED (
    SELECT fitting.*, fits_again + fits_new AS fits,
        (coalesce(greatest(least(fits_again, room - ahead - coalesce(sum(fits_again) OVER before, 0)), 0), fits_again)
        + coalesce(greatest(least(fits_new, room - held - sum(fits_again) OVER (PARTITION BY canvas_id) - coalesce(sum(fits_new) OVER before, 0)), 0), fits_new))::bigint AS granted
    FROM fitting LEFT JOIN (SELECT canvas_id, room, held FROM states WHERE module = '') AS whole USING (canvas_id)
    WINDOW before AS (PARTITION BY canvas_id ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), sums AS MATERIALIZED (
    SELECT s.canvas_id, s.module, s.name, s.minute_at, s.day_at, s.minute_used + s.ran + granted AS minute_used,
        s.day_used + s.ran + granted AS day_used,
        greatest(s.minute_most, coalesce(s.per_minute, ` + noRateSQL + `)) AS minute_most,
        greatest(s.day_most, coalesce(s.per_day, ` + noRateSQL + `)) AS day_most, s.waiting, s.per_minute, s.per_day, s.mode, refused
    FROM states s CROSS JOIN LATERAL (
        SELECT coalesce(sum(g.granted), 0)::bigint AS granted,
            coalesce(sum(CASE s.module WHEN '' THEN g.fits - g.granted ELSE g.want - g.fits END), 0)::bigint AS refused
        FROM granting g
        WHERE g.canvas_id = s.canvas_id AND s.module IN ('', g.module) AND s.name IN ('', g.name)) AS got
), counted AS (
    UPDATE rate_counters c
    SET minute_at = sums.minute_at, minute_count = sums.minute_used, day_at = sums.day_at, day_count = sums.day_used,
        minute_most = sums.minute_most, day_most = sums.day_most, waiting = sums.waiting + sums.refused
    FROM sums
    WHERE (c.canvas_id, c.module, c.name) = (sums.canvas_id, sums.module, sums.name)
)
SELECT clock.now, g.place IS NULL AS busy, coalesce(g.granted, 0),
    CASE WHEN g.granted < g.put_off THEN ` + olderRateSQL("g.first") + ` ELSE -1 END,
    CASE WHEN g.granted < g.want AND g.want > g.put_off THEN ` + olderRateSQL("g.first_new") + ` ELSE -1 END,
    CASE WHEN g.granted < g.fits THEN ` + othersRateSQL + ` END,
    w.per_minute, w.per_day, w.mode, w.minute_used, w.day_used, w.minute_at + interval '1 minute' - clock.now,
    w.day_at + interval '1 day' - clock.now, w.waiting + coalesce(sum(g.fits - g.granted) OVER before, 0)::bigint, g.fits - g.granted,
    h.per_minute, h.per_day, h.mode, h.minute_used, h.day_used, h.minute_at + interval '1 minute' - clock.now,
    h.day_at + interval '1 day' - clock.now, h.waiting, g.want - g.fits
FROM clock CROSS JOIN asked
LEFT JOIN granting g USING (place)
LEFT JOIN sums w ON w.canvas_id = g.canvas_id AND w.module = ''
LEFT JOIN sums h ON (h.canvas_id, h.module, h.name) = (g.canvas_id, g.module, g.name) AND h.module <> ''
WINDOW before AS (PARTITION BY asked.canvas_id ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
ORDER BY place`
)

// heldRateSQL counts the events that were put off to the present windows of a limit and have yet to
// come: others that come for the first time leave them their room, in the part of the window in which
// they come. It reads no more than 1,000 rows.
func heldRateSQL(of string) string {
	return `(
        SELECT count(*) FILTER (WHERE due) FROM (
            SELECT e.locked_at IS NULL AND e.limited_attempt = ` + limitedAttemptSQL + ` AS due FROM events_v2 e
            WHERE e.canvas_id = rolled.canvas_id` + of + ` AND e.delay_until > e.enqueued_at AND e.notified_at IS NOT NULL
              AND e.delay_until >= CASE WHEN per_minute IS NULL THEN day_at ELSE minute_at END AND e.delay_until < opens
            LIMIT 1000) AS near)`
}

// olderRateSQL counts the older events of a handler that a limit has put off, or that a worker holds.
// It reads no more than 1,000 rows; -1: there are more.
func olderRateSQL(id string) string {
	return `(
        SELECT CASE WHEN count(*) < 1000 THEN count(*) FILTER (WHERE waits) ELSE -1 END FROM (
            SELECT e.locked_at IS NOT NULL OR e.limited_attempt = ` + limitedAttemptSQL + ` AS waits FROM events_v2 e
            WHERE e.canvas_id = g.canvas_id AND e.module = g.module AND e.name = g.name AND e.id < ` + id + ` LIMIT 1000) AS older)`
}

// aheadRateSQL counts the older events of a handler that were put off to the present windows of a limit and have yet to come: others
// that were put off leave them their room, too. It reads no more than 1,000 rows.
const aheadRateSQL = `(
        SELECT count(*) FILTER (WHERE due) FROM (
            SELECT e.id < asked.first AND e.locked_at IS NULL AND e.limited_attempt = ` + limitedAttemptSQL + ` AS due FROM events_v2 e
            WHERE e.canvas_id = asked.canvas_id AND e.module = asked.module AND e.name = asked.name AND e.delay_until > e.enqueued_at AND e.notified_at IS NOT NULL
              AND e.delay_until >= CASE WHEN s.per_minute IS NULL THEN s.day_at ELSE s.minute_at END AND e.delay_until < s.opens
            LIMIT 1000) AS near)`

// othersRateSQL counts the waiting events of nine other handlers of a canvas that have events, up to ratelimit.ManyWait of each.
var othersRateSQL = `ARRAY(
        WITH RECURSIVE handlers (module, name, n) AS (
            SELECT '', '', 0
            UNION ALL
            SELECT next.module, next.name, n + 1 FROM handlers CROSS JOIN LATERAL (
                SELECT e.module, e.name FROM events_v2 e
                WHERE e.canvas_id = g.canvas_id AND (e.canvas_id, e.module, e.name) > (g.canvas_id, handlers.module, handlers.name)
                ORDER BY e.canvas_id, e.module, e.name LIMIT 1) AS next
            WHERE n < 10
        )
        SELECT (SELECT count(*) FILTER (WHERE waits) FROM (
            SELECT e.locked_at IS NOT NULL OR e.limited_attempt = ` + limitedAttemptSQL + ` AS waits FROM events_v2 e
            WHERE e.canvas_id = g.canvas_id AND e.module = handlers.module AND e.name = handlers.name LIMIT ` + strconv.Itoa(ratelimit.ManyWait) + `) AS near)
        FROM handlers WHERE n > 0 AND (module, name) <> (g.module, g.name))`

// noRateSQL is a limit that no count reaches.
const noRateSQL = `9223372036854775807`

// takeRate is the statement in the form that waits briefly for locked counters, and in
// the form that skips them (see lockwait.go).
var takeRate = forms{
	waits: takeRateSQL + ` AND ` + lockWaitSQL + `
    ORDER BY c.canvas_id, c.module, c.name
    FOR NO KEY UPDATE` + takeRateRestSQL,
	skips: takeRateSQL + `
    ORDER BY c.canvas_id, c.module, c.name
    FOR NO KEY UPDATE SKIP LOCKED` + takeRateRestSQL,
}

// TakeRate implements worker.RateTaker. Counters are locked often and briefly, so a wait
// that took too long makes this call skip, and not the next one.
func (s *Store) TakeRate(ctx context.Context, asks []worker.RateAsk) (answers []ratelimit.Answer, err error) {
	if len(asks) == 0 {
		return nil, nil
	}
	take := query{forms: takeRate, arguments: rateArgs(asks), read: func(rows pgx.Rows) error {
		answers, err = pgx.CollectRows(rows, scanRateAnswer)
		return err
	}}
	if err = s.run(ctx, waiting, take); lockWaitExpired(err) {
		err = s.run(ctx, skipping, take)
	}
	if err != nil {
		return nil, err
	}
	return answers, nil
}

func rateArgs(asks []worker.RateAsk) []any {
	canvases, modules, names := make([][16]byte, len(asks)), make([]string, len(asks)), make([]string, len(asks))
	wants, rans, putOff := make([]int64, len(asks)), make([]int64, len(asks)), make([]int64, len(asks))
	first, firstNew := make([]int64, len(asks)), make([]int64, len(asks))
	for i, ask := range asks {
		canvases[i], modules[i], names[i] = ask.Canvas, ask.Module, ask.Name
		wants[i], rans[i], putOff[i] = int64(ask.Want), int64(ask.Ran), int64(ask.PutOff)
		first[i], firstNew[i] = int64(ask.First), int64(ask.FirstNew)
	}
	return []any{canvases, modules, names, wants, rans, putOff, first, firstNew}
}

func scanRateAnswer(row pgx.CollectableRow) (a ratelimit.Answer, err error) {
	var whole, handler rateColumns
	err = row.Scan(append(append([]any{&a.At, &a.Busy, &a.Granted, &a.OlderPutOff, &a.OlderNew, &a.Others}, whole.columns()...), handler.columns()...)...)
	a.Canvas, a.Handler = whole.state(), handler.state()
	return a, err
}

// rateColumns are a limit in an answer; all of them are NULL when there is none.
type rateColumns struct {
	perMinute, perDay            *int
	mode                         *ratelimit.Mode
	minuteUsed, dayUsed, waiting *int64
	minuteLeft, dayLeft          *time.Duration
	refused                      *int
}

func (c *rateColumns) columns() []any {
	return []any{&c.perMinute, &c.perDay, &c.mode, &c.minuteUsed, &c.dayUsed, &c.minuteLeft, &c.dayLeft, &c.waiting, &c.refused}
}

func (c *rateColumns) state() *ratelimit.State {
	if c.mode == nil {
		return nil
	}
	s := &ratelimit.State{Mode: *c.mode, Refused: *c.refused, Windows: ratelimit.Windows{
		MinuteUsed: *c.minuteUsed, DayUsed: *c.dayUsed, MinuteLeft: *c.minuteLeft, DayLeft: *c.dayLeft, Waiting: *c.waiting}}
	if c.perMinute != nil {
		s.PerMinute = *c.perMinute
	}
	if c.perDay != nil {
		s.PerDay = *c.perDay
	}
	return s
}
