package pgstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"eventsv2/eventqueue"
)

// Events with a unique key are inserted by two statements. The first takes the row of each
// key, in the order of the keys so that two batches never wait for each other: it
// makes those that are missing, and locks the others without writing them. Whoever
// comes second waits there until the first has committed or rolled back. The
// second statement, with a snapshot of its own, sees what those had committed for whom it
// waited, and decides.
const lockKeysSQL = `
INSERT INTO unique_keys (canvas_id, key)
SELECT canvas_id, key
FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS asked (canvas_id, key, place)
ORDER BY place
ON CONFLICT (canvas_id, key) DO UPDATE SET event_id = unique_keys.event_id WHERE false`

// A key holds while its event is there, and until the end that was kept of it
// expires. named are the rows that lockKeysSQL has locked, so their versions
// (ctid) stay. OFFSET 0 has each row looked up by its key. The rest is as in
// insertSQL, and so are the first columns of the answer.
const insertUniqueSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), input AS MATERIALIZED (
    SELECT i.*, greatest(coalesce(i.until, (SELECT now FROM clock) + i.delay_us * interval '1 microsecond'), (SELECT now FROM clock)) AS due
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::bigint[], $11::text[], $12::int[], $13::text[], $14::boolean[])
        WITH ORDINALITY AS i (canvas_id, module, name, modifier, value, until, delay_us, key, unique_seconds, ordering_key, head, place)
), named AS MATERIALIZED (
    SELECT input.place, k.version, k.event_id, coalesce(e.queued, u.kept, false) AS holds
    FROM input CROSS JOIN LATERAL (
        SELECT k.ctid AS version, k.event_id FROM unique_keys k WHERE k.canvas_id = input.canvas_id AND k.key = input.key
        OFFSET 0) AS k
    LEFT JOIN LATERAL (
        SELECT true AS queued FROM events_v2 e WHERE e.id = k.event_id OFFSET 0) AS e ON true
    LEFT JOIN LATERAL (
        SELECT true AS kept FROM unique_ends u WHERE u.event_id = k.event_id AND u.expires_at > (SELECT now FROM clock)
        OFFSET 0) AS u ON true
), fresh AS MATERIALIZED (
    SELECT nextval('events_id_seq') AS id, f.*
    FROM (
        SELECT input.*, named.version, named.event_id AS before
        FROM input LEFT JOIN named USING (place)
        WHERE named.holds IS NOT TRUE
        ORDER BY place) AS f
), inserted AS (
    INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, delay_until, enqueued_at, notified_at, unique_seconds, line, ordering_key)
    SELECT id, canvas_id, module, name, modifier, value, due, (SELECT now FROM clock),
        CASE WHEN NOT head OR $8::boolean AND due <= (SELECT now FROM clock) + $9::bigint * interval '1 microsecond'
            THEN (SELECT now FROM clock) END,
        unique_seconds, CASE WHEN ordering_key = '' THEN 0 WHEN due <= (SELECT now FROM clock) THEN 1 ELSE 3 END, ordering_key
    FROM fresh
    ORDER BY place
    RETURNING id, notified_at IS NOT NULL AS announced, canvas_id, line, ordering_key
), placed AS (
    INSERT INTO event_lines (event_id, stage, canvas_id, line)
    SELECT id, 1, canvas_id, events_v2_line(1, '', '', ordering_key) FROM inserted WHERE line = 1
), renamed AS (
    UPDATE unique_keys k SET event_id = fresh.id FROM fresh WHERE k.ctid = fresh.version
), forgotten AS (
    DELETE FROM unique_ends u WHERE u.event_id = ANY (ARRAY(SELECT before FROM fresh WHERE before IS NOT NULL))
)
SELECT coalesce(inserted.id, named.event_id), coalesce(inserted.announced AND input.head, false),
    (SELECT pg_notify('` + owedChannel + `', '') IS NULL WHERE $10::boolean AND EXISTS (SELECT FROM inserted)) AS woken,
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

func insertUniqueArgs(events []eventqueue.NewEvent, announce eventqueue.Announce) []any {
	keys, times := make([]*string, len(events)), make([]int32, len(events))
	for i := range events {
		if events[i].UniqueKey != "" {
			keys[i] = &events[i].UniqueKey
		}
		times[i] = int32((events[i].UniqueFor + time.Second - 1) / time.Second)
	}
	orderingKeys := make([]string, len(events))
	for i := range events {
		orderingKeys[i] = events[i].OrderingKey
	}
	return append(insertArgs(events, announce), keys, times, orderingKeys, headsOf(events))
}

// headsOf tells which events need a notification: of those that go into one line
// together the first is enough, since the end of each has the next one notified.
// One with a UniqueKey may not be inserted, so that others cannot rely on it, and
// one with a delay takes its place later.
func headsOf(events []eventqueue.NewEvent) []bool {
	type line struct {
		canvas eventqueue.CanvasID
		key    string
	}
	heads := make([]bool, len(events))
	seen := map[line]bool{}
	for i := range events {
		e := &events[i]
		of := line{e.Canvas, e.OrderingKey}
		alone := e.OrderingKey == "" || e.UniqueKey != "" || e.Delay != 0 || !e.DelayUntil.IsZero()
		heads[i] = alone || !seen[of]
		seen[of] = seen[of] || !alone
	}
	return heads
}

// answer is what became of each event of the batch.
func (k keyed) answer(inserted []eventqueue.Inserted) ([]eventqueue.Inserted, error) {
	if len(inserted) != len(k.events) {
		return nil, fmt.Errorf("%d events became %d rows: events_v2 or unique_keys has a trigger or a rule that keeps rows out; take it away",
			len(k.events), len(inserted))
	}
	answers := make([]eventqueue.Inserted, len(k.places))
	told := make([]bool, len(inserted))
	for i, place := range k.places {
		answers[i] = inserted[place]
		if told[place] {
			answers[i].Repeat, answers[i].Announced = true, false
		}
		told[place] = true
	}
	return answers, nil
}

// insertUnique sends everything in one round trip, in a transaction of its own if
// there is none yet.
func (s *Store) insertUnique(ctx context.Context, in eventqueue.DB, events []eventqueue.NewEvent, announce eventqueue.Announce) ([]eventqueue.Inserted, error) {
	k := keyedOf(events)
	inserted := make([]eventqueue.Inserted, 0, len(k.events))
	queries := []query{{
		forms:     forms{skips: lockKeysSQL},
		arguments: k.lockArgs(),
		read:      func(rows pgx.Rows) error { rows.Close(); return rows.Err() },
	}}
	for chunk := range slices.Chunk(k.events, insertChunk) {
		queries = append(queries, query{
			forms:     forms{skips: insertUniqueSQL},
			arguments: insertUniqueArgs(chunk, announce),
			read: func(rows pgx.Rows) (err error) {
				inserted, err = pgx.AppendRows(inserted, rows, scanUnique)
				return err
			},
		})
	}
	var err error
	if in == nil {
		err = s.run(ctx, skipping, queries...)
	} else {
		err = within(ctx, in, queries)
	}
	if err != nil {
		return nil, err
	}
	return k.answer(inserted)
}

func scanUnique(row pgx.CollectableRow) (r eventqueue.Inserted, err error) {
	err = row.Scan(&r.ID, &r.Announced, nil, &r.Repeat)
	return r, err
}

// The types of the arrays among the parameters: see arrayTypes.
var (
	lockArrayTypes   = map[int]uint32{0: pgtype.UUIDArrayOID, 1: pgtype.TextArrayOID}
	uniqueArrayTypes = map[int]uint32{10: pgtype.TextArrayOID, 11: pgtype.Int4ArrayOID,
		12: pgtype.TextArrayOID, 13: pgtype.BoolArrayOID}
)

// insertUniqueSQLTx is insertUnique in a transaction of database/sql.
func insertUniqueSQLTx(ctx context.Context, in *sql.Tx, events []eventqueue.NewEvent, announce eventqueue.Announce) (_ []eventqueue.Inserted, err error) {
	k := keyedOf(events)
	lock, err := literals(k.lockArgs(), lockArrayTypes)
	if err != nil {
		return nil, err
	}
	for _, s := range []struct {
		sql  string
		args []any
	}{{keepSQL, nil}, {planSQL, nil}, {lockKeysSQL, lock}} {
		if _, err := in.ExecContext(ctx, s.sql, s.args...); err != nil {
			return nil, err
		}
	}
	types := map[int]uint32{}
	for i, oid := range arrayTypes {
		types[i] = oid
	}
	for i, oid := range uniqueArrayTypes {
		types[i] = oid
	}
	inserted := make([]eventqueue.Inserted, 0, len(k.events))
	for chunk := range slices.Chunk(k.events, insertChunk) {
		args, err := literals(insertUniqueArgs(chunk, announce), types)
		if err != nil {
			return nil, err
		}
		if inserted, err = appendUnique(ctx, in, inserted, args); err != nil {
			return nil, err
		}
	}
	if _, err := in.ExecContext(ctx, putBackSQL); err != nil {
		return nil, err
	}
	return k.answer(inserted)
}

// literals writes arrays as text, for any driver of database/sql.
func literals(args []any, arrays map[int]uint32) ([]any, error) {
	types := pgtype.NewMap()
	for i, oid := range arrays {
		literal, err := types.Encode(oid, pgtype.TextFormatCode, args[i], nil)
		if err != nil {
			return nil, fmt.Errorf("encode parameter %d of the insert: %w", i+1, err)
		}
		args[i] = string(literal)
	}
	return args, nil
}

func appendUnique(ctx context.Context, in *sql.Tx, inserted []eventqueue.Inserted, args []any) (_ []eventqueue.Inserted, err error) {
	rows, err := in.QueryContext(ctx, insertUniqueSQL, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r eventqueue.Inserted
		var woken sql.NullBool
		if err := rows.Scan(&r.ID, &r.Announced, &woken, &r.Repeat); err != nil {
			return nil, err
		}
		inserted = append(inserted, r)
	}
	return inserted, rows.Err()
}

// A key that was given to another event since the page was read is looked at once
// more, and left; one that somebody is writing is skipped.
const forgetKeysSQL = `
WITH page AS MATERIALIZED (
    SELECT canvas_id, key, event_id
    FROM unique_keys
    WHERE (canvas_id, key) > ($1::uuid, $2::text)
    ORDER BY canvas_id, key
    LIMIT $3
), free AS MATERIALIZED (
    SELECT k.version
    FROM page
    LEFT JOIN LATERAL (
        SELECT true AS queued FROM events_v2 e WHERE e.id = page.event_id OFFSET 0) AS e ON true
    LEFT JOIN LATERAL (
        SELECT true AS kept FROM unique_ends u WHERE u.event_id = page.event_id AND u.expires_at > clock_timestamp()
        OFFSET 0) AS u ON true
    CROSS JOIN LATERAL (
        SELECT k.ctid AS version FROM unique_keys k
        WHERE k.canvas_id = page.canvas_id AND k.key = page.key AND k.event_id = page.event_id
          AND e.queued IS NULL AND u.kept IS NULL
        FOR UPDATE SKIP LOCKED) AS k
), gone AS (
    DELETE FROM unique_keys k WHERE k.ctid = ANY (ARRAY(SELECT version FROM free)) RETURNING k.event_id
), ends AS (
    DELETE FROM unique_ends u WHERE u.event_id = ANY (ARRAY(SELECT event_id FROM gone))
), last AS (
    SELECT canvas_id, key FROM page ORDER BY canvas_id DESC, key DESC LIMIT 1
)
SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM page), (SELECT canvas_id FROM last), (SELECT key FROM last)`

// ForgetKeys implements eventqueue.UniqueStore.
func (s *Store) ForgetKeys(ctx context.Context, after eventqueue.UniqueKey, limit int) (forgotten int, next eventqueue.UniqueKey, err error) {
	var seen int
	var canvas *[16]byte
	var key *string
	err = s.run(ctx, skipping, query{
		forms:     forms{skips: forgetKeysSQL},
		arguments: []any{[16]byte(after.Canvas), after.Key, limit},
		read: func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&forgotten, &seen, &canvas, &key}, func() error { return nil })
			return err
		},
	})
	if err != nil || seen < limit || canvas == nil {
		return forgotten, eventqueue.UniqueKey{}, err
	}
	return forgotten, eventqueue.UniqueKey{Canvas: *canvas, Key: *key}, nil
}
