package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
)

// The state of an event in its ordering groups, as in the column line. The migration
// that adds the column also creates the function that advances groups.
const (
	groupWaiting int16 = 1
	groupMayRun  int16 = 2
	groupLater   int16 = 3
)

const advanceSQL = `SELECT id, canvas_id, module, name, modifier FROM events_v2_turns($1, $2, $3,
    CASE WHEN $4::interval IS NOT NULL THEN greatest($4::interval, ` + validSQL + `) END)`

// advanceChunk is how many events one call takes. The call locks their groups, and
// Postgres has room for a few thousand locks in all.
const advanceChunk = worker.MaxGrouped

// advanceAfter is the statement that advances the groups of completed events. It
// follows the statements that write the completions, in the same transaction.
func advanceAfter(advanced *[]eventqueue.Event, completions []worker.Completion) query {
	var left []int64
	var passes []bool
	for i := range completions {
		if completions[i].Grouped {
			left = append(left, int64(completions[i].Event))
			passes = append(passes, completions[i].Passes && completions[i].Label != machine.ExecutesToCompletion)
		}
	}
	return advance(advanced, left, passes, nil, nil)
}

func advance(advanced *[]eventqueue.Event, left []int64, passes []bool, arrived []int64, lockTimeout *time.Duration) query {
	return query{
		forms:     forms{waits: advanceSQL, skips: advanceSQL},
		arguments: []any{left, passes, arrived, lockTimeout},
		read: func(rows pgx.Rows) (err error) {
			*advanced, err = pgx.AppendRows(*advanced, rows, scanAdvanced)
			return err
		},
	}
}

func scanAdvanced(row pgx.CollectableRow) (e eventqueue.Event, err error) {
	err = row.Scan(&e.ID, (*[16]byte)(&e.Canvas), &e.Module, &e.Name, &e.Modifier)
	return e, err
}

// Advance implements worker.Store, in a transaction for each portion.
func (s *Store) Advance(ctx context.Context, left, arrived []eventqueue.EventID, lockTimeout time.Duration) (advanced []eventqueue.Event, err error) {
	for len(left)+len(arrived) > 0 && err == nil {
		gone, come := min(len(left), advanceChunk), min(len(arrived), advanceChunk)
		next := advance(&advanced, int64s(left[:gone]), make([]bool, gone), int64s(arrived[:come]), &lockTimeout)
		err = s.run(ctx, skipping, next)
		left, arrived = left[gone:], arrived[come:]
	}
	return advanced, err
}

// repairSQL finds groups that have to be repaired:
//
//   - orphans are places, in the page's range of ids, of events that were deleted by
//     hand.
//   - idle events may run under a limit and cannot: no worker runs them, and a rule or
//     a delay holds them back.
//   - stalled events are the first that wait in a group of the page's events although
//     it has room: the event before them was deleted by hand, or their row was locked
//     when the group advanced.
var repairSQL = `waiting AS (
    SELECT DISTINCT canvas_id, module, name, ordering_key FROM page WHERE line = 1
), orphans AS MATERIALIZED (
    SELECT event_id AS id FROM (
        SELECT p.event_id FROM event_lines p
        WHERE p.event_id > $1 AND p.event_id <= (SELECT CASE WHEN count(*) = $2 THEN max(id) ELSE 9223372036854775807 END FROM page)
        ORDER BY p.event_id LIMIT 3 * $2
    ) AS places
    WHERE event_id NOT IN (SELECT id FROM page)
), ` + idleSQL + `
), stalled AS MATERIALIZED (
    SELECT first.event_id AS id
    FROM (
        SELECT DISTINCT w.canvas_id, stage, events_v2_line(stage, w.module, w.name, w.ordering_key) AS line
        FROM waiting w CROSS JOIN generate_series(1, 3) AS stage
        WHERE stage > 1 OR w.ordering_key <> ''
    ) AS l
    CROSS JOIN LATERAL (` + firstWaitingSQL + `) AS first
    WHERE ` + roomSQL + `
)`

var (
	idleSQL = `idle AS MATERIALIZED (
    SELECT id FROM page, clock
    WHERE line = 2
      AND ` + unlockedSQL("locked_at", validSinceSQL("now", "$4")) + `
      AND (due > now OR ` + ruledSQL("page") + `)
      AND EXISTS (SELECT FROM event_lines p WHERE p.event_id = page.id AND p.stage > 1)`

	// firstWaitingSQL is the first event that waits in the group l. Places are compared as
	// rows: then no other index has them in order, and none is walked past all groups where
	// the statistics are from before there were any.
	firstWaitingSQL = `
        SELECT p.event_id FROM event_lines p
        WHERE (p.canvas_id, p.line, p.turn, p.event_id) > (l.canvas_id, l.line, false, 0)
          AND (p.canvas_id, p.line, p.turn) <= (l.canvas_id, l.line, false)
        ORDER BY p.canvas_id, p.line, p.turn, p.event_id LIMIT 1`

	// roomSQL: one more event of the group l may run.
	roomSQL = `((SELECT count(*) FROM event_lines p WHERE p.canvas_id = l.canvas_id AND p.line = l.line AND p.turn)
        < events_v2_max_running(l.stage, l.canvas_id, l.line)) IS NOT FALSE`
)

// repair advances the groups that were stuck. If one of them stays locked for too
// long, all of them are left for the next sweep.
func (s *Store) repair(ctx context.Context, lost []eventqueue.EventID, lockTimeout time.Duration) ([]eventqueue.Notification, error) {
	advanced, err := s.Advance(ctx, lost, lost, lockTimeout) // each is one or the other
	if lockWaitExpired(err) {
		err = nil
	}
	notifications := make([]eventqueue.Notification, len(advanced))
	for i := range advanced {
		notifications[i] = eventqueue.Notification{Event: advanced[i].ID, Canvas: advanced[i].Canvas}
	}
	return notifications, err
}
