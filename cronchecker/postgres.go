package cronchecker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
)

// Postgres is the Store in the queue's own database. It is safe for concurrent use, and
// holds no connection between calls.
type Postgres struct {
	db     eventqueue.DB // for statements of the queue
	queue  *eventqueue.Queue
	schema pgsession.Schema
}

// NewPostgres makes a Postgres. db (usually a pool) and queue must be on the same
// database. The caller closes both.
func NewPostgres(db eventqueue.DB, queue *eventqueue.Queue) *Postgres {
	return NewPostgresIn("", db, queue)
}

// NewPostgresIn is NewPostgres for the queue in a schema; "" is public.
func NewPostgresIn(schema pgsession.Schema, db eventqueue.DB, queue *eventqueue.Queue) *Postgres {
	return &Postgres{db: schema.On(db), queue: queue, schema: schema}
}

// definitionColumns are in the order of scanDefinition, of a definition d. SQL can write
// times that Go cannot represent: they are returned as texts, so that only the definition
// with such a time cannot be read.
const definitionColumns = `
    d.id, d.canvas_id, d.name, d.schedule, d.time_zone, d.missed::text, coalesce(d.enabled, false),
    CASE WHEN ` + startsReadableSQL + ` THEN d.starts_at END,
    (SELECT r.slot FROM cron_records r WHERE r.cron_id = d.id AND isfinite(r.slot) ORDER BY r.slot DESC LIMIT 1),
    CASE WHEN NOT ` + startsReadableSQL + ` THEN d.starts_at::text END`

const startsReadableSQL = `(d.starts_at >= '0001-01-01 00:00Z' AND d.starts_at < '10000-01-01 00:00Z')`

// definitionTargets are where definitionColumns are scanned to; NULL is zero.
func definitionTargets(d *Definition) []any {
	return []any{
		(*zeronull.Int8)(&d.ID), (*zeronull.UUID)(&d.Canvas), (*zeronull.Text)(&d.Name),
		(*zeronull.Text)(&d.Schedule), (*zeronull.Text)(&d.TimeZone), (*zeronull.Text)(&d.Missed),
		&d.Enabled, (*zeronull.Timestamptz)(&d.StartsAt), (*zeronull.Timestamptz)(&d.LastSlot), (*zeronull.Text)(&d.badStart),
	}
}

// One row per enabled definition, or a single one with nothing but the clock.
const loadSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
)
SELECT clock.now, ` + definitionColumns + `
FROM clock
LEFT JOIN cron_definitions d ON d.enabled
ORDER BY d.id`

// Load implements Store, in one statement.
func (p *Postgres) Load(ctx context.Context) (Snapshot, error) {
	var snapshot Snapshot
	rows, err := p.db.Query(ctx, loadSQL)
	if err != nil {
		return Snapshot{}, err
	}
	snapshot.Definitions, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d Definition, err error) {
		err = row.Scan(append([]any{&snapshot.Now}, definitionTargets(&d)...)...)
		return d, err
	})
	if len(snapshot.Definitions) == 1 && snapshot.Definitions[0].ID == 0 {
		snapshot.Definitions = nil
	}
	return snapshot, err
}

// Emit implements Store. It locks the definitions' rows first, so that one checker at a
// time emits for a definition, and then reads the recorded slots. The primary key of
// cron_records also refuses a second record of a slot (I10). The events and their
// records commit together.
func (p *Postgres) Emit(ctx context.Context, slots []Slot) (int, error) {
	var emitted int
	err := p.queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		starts, last, err := lock(ctx, p.schema.On(tx), slots)
		if err != nil {
			return fmt.Errorf("lock the cron definitions: %w", err)
		}
		ours := stillDue(slots, starts, last)
		emitted = len(ours)
		if len(ours) == 0 {
			return nil
		}
		events := make([]eventqueue.NewEvent, len(ours))
		for i, slot := range ours {
			events[i] = slot.Event
		}
		ids, err := tx.Emit(ctx, events...)
		if err != nil {
			return err
		}
		return record(ctx, p.schema.On(tx), ours, ids)
	})
	if err != nil {
		return 0, err
	}
	return emitted, nil
}

// A frozen checker blocks its definitions for the others for this long.
const boundIdleSQL = `
SELECT set_config('idle_in_transaction_session_timeout', '30s', true)`

// Definitions that another checker has locked are skipped: no checker waits, and one
// stuck definition does not delay the rest of its batch.
const lockDefinitionsSQL = `
SELECT d.id, d.starts_at
FROM cron_definitions d
WHERE d.id = ANY ($1::bigint[]) AND d.enabled AND ` + startsReadableSQL + `
ORDER BY d.id
FOR NO KEY UPDATE SKIP LOCKED`

// A statement of its own, so that its snapshot is newer than the locks.
const lastSlotsSQL = `
SELECT d.id, r.slot
FROM unnest($1::bigint[]) AS d (id)
CROSS JOIN LATERAL (SELECT slot FROM cron_records WHERE cron_id = d.id AND isfinite(slot) ORDER BY slot DESC LIMIT 1) r`

// lock returns when each of the definitions that could be locked starts, and the
// last recorded slot of those that have one, in one round trip.
func lock(ctx context.Context, db eventqueue.DB, slots []Slot) (starts, last map[CronID]time.Time, err error) {
	ids := make([]int64, len(slots))
	for i, slot := range slots {
		ids[i] = int64(slot.Cron)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	starts, last = map[CronID]time.Time{}, map[CronID]time.Time{}
	into := func(times map[CronID]time.Time) func(pgx.Rows) error {
		return func(rows pgx.Rows) error {
			var id CronID
			var at time.Time
			_, err := pgx.ForEachRow(rows, []any{(*int64)(&id), &at}, func() error {
				times[id] = at
				return nil
			})
			return err
		}
	}
	batch := &pgx.Batch{}
	batch.Queue(boundIdleSQL)
	batch.Queue(lockDefinitionsSQL, ids).Query(into(starts))
	batch.Queue(lastSlotsSQL, ids).Query(into(last))
	return starts, last, db.SendBatch(ctx, batch).Close()
}

// stillDue returns the slots to emit: those of locked definitions, after their last
// recorded slot and after their start, each once.
func stillDue(slots []Slot, starts, last map[CronID]time.Time) []Slot {
	ours := make([]Slot, 0, len(slots))
	for _, slot := range slots {
		start, locked := starts[slot.Cron]
		if locked && slot.At.After(start) && slot.At.After(last[slot.Cron]) {
			last[slot.Cron] = slot.At
			ours = append(ours, slot)
		}
	}
	return ours
}

const recordSQL = `
INSERT INTO cron_records (cron_id, slot, event_id)
SELECT cron_id, slot, event_id
FROM unnest($1::bigint[], $2::timestamptz[], $3::bigint[]) AS emitted (cron_id, slot, event_id)`

func record(ctx context.Context, db eventqueue.DB, slots []Slot, events []eventqueue.EventID) error {
	crons, times, ids := make([]int64, len(slots)), make([]time.Time, len(slots)), make([]int64, len(slots))
	for i, slot := range slots {
		crons[i], times[i], ids[i] = int64(slot.Cron), slot.At, int64(events[i])
	}
	if _, err := db.Exec(ctx, recordSQL, crons, times, ids); err != nil {
		return fmt.Errorf("record %d cron slots: %w", len(slots), err)
	}
	return nil
}
