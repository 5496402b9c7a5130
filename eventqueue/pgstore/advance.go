package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/internal/mayrun"
	"eventsv2/internal/refusal"
	"eventsv2/internal/sqlstate"
)

// The state of an event in its ordering groups, as in the column group_state. The migration
// that adds the column also creates the function that advances groups.
const (
	groupWaiting int16 = 1
	groupMayRun  int16 = 2
	groupLater   int16 = 3
)

var advanceSQL = `SELECT id, canvas_id, module, name, modifier FROM events_v2_advance($1, $2, $3,
    CASE WHEN $4 THEN ` + mayrun.ValidForSQL + ` END)`

// advanceChunk is how many events one call takes. The call locks their groups, and
// Postgres has room for a few thousand locks in all.
const advanceChunk = worker.MaxGrouped

// afterCompletion are the completed events whose groups advance.
func afterCompletion(completions []worker.Completion) *advancing {
	a := &advancing{}
	for i := range completions {
		if completions[i].Grouped {
			a.left = append(a.left, completions[i].Event)
			a.passes = append(a.passes, completions[i].Passes && completions[i].Label != machine.ExecutesToCompletion)
		}
	}
	return a
}

func advance(advanced *[]eventqueue.Event, a *advancing) query {
	passes := a.passes
	if len(passes) == 0 {
		passes = make([]bool, len(a.left))
	}
	return query{
		forms:     forms{waits: advanceSQL, skips: advanceSQL},
		arguments: []any{int64s(a.left), passes, int64s(a.arrived), a.freeing},
		read: func(rows pgx.Rows) (err error) {
			*advanced, err = pgx.CollectRows(rows, scanAdvanced)
			return err
		},
	}
}

func scanAdvanced(row pgx.CollectableRow) (e eventqueue.Event, err error) {
	err = row.Scan(&e.ID, (*[16]byte)(&e.Canvas), &e.Module, &e.Name, &e.Modifier)
	return e, err
}

// Advance implements worker.Store, in a transaction for each portion. It goes around rows that the
// database refuses to write, and returns these as a *refusal.Error.
func (s *Store) Advance(ctx context.Context, left, arrived []eventqueue.EventID) (advanced []eventqueue.Event, err error) {
	var refused []error
	for len(left)+len(arrived) > 0 {
		gone, come := min(len(left), advanceChunk), min(len(arrived), advanceChunk)
		some, err := s.advancePortion(ctx, &advancing{left: left[:gone], arrived: arrived[:come], freeing: true})
		advanced = append(advanced, some...)
		if err != nil && !refusal.Is(err) {
			return advanced, err
		}
		refused = append(refused, err)
		left, arrived = left[gone:], arrived[come:]
	}
	return advanced, outcome(len(advanced), refused...)
}

func (s *Store) advancePortion(ctx context.Context, a *advancing) ([]eventqueue.Event, error) {
	if s.stuck.Empty() {
		advanced, err := s.advanceOnce(ctx, a)
		if !sqlstate.Refused(err) {
			return advanced, err
		}
	}
	return s.advanceAround(ctx, a)
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
//   - placeless events wait in no group although they say so: their rows could not be
//     written when a group came to them, and it went on without them (see advanceAround).
var repairSQL = `waiting AS (
    SELECT DISTINCT canvas_id, module, name, ordering_key FROM page WHERE group_state = 1
), orphans AS MATERIALIZED (
    SELECT event_id AS id FROM (
        SELECT g.event_id FROM event_groups g
        WHERE g.event_id > $1 AND g.event_id <= (SELECT CASE WHEN count(*) = $2 THEN max(id) ELSE 9223372036854775807 END FROM page)
        ORDER BY g.event_id LIMIT 3 * $2
    ) AS places
    WHERE event_id NOT IN (SELECT id FROM page)
), ` + idleSQL + `
), stalled AS MATERIALIZED (
    SELECT first.event_id AS id
    FROM (
        SELECT DISTINCT w.canvas_id, stage, events_v2_group_key(stage, w.module, w.name, w.ordering_key) AS group_key
        FROM waiting w CROSS JOIN generate_series(1, 3) AS stage
        WHERE stage > 1 OR w.ordering_key <> ''
    ) AS groups
    CROSS JOIN LATERAL (` + firstWaitingSQL + `) AS first
    WHERE ` + roomSQL + `
), placeless AS MATERIALIZED (
    SELECT id FROM page
    WHERE group_state = 1 AND (SELECT true FROM event_groups g WHERE g.event_id = page.id AND NOT g.admitted LIMIT 1) IS NULL
)`

var (
	idleSQL = `idle AS MATERIALIZED (
    SELECT id FROM page, clock
    WHERE group_state = 2
      AND ` + mayrun.UnlockedSQL("locked_at", mayrun.ValidSinceSQL("now")) + `
      AND (delay_until > now OR ` + mayrun.RuledSQL("page") + `)
      AND EXISTS (SELECT FROM event_groups g WHERE g.event_id = page.id AND g.stage > 1)`

	// firstWaitingSQL is the first event that waits in a group of groups.
	firstWaitingSQL = waitingInGroupSQL + ` LIMIT 1`

	// waitingInGroupSQL are all that wait in it, in order. Places are compared as rows: then no
	// other index has them in order, and none is walked past all groups where the statistics are
	// from before there were any.
	waitingInGroupSQL = `
        SELECT g.event_id FROM event_groups g
        WHERE (g.canvas_id, g.group_key, g.admitted, g.event_id) > (groups.canvas_id, groups.group_key, false, 0)
          AND (g.canvas_id, g.group_key, g.admitted) <= (groups.canvas_id, groups.group_key, false)
        ORDER BY g.canvas_id, g.group_key, g.admitted, g.event_id`

	// roomSQL: one more event of the group l may run.
	roomSQL = `((SELECT count(*) FROM event_groups g WHERE g.canvas_id = groups.canvas_id AND g.group_key = groups.group_key AND g.admitted)
        < events_v2_max_running(groups.stage, groups.canvas_id, groups.group_key)) IS NOT FALSE`
)

// repair advances the groups that were stuck. If one of them stays locked for too
// long, all of them are left for the next sweep.
func (s *Store) repair(ctx context.Context, lost []eventqueue.EventID) ([]eventqueue.Notification, error) {
	advanced, err := s.Advance(ctx, lost, lost) // each is one or the other
	if lockWaitExpired(err) {
		err = nil
	}
	notifications := make([]eventqueue.Notification, len(advanced))
	for i := range advanced {
		notifications[i] = eventqueue.Notification{Event: advanced[i].ID, Canvas: advanced[i].Canvas}
	}
	return notifications, err
}
