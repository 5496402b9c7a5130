package pgstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/internal/keymode"
)

// insertOrderedSQL is insertSQL for events of which some have an ordering key, and none has a unique
// one. A due event joins its group at once.
const insertOrderedSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), inserted AS (
    INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until, enqueued_at, notified_at, group_state, ordering_key, attributes, parent_id, by_sql, priority)
    SELECT canvas_id, module, name, modifier, value, due, (SELECT now FROM clock),
        CASE WHEN NOT head OR $8::boolean AND due <= (SELECT now FROM clock) + $9::bigint * interval '1 microsecond' AND priority IS DISTINCT FROM 'low'
            THEN (SELECT now FROM clock) END,
        CASE WHEN ordering_key = '' THEN 0 WHEN due <= (SELECT now FROM clock) THEN 1 ELSE 3 END, ordering_key, attributes::jsonb, parent_id, NULL,
        priority::event_priority
    FROM (
        SELECT i.*, greatest(coalesce(i.until, (SELECT now FROM clock) + i.delay_us * interval '1 microsecond'), (SELECT now FROM clock)) AS due
        FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::bigint[], $11::text[], $12::bigint[],
            $13::text[], $14::text[], $15::boolean[])
            WITH ORDINALITY AS i (canvas_id, module, name, modifier, value, until, delay_us, attributes, parent_id, priority, ordering_key, head, place)) AS input
    ORDER BY place
    RETURNING id, notified_at IS NOT NULL AS notified, canvas_id, group_state, ordering_key
), joined AS (
    INSERT INTO event_groups (event_id, stage, canvas_id, group_key)
    SELECT id, 1, canvas_id, events_v2_group_key(1, '', '', ordering_key) FROM inserted WHERE group_state = 1
)
SELECT id, notified, (` + wakeSQL + `$10::text[]) AS channel) AS woken FROM inserted ORDER BY id`

// A batch with unique keys takes them first, in their order, so that two batches never wait for each
// other. The SQL function, which the emits in SQL use as well, then decides for one event after the other;
// each of its statements sees what was committed, and inserted, before.
const (
	lockKeysSQL = `SELECT events_v2_lock_keys($1::uuid[], $2::text[])`

	uniqueInputSQL = `
SELECT CASE WHEN priority IS NULL OR r.repeats THEN r.id ELSE events_prioritize(r.id, priority) END AS id,
    r.notified, NULL::boolean AS woken, r.repeats
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::bigint[], $11::text[], $12::bigint[],
    $13::text[], $14::text[], $15::text[], $16::int[], $17::text[], $18::bigint[])
    WITH ORDINALITY AS i (canvas_id, module, name, modifier, value, until, delay_us, attributes, parent_id,
        priority, ordering_key, key, seconds, mode, max_wait_us, place)
CROSS JOIN LATERAL `

	uniqueArgumentsSQL = `(canvas_id, module, name, modifier, value, delay_us * interval '1 microsecond', until,
    attributes::jsonb, parent_id, ordering_key, key, seconds, mode, max_wait_us * interval '1 microsecond',
    CASE WHEN $8::boolean AND priority IS DISTINCT FROM 'low' THEN $9::bigint * interval '1 microsecond' END, $10::text[]`

	insertUniqueSQL = uniqueInputSQL + `events_v2_emit_keyed` + uniqueArgumentsSQL + `) AS r ORDER BY place`

	// insertEndingSQL is insertUniqueSQL in a transaction that completes the event $19. Only those who end events have the right to it.
	insertEndingSQL = uniqueInputSQL + `events_v2_emit_ending` + uniqueArgumentsSQL + `, $19::bigint) AS r ORDER BY place`
)

func hasKeys(events []eventqueue.NewEvent) bool {
	return slices.ContainsFunc(events, func(e eventqueue.NewEvent) bool { return e.UniqueKey != "" || e.OrderingKey != "" })
}

// uniqueKeys returns the unique keys of events, each once, in the order in which they are taken.
func uniqueKeys(events []eventqueue.NewEvent) (keys []eventqueue.UniqueKey) {
	for i := range events {
		if events[i].UniqueKey != "" {
			keys = append(keys, eventqueue.UniqueKey{Canvas: events[i].Canvas, Key: events[i].UniqueKey})
		}
	}
	slices.SortFunc(keys, func(a, b eventqueue.UniqueKey) int {
		return cmp.Or(slices.Compare(a.Canvas[:], b.Canvas[:]), cmp.Compare(a.Key, b.Key))
	})
	return slices.Compact(keys)
}

func lockKeysArgs(keys []eventqueue.UniqueKey) []any {
	canvases, texts := make([][16]byte, len(keys)), make([]string, len(keys))
	for i, key := range keys {
		canvases[i], texts[i] = key.Canvas, key.Key
	}
	return []any{canvases, texts}
}

func (s *Store) insertOrderedArgs(events []eventqueue.NewEvent, mode eventqueue.NotifyMode) []any {
	keys := make([]string, len(events))
	for i := range events {
		keys[i] = events[i].OrderingKey
	}
	return append(s.insertArgs(events, mode), keys, headsOf(events))
}

func (s *Store) insertUniqueArgs(events []eventqueue.NewEvent, mode eventqueue.NotifyMode) []any {
	ordering, keys, modes := make([]string, len(events)), make([]string, len(events)), make([]string, len(events))
	times, waits := make([]int32, len(events)), make([]*int64, len(events))
	for i := range events {
		e := &events[i]
		ordering[i], keys[i], modes[i] = e.OrderingKey, e.UniqueKey, cmp.Or(e.UniqueMode, keymode.UntilEnd)
		times[i] = int32((e.UniqueFor + time.Second - 1) / time.Second)
		if e.MaxWait != 0 {
			waits[i] = new(roundUpMicroseconds(e.MaxWait))
		}
	}
	return append(s.insertArgs(events, mode), ordering, keys, times, modes, waits)
}

// headsOf reports which events need a notification. Of the events of one ordering
// group only the first does: when it completes, the group advances and the next one is
// notified. An event with a delay does not count as the first, since it joins the group later.
func headsOf(events []eventqueue.NewEvent) []bool {
	type group struct {
		canvas eventqueue.CanvasID
		key    string
	}
	heads := make([]bool, len(events))
	seen := map[group]bool{}
	for i := range events {
		e := &events[i]
		of := group{e.Canvas, e.OrderingKey}
		alone := e.OrderingKey == "" || isDelayed(*e)
		heads[i] = alone || !seen[of]
		seen[of] = seen[of] || !alone
	}
	return heads
}

// answered checks the rows that came back, and leaves the notifications to the first events of their groups.
func answered(events []eventqueue.NewEvent, inserted []eventqueue.Inserted, unique bool) ([]eventqueue.Inserted, error) {
	if len(inserted) != len(events) {
		return nil, fmt.Errorf("%d events became %d rows: events_v2 or unique_keys has a trigger or a rule that keeps rows out; take it away",
			len(events), len(inserted))
	}
	if !unique {
		for i, head := range headsOf(events) {
			inserted[i].MustNotify = inserted[i].MustNotify && head
		}
	}
	return inserted, nil
}

// insertKeyed sends everything in one round trip, in a transaction of its own if
// there is none yet. ending is the event that the transaction completes; 0 for none.
func (s *Store) insertKeyed(ctx context.Context, in eventqueue.DB, ending eventqueue.EventID, events []eventqueue.NewEvent, mode eventqueue.NotifyMode) ([]eventqueue.Inserted, error) {
	keys := uniqueKeys(events)
	inserted := make([]eventqueue.Inserted, 0, len(events))
	statement, arguments, scan := insertOrderedSQL, s.insertOrderedArgs, scanInserted
	if len(keys) > 0 {
		statement, arguments, scan = insertUniqueSQL, s.insertUniqueArgs, scanUnique
		if ending != 0 {
			statement = insertEndingSQL
			arguments = func(events []eventqueue.NewEvent, mode eventqueue.NotifyMode) []any {
				return append(s.insertUniqueArgs(events, mode), int64(ending))
			}
		}
	}
	var queries []query
	if len(keys) > 1 {
		queries = append(queries, query{forms: forms{skips: lockKeysSQL}, arguments: lockKeysArgs(keys), read: func(rows pgx.Rows) error { rows.Close(); return rows.Err() }})
	}
	for chunk := range slices.Chunk(events, insertChunk) {
		queries = append(queries, insertion(&inserted, statement, arguments(chunk, mode), scan))
	}
	if err := s.insertInOrder(ctx, in, keys, queries); err != nil {
		return nil, err
	}
	return answered(events, inserted, len(keys) > 0)
}

// InsertEnding implements eventqueue.EmitStore.
func (s *Store) InsertEnding(ctx context.Context, in eventqueue.DB, ending eventqueue.EventID, events []eventqueue.NewEvent, mode eventqueue.NotifyMode) ([]eventqueue.Inserted, error) {
	if ending == 0 || !hasKeys(events) {
		return s.Insert(ctx, in, events, mode)
	}
	return s.insertKeyed(ctx, s.pool.In(in), ending, events, mode)
}

// passKeySQL waits for nobody who emits the key: it writes no row of unique_keys.
const passKeySQL = `
WITH passed AS (
    INSERT INTO unique_heirs (event_id, heir_id)
    SELECT k.event_id, heir.id
    FROM events_v2 e JOIN unique_keys k ON k.canvas_id = e.canvas_id AND k.key = e.unique_key CROSS JOIN unnest($2::bigint[]) AS heir (id)
    WHERE e.id = $1 AND (k.event_id = e.id OR EXISTS (SELECT FROM unique_heirs h WHERE h.event_id = k.event_id AND h.heir_id = e.id))
    RETURNING heir_id
)
UPDATE events_v2 h SET unique_key = e.unique_key, unique_seconds = e.unique_seconds
FROM events_v2 e WHERE e.id = $1 AND h.id = ANY (ARRAY(SELECT heir_id FROM passed))`

// PassKey implements eventqueue.EmitStore.
func (s *Store) PassKey(ctx context.Context, in eventqueue.DB, ending eventqueue.EventID, heirs []eventqueue.EventID) error {
	return within(ctx, s.pool.In(in), []query{{forms: forms{skips: passKeySQL}, arguments: []any{int64(ending), int64s(heirs)},
		read: func(rows pgx.Rows) error { rows.Close(); return rows.Err() }}})
}

// insertInOrder sends the statements of insertKeyed, of which those with unique keys may wait for strangers.
func (s *Store) insertInOrder(ctx context.Context, in eventqueue.DB, keys []eventqueue.UniqueKey, queries []query) error {
	switch {
	case in != nil:
		return within(ctx, in, queries)
	case len(keys) > 0:
		return s.share.waitForKeys(ctx, keys, func() error { return s.run(ctx, skipping, queries...) })
	default:
		return s.run(ctx, skipping, queries...)
	}
}

func scanUnique(row pgx.CollectableRow) (r eventqueue.Inserted, err error) {
	err = row.Scan(&r.ID, &r.MustNotify, nil, &r.Repeat)
	return r, err
}
