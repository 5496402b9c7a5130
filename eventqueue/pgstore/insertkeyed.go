package pgstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// Events of which some have a unique key or an ordering key are inserted by two
// statements. The first, which only unique keys need, takes the row of each of them, in
// the order of the keys so that two batches never wait for each other: it makes those
// that are missing, and locks the others without writing them. A second
// emit waits there until the first has committed or rolled back. The second statement
// has a snapshot of its own, sees what was committed meanwhile, and decides. Within a
// caller's transaction with one snapshot for all statements it would not see that, so
// such an emit is refused.
const lockKeysSQL = `
INSERT INTO unique_keys (canvas_id, key)
SELECT canvas_id, key
FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS asked (canvas_id, key, place)
WHERE (SELECT events_v2_needs_read_committed('an emit with a unique key'))
ORDER BY place
ON CONFLICT (canvas_id, key) DO UPDATE SET event_id = unique_keys.event_id WHERE false`

// A key is reserved while its event is queued, and afterwards until the row of
// unique_expiries expires. named are the rows that lockKeysSQL has locked, so their versions
// (ctid) stay. OFFSET 0 has each row looked up by its key. The rest is as in
// insertSQL, and so are the first columns of the answer.
const insertKeyedSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), input AS MATERIALIZED (
    SELECT i.*, greatest(coalesce(i.until, (SELECT now FROM clock) + i.delay_us * interval '1 microsecond'), (SELECT now FROM clock)) AS due
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::bigint[], $11::text[], $12::bigint[],
        $13::text[], $14::int[], $15::text[], $16::boolean[])
        WITH ORDINALITY AS i (canvas_id, module, name, modifier, value, until, delay_us, attributes, parent_id, key, unique_seconds, ordering_key, head, place)
), named AS MATERIALIZED (
    SELECT input.place, k.version, k.event_id, coalesce(e.queued, u.reserved, false) AS holds
    FROM input CROSS JOIN LATERAL (
        SELECT k.ctid AS version, k.event_id FROM unique_keys k WHERE k.canvas_id = input.canvas_id AND k.key = input.key
        OFFSET 0) AS k
    LEFT JOIN LATERAL (
        SELECT true AS queued FROM events_v2 e WHERE e.id = k.event_id OFFSET 0) AS e ON true
    LEFT JOIN LATERAL (
        SELECT true AS reserved FROM unique_expiries u WHERE u.event_id = k.event_id AND u.expires_at > (SELECT now FROM clock)
        OFFSET 0) AS u ON true
), fresh AS MATERIALIZED (
    SELECT nextval('events_id_seq') AS id, f.*
    FROM (
        SELECT input.*, named.version, named.event_id AS before
        FROM input LEFT JOIN named USING (place)
        WHERE named.holds IS NOT TRUE
        ORDER BY place) AS f
), inserted AS (
    INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, delay_until, enqueued_at, notified_at, unique_seconds, group_state, ordering_key,
        attributes, parent_id)
    SELECT id, canvas_id, module, name, modifier, value, due, (SELECT now FROM clock),
        CASE WHEN NOT head OR $8::boolean AND due <= (SELECT now FROM clock) + $9::bigint * interval '1 microsecond'
            THEN (SELECT now FROM clock) END,
        unique_seconds, CASE WHEN ordering_key = '' THEN 0 WHEN due <= (SELECT now FROM clock) THEN 1 ELSE 3 END, ordering_key,
        attributes::jsonb, parent_id
    FROM fresh
    ORDER BY place
    RETURNING id, notified_at IS NOT NULL AS notified, canvas_id, group_state, ordering_key
), joined AS (
    INSERT INTO event_groups (event_id, stage, canvas_id, group_key)
    SELECT id, 1, canvas_id, events_v2_group_key(1, '', '', ordering_key) FROM inserted WHERE group_state = 1
), renamed AS (
    UPDATE unique_keys k SET event_id = fresh.id FROM fresh WHERE k.ctid = fresh.version
), released AS (
    DELETE FROM unique_expiries u WHERE u.event_id = ANY (ARRAY(SELECT before FROM fresh WHERE before IS NOT NULL))
)
SELECT coalesce(inserted.id, named.event_id), coalesce(inserted.notified AND input.head, false),
    (` + wakeSQL + `$10::text[]) AS channel WHERE EXISTS (SELECT FROM inserted)) AS woken,
    inserted.id IS NULL AS repeat
FROM input
LEFT JOIN named USING (place)
LEFT JOIN fresh USING (place)
LEFT JOIN inserted ON inserted.id = fresh.id
WHERE named.holds OR inserted.id IS NOT NULL
ORDER BY place`

func hasKeys(events []eventqueue.NewEvent) bool {
	return slices.ContainsFunc(events, func(e eventqueue.NewEvent) bool { return e.UniqueKey != "" || e.OrderingKey != "" })
}

// keyed is a batch of which some events have keys.
type keyed struct {
	keys   []eventqueue.UniqueKey // each once, in order
	events []eventqueue.NewEvent  // without those that repeat one of the batch
	places []int                  // of each event of the batch, among events
}

func keyedOf(events []eventqueue.NewEvent) keyed {
	k := keyed{places: make([]int, len(events))}
	first := map[eventqueue.UniqueKey]int{}
	for i := range events {
		key := eventqueue.UniqueKey{Canvas: events[i].Canvas, Key: events[i].UniqueKey}
		if place, again := first[key]; again {
			k.places[i] = place
			continue
		}
		k.places[i] = len(k.events)
		k.events = append(k.events, events[i])
		if key.Key != "" {
			first[key] = k.places[i]
			k.keys = append(k.keys, key)
		}
	}
	slices.SortFunc(k.keys, func(a, b eventqueue.UniqueKey) int {
		return cmp.Or(slices.Compare(a.Canvas[:], b.Canvas[:]), cmp.Compare(a.Key, b.Key))
	})
	return k
}

func (k keyed) lockArgs() []any {
	canvases, keys := make([][16]byte, len(k.keys)), make([]string, len(k.keys))
	for i, key := range k.keys {
		canvases[i], keys[i] = key.Canvas, key.Key
	}
	return []any{canvases, keys}
}

func (s *Store) insertKeyedArgs(events []eventqueue.NewEvent, mode eventqueue.NotifyMode) []any {
	keys, times, orderingKeys := make([]*string, len(events)), make([]int32, len(events)), make([]string, len(events))
	for i := range events {
		if events[i].UniqueKey != "" {
			keys[i] = &events[i].UniqueKey
		}
		times[i] = int32((events[i].UniqueFor + time.Second - 1) / time.Second)
		orderingKeys[i] = events[i].OrderingKey
	}
	return append(s.insertArgs(events, mode), keys, times, orderingKeys, headsOf(events))
}

// headsOf reports which events need a notification. Of the events of one ordering
// group only the first does: when it completes, the group advances and the next one is
// notified. An event with a UniqueKey may turn out not to be inserted, so it does not
// count as the first; nor does one with a delay, which joins the group later.
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
		alone := e.OrderingKey == "" || e.UniqueKey != "" || isDelayed(*e)
		heads[i] = alone || !seen[of]
		seen[of] = seen[of] || !alone
	}
	return heads
}

// answer is the result for each event of the batch.
func (k keyed) answer(inserted []eventqueue.Inserted) ([]eventqueue.Inserted, error) {
	if len(inserted) != len(k.events) {
		return nil, fmt.Errorf("%d events became %d rows: events_v2 or unique_keys has a trigger or a rule that keeps rows out; take it away",
			len(k.events), len(inserted))
	}
	answers := make([]eventqueue.Inserted, len(k.places))
	answered := make([]bool, len(inserted))
	for i, place := range k.places {
		answers[i] = inserted[place]
		if answered[place] {
			answers[i].Repeat, answers[i].MustNotify = true, false
		}
		answered[place] = true
	}
	return answers, nil
}

// insertKeyed sends everything in one round trip, in a transaction of its own if
// there is none yet.
func (s *Store) insertKeyed(ctx context.Context, in eventqueue.DB, events []eventqueue.NewEvent, mode eventqueue.NotifyMode) ([]eventqueue.Inserted, error) {
	k := keyedOf(events)
	inserted := make([]eventqueue.Inserted, 0, len(k.events))
	var queries []query
	if len(k.keys) > 0 {
		queries = append(queries, query{
			forms:     forms{skips: lockKeysSQL},
			arguments: k.lockArgs(),
			read:      func(rows pgx.Rows) error { rows.Close(); return rows.Err() },
		})
	}
	for chunk := range slices.Chunk(k.events, insertChunk) {
		queries = append(queries, insertion(&inserted, insertKeyedSQL, s.insertKeyedArgs(chunk, mode), scanKeyed))
	}
	if err := s.insertInOrder(ctx, in, k.keys, queries); err != nil {
		return nil, err
	}
	return k.answer(inserted)
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

func scanKeyed(row pgx.CollectableRow) (r eventqueue.Inserted, err error) {
	err = row.Scan(&r.ID, &r.MustNotify, nil, &r.Repeat)
	return r, err
}
