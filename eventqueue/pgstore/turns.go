package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

// The line of an event, as in the column of that name: see the migration that adds
// it, which also has the function that all turns come from.
const (
	lineWaits int16 = 1
	lineTurn  int16 = 2
	lineLater int16 = 3
)

const turnsSQL = `SELECT id, canvas_id, module, name, modifier FROM events_v2_turns($1, $2, $3, $4)`

// turnsChunk is how many events one call of it takes: it locks their lines, and
// Postgres has room for some thousand locks in all.
const turnsChunk = eventqueue.MaxTurns

// turnsAfter is the statement that gives the turns of ended events to the next. It
// stands behind those that write the ends, in the same transaction.
func turnsAfter(turns *[]eventqueue.Event, ends []eventqueue.End) query {
	var left []int64
	var passes []bool
	for i := range ends {
		if ends[i].InLine {
			left = append(left, int64(ends[i].Event))
			passes = append(passes, ends[i].Passes && ends[i].Label != machine.ExecutesToCompletion)
		}
	}
	return takeTurns(turns, left, passes, nil, nil)
}

func takeTurns(turns *[]eventqueue.Event, left []int64, passes []bool, arrived []int64, lockTimeout *time.Duration) query {
	return query{
		forms:     forms{waits: turnsSQL, skips: turnsSQL},
		arguments: []any{left, passes, arrived, lockTimeout},
		read: func(rows pgx.Rows) (err error) {
			*turns, err = pgx.AppendRows(*turns, rows, scanTurn)
			return err
		},
	}
}

func scanTurn(row pgx.CollectableRow) (e eventqueue.Event, err error) {
	err = row.Scan(&e.ID, (*[16]byte)(&e.Canvas), &e.Module, &e.Name, &e.Modifier)
	return e, err
}

// TakeTurns implements eventqueue.ClaimStore, in a transaction for each portion.
func (s *Store) TakeTurns(ctx context.Context, left, arrived []eventqueue.EventID, lockTimeout time.Duration) (turns []eventqueue.Event, err error) {
	for len(left)+len(arrived) > 0 && err == nil {
		gone, come := min(len(left), turnsChunk), min(len(arrived), turnsChunk)
		next := takeTurns(&turns, int64s(left[:gone]), make([]bool, gone), int64s(arrived[:come]), &lockTimeout)
		err = s.run(ctx, skipping, next)
		left, arrived = left[gone:], arrived[come:]
	}
	return turns, err
}

// mendSQL finds what is wrong with lines. orphans are the places, in the range of
// ids that the page covers, of events that somebody has deleted. stalled are the
// first that wait in lines of the page's events where there is room: whoever had
// the turn has left without a word, or the row was locked by somebody when it came.
const mendSQL = `waiting AS (
    SELECT DISTINCT canvas_id, module, name, ordering_key FROM page WHERE line = 1
), orphans AS MATERIALIZED (
    SELECT event_id AS id FROM (
        SELECT p.event_id FROM event_lines p
        WHERE p.event_id > $1 AND p.event_id <= (SELECT CASE WHEN count(*) = $2 THEN max(id) ELSE 9223372036854775807 END FROM page)
        ORDER BY p.event_id LIMIT 3 * $2
    ) AS places
    WHERE event_id NOT IN (SELECT id FROM page)
), stalled AS MATERIALIZED (
    SELECT first.event_id AS id
    FROM (
        SELECT DISTINCT w.canvas_id, stage, events_v2_line(stage, w.module, w.name, w.ordering_key) AS line
        FROM waiting w CROSS JOIN generate_series(1, 3) AS stage
        WHERE stage > 1 OR w.ordering_key <> ''
    ) AS l
    CROSS JOIN LATERAL (
        SELECT p.event_id FROM event_lines p
        WHERE p.canvas_id = l.canvas_id AND p.line = l.line AND NOT p.turn
        ORDER BY p.event_id LIMIT 1
    ) AS first
    WHERE ((SELECT count(*) FROM event_lines p WHERE p.canvas_id = l.canvas_id AND p.line = l.line AND p.turn)
        < events_v2_max_running(l.stage, l.canvas_id, l.line)) IS NOT FALSE
)`

// mend gives the turns that were lost. A line that is held by somebody for too
// long is left for the next time, as are all then.
func (s *Store) mend(ctx context.Context, lost []eventqueue.EventID, lockTimeout time.Duration) ([]eventqueue.Notification, error) {
	turns, err := s.TakeTurns(ctx, lost, lost, lockTimeout) // each is one or the other
	if waitedInVain(err) {
		err = nil
	}
	notifications := make([]eventqueue.Notification, len(turns))
	for i := range turns {
		notifications[i] = eventqueue.Notification{Event: turns[i].ID, Canvas: turns[i].Canvas}
	}
	return notifications, err
}
