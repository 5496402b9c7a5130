package pgstore

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/internal/refusal"
)

// advancing are events for which ordering groups advance.
type advancing struct {
	left    []eventqueue.EventID
	passes  []bool // one for each that left; none means that none passes
	arrived []eventqueue.EventID
	freeing bool // places of events whose locks have expired become free
}

// only returns what concerns some events.
func (a *advancing) only(ids []eventqueue.EventID) *advancing {
	some := &advancing{freeing: a.freeing}
	for i, id := range a.left {
		if slices.Contains(ids, id) {
			some.left = append(some.left, id)
			some.passes = append(some.passes, len(a.passes) > 0 && a.passes[i])
		}
	}
	for _, id := range a.arrived {
		if slices.Contains(ids, id) {
			some.arrived = append(some.arrived, id)
		}
	}
	return some
}

// advanceOnce advances groups in a transaction.
func (s *Store) advanceOnce(ctx context.Context, a *advancing) (advanced []eventqueue.Event, err error) {
	err = s.run(ctx, skipping, advance(&advanced, a))
	return advanced, err
}

// advanceAround advances groups around the rows that the database refuses to write, and returns
// these as a *refusal.Error beside the events that may run (I15). The groups that they hold up are
// left to the relay.
func (s *Store) advanceAround(ctx context.Context, a *advancing) (advanced []eventqueue.Event, err error) {
	write := func(ids []eventqueue.EventID) error {
		some, err := s.advanceOnce(ctx, a.only(ids))
		advanced = append(advanced, some...)
		return err
	}
	ids := append(slices.Clone(a.left), a.arrived...)
	slices.Sort(ids)
	refused, err := halve(&s.stuck, slices.Compact(ids), write)
	if err != nil || len(refused) == 0 {
		return advanced, err
	}
	culprits, err := s.unwritable(ctx, refused)
	if err != nil {
		return advanced, err
	}
	if len(culprits) == 0 { // what the database refuses is no row of an event that waits
		return advanced, named(&s.stuck, refused)
	}
	var again []eventqueue.EventID
	for _, r := range refused {
		if !slices.ContainsFunc(culprits, func(c refusal.Refused[eventqueue.EventID]) bool { return c.Item == r.Item }) {
			again = append(again, r.Item)
		}
	}
	refused, err = halve(&s.stuck, again, write)
	for _, r := range refused {
		s.stuck.Put(r.Item, refusal.MaxWait)
	}
	if err != nil {
		return advanced, err
	}
	return advanced, named(&s.stuck, culprits)
}

// advanceWritten is advanceAround for events whose ends are written already: no error may look as if
// they were not. So any is a *refusal.Error, and the relay advances the groups.
func (s *Store) advanceWritten(ctx context.Context, a *advancing) ([]eventqueue.Event, error) {
	advanced, err := s.advanceAround(ctx, a)
	if err != nil && !refusal.Is(err) {
		err = &refusal.Error{Advance: err}
	}
	return advanced, err
}

// firstInGroupsSQL returns events, and with them the first that wait in their groups.
var firstInGroupsSQL = `
WITH groups AS MATERIALIZED (
    SELECT g.canvas_id, g.group_key FROM event_groups g WHERE g.event_id = ANY ($1)
    UNION
    SELECT e.canvas_id, events_v2_group_key(stage, e.module, e.name, e.ordering_key)
    FROM events_v2 e CROSS JOIN generate_series(1, 3) AS stage
    WHERE e.id = ANY ($1) AND (stage > 1 OR e.ordering_key <> '')
)
SELECT first.event_id FROM groups CROSS JOIN LATERAL (` + waitingInGroupSQL + ` LIMIT 16) AS first
UNION
SELECT unnest($1::bigint[])`

const (
	// writeAgainSQL changes nothing.
	writeAgainSQL = `
UPDATE events_v2 SET group_state = group_state
WHERE id = ANY (ARRAY(SELECT e.id FROM events_v2 e WHERE e.id = ANY ($1) AND e.group_state <> 2 ORDER BY e.id FOR UPDATE SKIP LOCKED))`

	// leaveLimitsSQL takes events that wait out of the groups of limits, where any event may run
	// instead. They join them again when they arrive at a worker that can claim them. In the group
	// of an ordering key they stay: the order is what it is for.
	leaveLimitsSQL = `DELETE FROM event_groups WHERE event_id = ANY ($1) AND stage > 1 AND NOT admitted`
)

// unwritable finds the rows because of which groups could not advance to, from or for some events:
// their own, or those of the first events that wait in their groups. It takes these out of the
// groups of limits.
func (s *Store) unwritable(ctx context.Context, stuck []refusal.Refused[eventqueue.EventID]) ([]refusal.Refused[eventqueue.EventID], error) {
	ids := make([]int64, len(stuck))
	for i, r := range stuck {
		ids[i] = int64(r.Item)
	}
	var suspects []eventqueue.EventID
	err := s.walk(ctx, firstInGroupsSQL, []any{ids}, func(rows pgx.Rows) (err error) {
		suspects, err = pgx.CollectRows(rows, pgx.RowTo[eventqueue.EventID])
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(suspects)
	refused, err := refusal.Halve(func(ids []eventqueue.EventID) error { return s.exec(ctx, writeAgainSQL, int64s(ids)) }, suspects)
	if err != nil || len(refused) == 0 {
		return nil, err
	}
	bad := make([]int64, len(refused))
	for i, r := range refused {
		bad[i] = int64(r.Item)
	}
	return refused, s.exec(ctx, leaveLimitsSQL, bad)
}

// exec runs a statement with a list of ids, in a transaction of its own.
func (s *Store) exec(ctx context.Context, sql string, ids []int64) error {
	return s.run(ctx, skipping, query{forms: forms{skips: sql}, arguments: []any{ids}, read: discard})
}
