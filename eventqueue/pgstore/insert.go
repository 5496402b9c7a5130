package pgstore

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/internal/attributes"
	"eventsv2/internal/priority"
)

// pendingChannel, in the schema of the queue, is notified by a commit that leaves notifications pending. The relay
// listens to it.
const pendingChannel = "events_v2_pending"

// unpublishedChannel is notified as well by programs that could not publish. Workers
// listen to it and then find the events in the database. An emit by SQL wakes the relay
// only.
const unpublishedChannel = "events_v2_unpublished"

// lostPayload is the relay's payload on that channel when published notifications seem
// lost. Programs that could not publish send an empty payload.
const lostPayload = "lost"

// wokenBy names the channels that an insert of events notifies. It is never nil: drivers of
// database/sql get it as text.
func (s *Store) wokenBy(mode eventqueue.NotifyMode, events []eventqueue.NewEvent) []string {
	isLow := func(e eventqueue.NewEvent) bool { return e.Priority == priority.Low }
	switch {
	case mode == eventqueue.NotifyModeLater:
		return []string{s.channel(pendingChannel), s.channel(unpublishedChannel)}
	case mode == eventqueue.NotifyModeRelay || slices.ContainsFunc(events, isLow):
		return []string{s.channel(pendingChannel)}
	default:
		return []string{}
	}
}

// wakeSQL notifies the channels of an array.
const wakeSQL = `SELECT bool_and(events_v2_notify(channel, '')) FROM unnest(`

// A delay counts from the database's clock; a delay_until that has passed means
// now. An event whose notification goes out right after the commit has
// notified_at set here, so that publishing costs no second write; one of low priority is left to
// the relay. Attributes, parents and priorities are NULL for a batch that has none, which unnest fills up. by_sql is NULL, since programs count
// what they emit. The
// rows come back as they were inserted: in the order of place, and of their ids.
const insertSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
)
INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until, enqueued_at, notified_at, attributes, parent_id, by_sql, priority)
SELECT canvas_id, module, name, modifier, value, due, (SELECT now FROM clock),
    CASE WHEN $8::boolean AND priority IS DISTINCT FROM 'low' AND due <= (SELECT now FROM clock) + $9::bigint * interval '1 microsecond' THEN (SELECT now FROM clock) END,
    attributes::jsonb, parent_id, NULL, priority::event_priority
FROM (
    SELECT i.*, greatest(coalesce(i.until, (SELECT now FROM clock) + i.delay_us * interval '1 microsecond'), (SELECT now FROM clock)) AS due
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::bigint[], $11::text[], $12::bigint[], $13::text[])
        WITH ORDINALITY AS i (canvas_id, module, name, modifier, value, until, delay_us, attributes, parent_id, priority, place)) AS input
ORDER BY place
RETURNING id, notified_at IS NOT NULL AS notified, (` + wakeSQL + `$10::text[]) AS channel) AS woken`

// insertNowSQL is insertSQL for events without delays, which are most: at two thirds
// of its price. Canvases and handlers, of which there are few, come as a list of
// their own, and each event with its place there. A scan of a function returns its
// rows in order, so nothing has to be sorted.
const insertNowSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
)
INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until, enqueued_at, notified_at, attributes, parent_id, by_sql, priority)
SELECT ($1::uuid[])[handler], ($2::text[])[handler], ($3::text[])[handler], ($4::text[])[handler], value,
    (SELECT now FROM clock), (SELECT now FROM clock), CASE WHEN priority IS DISTINCT FROM 'low' THEN (SELECT now FROM clock WHERE $7::boolean) END,
    attributes::jsonb, parent_id, NULL, priority::event_priority
FROM unnest($5::text[], $6::int[], $9::text[], $10::bigint[], $11::text[]) AS i (value, handler, attributes, parent_id, priority)
RETURNING id, notified_at IS NOT NULL AS notified, (` + wakeSQL + `$8::text[]) AS channel) AS woken`

// insertChunk is how many events one statement takes.
const insertChunk = 1000

// Insert implements eventqueue.EmitStore.
func (s *Store) Insert(ctx context.Context, in eventqueue.DB, events []eventqueue.NewEvent, mode eventqueue.NotifyMode) ([]eventqueue.Inserted, error) {
	in = s.pool.In(in)
	if hasKeys(events) {
		return s.insertKeyed(ctx, in, 0, events, mode)
	}
	statement, arguments := insertSQL, s.insertArgs
	if !slices.ContainsFunc(events, isDelayed) {
		statement, arguments = insertNowSQL, s.insertNowArgs
	}
	if len(events) <= insertChunk {
		query := s.pool.QueryAtAnyLevel // it reads nothing
		if in != nil {
			query = in.Query
		}
		rows, err := query(ctx, statement, arguments(events, mode)...)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, scanInserted)
	}
	// One round trip, and one transaction if there is none yet.
	inserted := make([]eventqueue.Inserted, 0, len(events))
	var queries []query
	for chunk := range slices.Chunk(events, insertChunk) {
		queries = append(queries, insertion(&inserted, statement, arguments(chunk, mode), scanInserted))
	}
	var db batcher = s.pool
	if in != nil {
		db = in
	}
	if err := send(ctx, db, queries, skipping, nil, nil); err != nil {
		return nil, err
	}
	return inserted, nil
}

// insertion is the statement that adds to inserted what it has inserted.
func insertion(inserted *[]eventqueue.Inserted, statement string, arguments []any, scan pgx.RowToFunc[eventqueue.Inserted]) query {
	return query{
		forms:     forms{skips: statement},
		arguments: arguments,
		read: func(rows pgx.Rows) (err error) {
			*inserted, err = pgx.AppendRows(*inserted, rows, scan)
			return err
		},
	}
}

func scanInserted(row pgx.CollectableRow) (r eventqueue.Inserted, err error) {
	err = row.Scan(&r.ID, &r.MustNotify, nil)
	return r, err
}

func (s *Store) insertArgs(events []eventqueue.NewEvent, mode eventqueue.NotifyMode) []any {
	n := len(events)
	canvases, values := make([][16]byte, n), make([]string, n)
	modules, names, modifiers := make([]string, n), make([]string, n), make([]string, n)
	untils, delays := make([]*time.Time, n), make([]int64, n)
	for i := range events {
		e := &events[i]
		canvases[i], values[i] = e.Canvas, string(e.Value)
		modules[i], names[i], modifiers[i] = e.Module, e.Name, e.Modifier
		delays[i] = roundUpMicroseconds(e.Delay)
		if !e.DelayUntil.IsZero() {
			untils[i] = new(storableTime(e.DelayUntil))
		}
	}
	texts, parents, priorities := originArgs(events)
	return []any{canvases, modules, names, modifiers, values, untils, delays,
		mode == eventqueue.NotifyModeSelf, eventqueue.MaxRequeue.Microseconds(), s.wokenBy(mode, events), texts, parents, priorities}
}

func isDelayed(e eventqueue.NewEvent) bool { return e.Delay != 0 || !e.DelayUntil.IsZero() }

func (s *Store) insertNowArgs(events []eventqueue.NewEvent, mode eventqueue.NotifyMode) []any {
	values, places := make([]string, len(events)), make([]int32, len(events))
	var canvases [][16]byte
	var modules, names, modifiers []string
	seen := map[eventqueue.CanvasHandler]int32{}
	for i := range events {
		e := &events[i]
		at := eventqueue.CanvasHandler{Canvas: e.Canvas, Key: e.Handler()}
		place, seenBefore := seen[at]
		if !seenBefore {
			canvases, modules = append(canvases, e.Canvas), append(modules, e.Module)
			names, modifiers = append(names, e.Name), append(modifiers, e.Modifier)
			place = int32(len(canvases)) // arrays of Postgres begin at 1
			seen[at] = place
		}
		values[i], places[i] = string(e.Value), place
	}
	texts, parents, priorities := originArgs(events)
	return []any{canvases, modules, names, modifiers, values, places,
		mode == eventqueue.NotifyModeSelf, s.wokenBy(mode, events), texts, parents, priorities}
}

// originArgs are the attributes, the parents and the priorities of events. A list in which all are
// missing is nil, so that it is neither made nor sent.
func originArgs(events []eventqueue.NewEvent) (texts []*string, parents []*int64, priorities []*string) {
	for i := range events {
		if len(events[i].Attributes) > 0 {
			if texts == nil {
				texts = make([]*string, len(events))
			}
			texts[i] = new(attributes.Encode(events[i].Attributes))
		}
		if events[i].ParentID != 0 {
			if parents == nil {
				parents = make([]*int64, len(events))
			}
			parents[i] = new(int64(events[i].ParentID))
		}
		if set := priority.Stored(events[i].Priority); set != nil {
			if priorities == nil {
				priorities = make([]*string, len(events))
			}
			priorities[i] = set
		}
	}
	return texts, parents, priorities
}

// roundUpMicroseconds keeps a delay from becoming shorter by the database's
// unit (I6).
func roundUpMicroseconds(d time.Duration) int64 {
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}

// storableTime does the same to a time. Years that no timestamptz can hold have
// passed, as all before 1970 have, and any of these means now.
func storableTime(t time.Time) time.Time {
	if epoch := time.Unix(0, 0); t.Before(epoch) {
		return epoch
	}
	return t.Add(time.Microsecond - 1).Truncate(time.Microsecond)
}
