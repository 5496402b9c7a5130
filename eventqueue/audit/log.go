package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
)

// Entry is a row of the log.
type Entry struct {
	// ID grows from entry to entry; entries of transactions at the same time may be written in
	// another order.
	ID int64
	// At is when the row was written, by the clock of the database.
	At time.Time
	Actor
	Action string
	// Canvas is nil for what belongs to none, or to several.
	Canvas *eventqueue.CanvasID
	// Target, Before and After are JSON; Before and After are nil where there was or is nothing.
	Target, Before, After json.RawMessage
}

// WithoutValues returns the entry without the values of events, for readers who may not see them.
func (e Entry) WithoutValues() Entry {
	e.Before, e.After = withoutValues(e.Before), withoutValues(e.After)
	return e
}

// withoutValues takes the values out of the events of a document. What is not an object of objects has none.
func withoutValues(document json.RawMessage) json.RawMessage {
	var events map[string]map[string]json.RawMessage
	if json.Unmarshal(document, &events) != nil {
		return document
	}
	for _, event := range events {
		delete(event, "value")
		delete(event, "value_sha256")
	}
	without, err := json.Marshal(events)
	if err != nil { // of what has just been read
		return nil
	}
	return without
}

// Filter selects entries by all of its fields that are set.
type Filter struct {
	// Canvases are those whose entries are selected; nil selects all, and those of no canvas.
	Canvases []eventqueue.CanvasID
	Actor    string
	// ActorKey selects those of the actor with this Actor.Key.
	ActorKey string
	Action   string
	// Event selects the changes of one event.
	Event eventqueue.EventID
	// Operation selects those of a change of many events.
	Operation uuid.UUID
}

// Log reads and prunes the log of one database. It is safe for concurrent use.
type Log struct{ pool *pgsession.Pool }

// NewLog makes a Log for the queue in a schema, on a pool, which the caller closes.
func NewLog(schema pgsession.Schema, pool *pgxpool.Pool) *Log {
	return &Log{pool: pgsession.On(pool, schema)}
}

const listSQL = `
SELECT id, at, actor, source, via, coalesce(operation_id, '00000000-0000-0000-0000-000000000000'), action, canvas_id, target::text, before::text, after::text,
    actor_key
FROM audit_log
WHERE ($1::bigint = 0 OR id < $1) AND ($2::uuid[] IS NULL OR canvas_id = ANY ($2)) AND ($3::text = '' OR actor = $3) AND ($4::text = '' OR action = $4)
  AND ($5::bigint = 0 OR target @> jsonb_build_object('events', jsonb_build_array($5))) AND ($6::uuid IS NULL OR operation_id = $6)
  AND ($8::text = '' OR actor_key = $8)
ORDER BY id DESC
LIMIT $7`

// List returns at most limit entries, the newest first, whose ids are below before; 0 is the
// beginning. It blocks for one statement, which reads the log until it has found limit of them.
func (l *Log) List(ctx context.Context, filter Filter, before int64, limit int) ([]Entry, error) {
	var canvases [][16]byte
	for _, canvas := range filter.Canvases {
		canvases = append(canvases, [16]byte(canvas))
	}
	if filter.Canvases != nil && canvases == nil {
		return nil, nil
	}
	var operation *[16]byte
	if filter.Operation != uuid.Nil {
		operation = (*[16]byte)(&filter.Operation)
	}
	rows, err := l.pool.Query(ctx, listSQL, before, canvases, filter.Actor, filter.Action, filter.Event, operation, limit, filter.ActorKey)
	if err != nil {
		return nil, fmt.Errorf("list the audit log: %w", err)
	}
	return pgx.CollectRows(rows, scanEntry)
}

func scanEntry(row pgx.CollectableRow) (e Entry, err error) {
	var canvas *[16]byte
	err = row.Scan(&e.ID, &e.At, &e.Name, &e.Source, &e.Via, (*[16]byte)(&e.Operation), &e.Action, &canvas,
		(*[]byte)(&e.Target), (*[]byte)(&e.Before), (*[]byte)(&e.After), &e.Key)
	e.Canvas = (*eventqueue.CanvasID)(canvas)
	return e, err
}

const pruneSQL = `
DELETE FROM audit_log
WHERE id = ANY (ARRAY(
    SELECT id FROM (SELECT id, at FROM audit_log ORDER BY id LIMIT $2) AS oldest WHERE at < clock_timestamp() - $1::interval))`

// Prune deletes entries that are older than an age, by the clock of the database, beginning with the
// oldest, and at most limit of them. It returns how many.
func (l *Log) Prune(ctx context.Context, olderThan time.Duration, limit int) (deleted int, err error) {
	tag, err := l.pool.Exec(ctx, pruneSQL, olderThan, limit)
	if err != nil {
		return 0, fmt.Errorf("prune the audit log: %w", err)
	}
	return int(tag.RowsAffected()), nil
}
