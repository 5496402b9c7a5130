package pgstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/mayrun"
	"eventsv2/internal/refusal"
)

// A locked row is skipped: it is being claimed, completed or notified, and if that
// fails the relay finds it by its age.
const markPendingSQL = `
WITH marked AS (
    UPDATE events_v2 e SET notified_at = NULL
    FROM (SELECT id FROM events_v2 WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE SKIP LOCKED) AS free
    WHERE e.id = free.id
    RETURNING e.id
)
SELECT events_v2_notify(channel, '') FROM unnest($2::text[]) AS channel WHERE EXISTS (SELECT FROM marked)`

// markOrHeldSQL is markPendingSQL, and returns the rows that it has skipped. Each column of a row without a table is
// evaluated, so that woken is, also where nothing was skipped.
const markOrHeldSQL = `
WITH free AS MATERIALIZED (
    SELECT id FROM events_v2 WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE SKIP LOCKED
), marked AS (
    UPDATE events_v2 e SET notified_at = NULL FROM free WHERE e.id = free.id
    RETURNING e.id
), woken AS MATERIALIZED (
    SELECT events_v2_notify(channel, '') FROM unnest($2::text[]) AS channel WHERE EXISTS (SELECT FROM marked)
)
SELECT (SELECT count(*) FROM woken), ARRAY(
    SELECT e.id FROM events_v2 e WHERE e.id = ANY ($1::bigint[]) AND NOT EXISTS (SELECT FROM free WHERE free.id = e.id))`

// MarkPending implements eventqueue.PendingStore.
func (s *Store) MarkPending(ctx context.Context, ids []eventqueue.EventID) error {
	return s.markPending(ctx, ids, s.wokenBy(eventqueue.NotifyModeLater, nil))
}

func (s *Store) markPending(ctx context.Context, ids []eventqueue.EventID, channels []string) error {
	return around(&s.refused, ids, func(ids []eventqueue.EventID) error {
		_, err := s.pool.Exec(ctx, markPendingSQL, int64s(ids), channels)
		return err
	})
}

// MarkPendingOrHeld implements lostanswer.Marker.
func (s *Store) MarkPendingOrHeld(ctx context.Context, ids []eventqueue.EventID) (held []eventqueue.EventID, err error) {
	err = around(&s.refused, ids, func(ids []eventqueue.EventID) error {
		var some []eventqueue.EventID
		err := s.pool.QueryRow(ctx, markOrHeldSQL, int64s(ids), s.wokenBy(eventqueue.NotifyModeLater, nil)).Scan(nil, &some)
		if err == nil {
			held = append(held, some...)
		}
		return err
	})
	return held, err
}

// LeavePending implements maintenance.RelayStore.
func (s *Store) LeavePending(ctx context.Context, ids []eventqueue.EventID) error {
	return s.markPending(ctx, ids, []string{})
}

// TakePending implements eventqueue.PendingStore.
func (s *Store) TakePending(ctx context.Context, ids []eventqueue.EventID) (taken []eventqueue.Notification, err error) {
	err = around(&s.refused, ids, s.takingPending(ctx, takeUrgentSQL, &taken, eventqueue.MaxRequeue))
	return taken, outcome(len(taken), err)
}

// MaxLostAfterFactor bounds the growing interval between two notifications of an
// event that waits: it is at most so many times the first one.
const MaxLostAfterFactor = 10

// page is bounded by the rows that are read, not by those found, so that a backlog of
// paused or delayed events makes no statement long.
var sweepSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), page AS MATERIALIZED (
    SELECT ` + pageColumnsSQL + `
    FROM events_v2 e
    WHERE id > $1
    ORDER BY id
    LIMIT $2
), ` + takeLostSQL + `, ` + repairSQL + `, found AS (
    SELECT id, canvas_id, false AS ahead FROM taken
    UNION ALL
    SELECT id, NULL, false FROM orphans
    UNION ALL
    SELECT id, NULL, false FROM idle
    UNION ALL
    SELECT id, NULL, false FROM stalled
    UNION ALL
    SELECT id, NULL, false FROM placeless
    UNION ALL
    (SELECT id, canvas_id, true FROM page, clock WHERE locked_at > now + interval '1 day' LIMIT 10)
)
SELECT progress.next, progress.read, (SELECT count(*) FROM live), progress.counted, progress.valid_for, found.id, found.canvas_id, found.ahead
FROM (SELECT CASE WHEN count(*) = $2 THEN max(id) END AS next, count(*) AS read,
    EXISTS (SELECT FROM event_minutes m WHERE m.minute >= (SELECT date_trunc('minute', now - interval '1 minute', 'UTC') FROM clock)) AS counted,
    ` + mayrun.ValidForSQL + ` AS valid_for FROM page) AS progress LEFT JOIN found ON true`

const (
	// Whoever writes rows by SQL can write any year: times that arithmetic would
	// overflow with are clamped, so that one bad row cannot fail the page.
	pageColumnsSQL = `e.id, e.canvas_id, e.module, e.name, e.modifier, e.group_state, e.ordering_key, e.notified_at, e.delay_until,
        least(greatest(e.delay_until, e.enqueued_at, 'epoch'), '9999-01-01 00:00Z') AS due,
        CASE WHEN e.locked_at IS NOT NULL THEN least(greatest(e.locked_at, 'epoch'), '9999-01-01 00:00Z') END AS locked_at,
        CASE WHEN e.notified_at IS NOT NULL THEN least(greatest(e.notified_at, 'epoch'), '9999-01-01 00:00Z') END AS last_notified`

	// silentSQL: the last notification of a row of pageColumnsSQL is so old that it seems
	// lost.
	silentSQL = `now - greatest(due, last_notified) > least(greatest($3::interval, last_notified - due), $4 * $3::interval)`
)

var (
	// liveSQL: a row of pageColumnsSQL was notified and waits for nothing but its run, or
	// runs, if there is no rule.
	liveSQL = `notified_at IS NOT NULL AND ` + mayrun.NotBehindSQL("group_state") + ` AND ` + mayrun.DueSQL("due", "now")

	// lostSQL: a row of pageColumnsSQL is not running, and was locked until after the last
	// notification, or that seems lost.
	lostSQL = mayrun.UnlockedSQL("locked_at", mayrun.ValidSinceSQL("now")) + `
      AND (locked_at > ` + mayrun.ValidSinceSQL("last_notified") + `
          OR ` + silentSQL + `)`

	takeLostSQL = takeLostOfSQL("")
)

// takeLostOfSQL takes the events of a page whose notifications seem lost. If a lock has
// expired since the last notification, the event is notified at once; otherwise its last
// notification has to be old enough. A row that was notified since the page was read is
// left. some is an ORDER BY with a LIMIT, or empty for all.
func takeLostOfSQL(some string) string {
	return `live AS MATERIALIZED (
    SELECT id, canvas_id, notified_at, due, locked_at, last_notified
    FROM page, clock
    WHERE ` + liveSQL + `
      AND NOT ` + mayrun.RuledSQL("page") + `
      AND ` + anyHandlerSQL + `
), lost AS MATERIALIZED (
    SELECT id, notified_at
    FROM live, clock
    WHERE ` + lostSQL + some + `
), untaken AS MATERIALIZED (
    SELECT free.id FROM lost CROSS JOIN LATERAL (
        SELECT e.id FROM events_v2 e WHERE e.id = lost.id AND e.notified_at = lost.notified_at
        FOR UPDATE SKIP LOCKED
    ) AS free
), taken AS (
    ` + takeUntakenSQL + `
)`
}

// takeUntakenSQL takes the events that takeLostOfSQL has found, and findUntakenSQL only returns them.
const (
	takeUntakenSQL = `UPDATE events_v2 e SET notified_at = clock.now
    FROM clock
    WHERE e.id = ANY (ARRAY(SELECT id FROM untaken))
    RETURNING e.id, e.canvas_id`
	findUntakenSQL = `SELECT id, canvas_id FROM page WHERE id = ANY (ARRAY(SELECT id FROM untaken))`
)

// takeFoundLostSQL takes those of the given events that are still lost.
var takeFoundLostSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), page AS MATERIALIZED (
    SELECT ` + pageColumnsSQL + ` FROM events_v2 e WHERE e.id = ANY ($1::bigint[]) ORDER BY e.id LIMIT $2
), ` + takeLostSQL + `
SELECT id, canvas_id FROM taken`

// takeLost takes what is lost of a page, around the rows that the database refuses to write. read
// runs the statement, which has takeLostOfSQL in it.
func (s *Store) takeLost(ctx context.Context, sql string, lostAfter time.Duration,
	read func(sql string) ([]eventqueue.Notification, error)) ([]eventqueue.Notification, error) {
	return takeAround(&s.refused, s.await,
		func() ([]eventqueue.Notification, error) { return read(sql) },
		func() ([]eventqueue.Notification, error) {
			return read(strings.Replace(sql, takeUntakenSQL, findUntakenSQL, 1))
		},
		func(taken *[]eventqueue.Notification) func(ids []eventqueue.EventID) error {
			return func(ids []eventqueue.EventID) error {
				sql, arguments := s.lostQuery(takeFoundLostSQL, int64s(ids), len(ids), lostAfter, s.lostFactor())
				return committed(taken, func(some *[]eventqueue.Notification) error {
					return s.run(ctx, skipping, query{forms: forms{skips: sql}, arguments: arguments, read: appendTo(some)})
				})
			}
		})
}

// Sweep implements maintenance.RelayStore. It also advances the ordering groups that it
// finds stuck.
func (s *Store) Sweep(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) (swept maintenance.Swept, err error) {
	var stuck []eventqueue.EventID
	lost, err := s.takeLost(ctx, sweepSQL, lostAfter, func(sql string) ([]eventqueue.Notification, error) {
		swept, stuck, err = s.sweep(ctx, sql, after, limit, lostAfter)
		return swept.Lost, err
	})
	swept.Lost = lost
	if err = outcome(len(lost), err); err != nil && !refusal.Is(err) {
		return maintenance.Swept{}, err
	}
	repaired, repairErr := s.repair(ctx, stuck)
	swept.Lost = append(swept.Lost, repaired...)
	if err = outcome(len(swept.Lost), err, repairErr); err != nil && !refusal.Is(err) {
		return maintenance.Swept{}, err
	}
	return swept, err
}

// sweep runs sweepSQL, or another form of it. It returns the ordering groups that are stuck, each by
// an event.
func (s *Store) sweep(ctx context.Context, sql string, after eventqueue.EventID, limit int, lostAfter time.Duration) (swept maintenance.Swept, stuck []eventqueue.EventID, err error) {
	sql, arguments := s.lostQuery(sql, after, limit, lostAfter, s.lostFactor())
	err = s.run(ctx, skipping, query{
		forms:     forms{skips: sql},
		arguments: arguments,
		read: func(rows pgx.Rows) error {
			var (
				next, id *eventqueue.EventID
				canvas   *[16]byte
				ahead    *bool
			)
			_, err := pgx.ForEachRow(rows, []any{&next, &swept.Read, &swept.Live, &swept.Counted, &swept.LockTimeout, &id, &canvas, &ahead}, func() error {
				if next != nil {
					swept.Next = *next
				}
				switch {
				case id == nil:
				case canvas == nil:
					stuck = append(stuck, *id)
				case *ahead:
					swept.Ahead = append(swept.Ahead, *id)
				default:
					swept.Lost = append(swept.Lost, eventqueue.Notification{Event: *id, Canvas: *canvas})
				}
				return nil
			})
			return err
		},
	})
	return swept, stuck, err
}

// TakeLost is Sweep for callers that need the lost notifications only.
func (s *Store) TakeLost(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) ([]eventqueue.Notification, eventqueue.EventID, error) {
	swept, err := s.Sweep(ctx, after, limit, lostAfter)
	return swept.Lost, swept.Next, err
}

// ReportLost implements maintenance.LostReporter.
func (s *Store) ReportLost(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `SELECT events_v2_notify($1, $2)`, s.channel(unpublishedChannel), lostPayload)
	return err
}

// takePage runs a statement that returns (next, id, canvas_id), with a row for
// next alone when nothing was taken.
func (s *Store) takePage(ctx context.Context, sql string, args ...any) (taken []eventqueue.Notification, next eventqueue.EventID, err error) {
	err = s.run(ctx, skipping, query{
		forms:     forms{skips: sql},
		arguments: args,
		read: func(rows pgx.Rows) error {
			var (
				last   *eventqueue.EventID
				id     *eventqueue.EventID
				canvas *[16]byte
			)
			_, err := pgx.ForEachRow(rows, []any{&last, &id, &canvas}, func() error {
				if last != nil {
					next = *last
				}
				if id != nil {
					n := eventqueue.Notification{Event: *id}
					if canvas != nil {
						n.Canvas = *canvas
					}
					taken = append(taken, n)
				}
				return nil
			})
			return err
		},
	})
	return taken, next, err
}

// RelayRuns reports whether a relay is connected to the database, that is, within
// Listen. It sends one statement.
func (s *Store) RelayRuns(ctx context.Context) (runs bool, err error) {
	if err := s.pool.QueryRow(ctx, `SELECT `+pgsession.RelayRunsSQL).Scan(&runs); err != nil {
		return false, fmt.Errorf("check whether a relay runs: %w", err)
	}
	return runs, nil
}

// ListenError returns why nothing wakes the relay that listens on this store, if that is so. It sends nothing, and may be called at any time.
func (s *Store) ListenError() error { return s.relay.Failure() }

// Listen implements maintenance.RelayStore, on a connection of its own.
func (s *Store) Listen(ctx context.Context, wake func()) error {
	err := s.listen(ctx, func() {
		wake()
		select {
		case s.woken <- struct{}{}:
		default: // whoever lifts rules has yet to look
		}
	})
	if ctx.Err() == nil {
		s.relay.Is(err)
		pgsession.ResetAfter(s.pool.Shared, err)
	}
	return err
}

func (s *Store) listen(ctx context.Context, wake func()) error {
	to := pgsession.ListenTo{Schema: s.Schema(), Channel: pendingChannel, Beats: true, State: &s.relay, Poll: wake, Logger: s.log}
	listening, err := pgsession.Listen(ctx, s.pool.Shared.Config(), to, nil)
	if err != nil {
		return err
	}
	defer listening.Close(ctx)
	if err := s.showRelay(ctx, listening.Conn()); err != nil {
		return err
	}
	s.relay.Ends()
	wake() // for what was committed before
	for {
		if _, err := listening.Wait(ctx); err != nil {
			return err
		}
		wake()
	}
}

// showRelay shows that a relay runs for as long as the connection lasts.
func (s *Store) showRelay(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, s.pool.SQL(pgsession.ShowRelaySQL)); err != nil {
		return fmt.Errorf("show that a relay runs: %w", err)
	}
	return nil
}
