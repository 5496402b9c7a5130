package cronchecker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/mayrun"
	"eventsv2/internal/refusal"
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
    CASE WHEN NOT ` + startsReadableSQL + ` THEN d.starts_at::text END, d.skip_if_paused, d.skip_if_running`

const startsReadableSQL = `(d.starts_at >= '0001-01-01 00:00Z' AND d.starts_at < '10000-01-01 00:00Z')`

// definitionTargets are where definitionColumns are scanned to; NULL is zero.
func definitionTargets(d *Definition) []any {
	return []any{
		(*zeronull.Int8)(&d.ID), (*zeronull.UUID)(&d.Canvas), (*zeronull.Text)(&d.Name),
		(*zeronull.Text)(&d.Schedule), (*zeronull.Text)(&d.TimeZone), (*zeronull.Text)(&d.Missed),
		&d.Enabled, (*zeronull.Timestamptz)(&d.StartsAt), (*zeronull.Timestamptz)(&d.LastSlot), (*zeronull.Text)(&d.badStart),
		(*nullBool)(&d.SkipIfPaused), (*nullBool)(&d.SkipIfRunning),
	}
}

// nullBool is a boolean of which NULL is false.
type nullBool bool

// Scan implements sql.Scanner.
func (b *nullBool) Scan(value any) error {
	*b = value == true
	return nil
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
		starts, last, met, err := lock(ctx, p.schema.On(tx), slots)
		if err != nil {
			return fmt.Errorf("lock the cron definitions: %w", err)
		}
		ours := stillDue(slots, starts, last)
		emitted = len(ours)
		if len(ours) == 0 {
			return nil
		}
		skips := make([]Skip, len(ours))
		var events []eventqueue.NewEvent
		for i, slot := range ours {
			if skips[i] = met[slot.Cron].Next(); skips[i] == "" {
				events = append(events, slot.Event)
			}
		}
		var ids []eventqueue.EventID
		if len(events) > 0 {
			if ids, err = tx.Emit(ctx, events...); err != nil {
				return refusedEmit(err)
			}
		}
		return record(ctx, p.schema.On(tx), ours, skips, ids)
	})
	if err != nil {
		return 0, err
	}
	return emitted, nil
}

// refusedEmit marks an error that says that an event is not valid, so that it stops no other.
func refusedEmit(err error) error {
	var invalid *eventqueue.InvalidError
	if errors.As(err, &invalid) {
		return &refusal.Emit{Err: err}
	}
	return err
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

// What the slots of the definitions that skip some meet: a rule that would hold a new event back, and events that have
// not ended. The others are not asked for.
var metSQL = `
SELECT d.id, d.skip_if_paused AND ` + mayrun.RuledSQL("e") + `,
    d.skip_if_running AND EXISTS (SELECT FROM events_v2 q WHERE q.canvas_id = e.canvas_id AND q.module = e.module AND q.name = e.name AND q.modifier = e.modifier),
    d.skip_if_running
FROM cron_definitions d
CROSS JOIN LATERAL (SELECT d.canvas_id, '` + Module + `' AS module, d.name, '` + Modifier + `' AS modifier, 9223372036854775807 AS id) AS e
WHERE d.id = ANY ($1::bigint[]) AND (d.skip_if_paused OR d.skip_if_running)`

// lock returns when each of the definitions that could be locked starts, and the
// last recorded slot of those that have one, and what their slots meet, in one round trip.
func lock(ctx context.Context, db eventqueue.DB, slots []Slot) (starts, last map[CronID]time.Time, met map[CronID]*Met, err error) {
	ids := make([]int64, len(slots))
	for i, slot := range slots {
		ids[i] = int64(slot.Cron)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	starts, last, met = map[CronID]time.Time{}, map[CronID]time.Time{}, map[CronID]*Met{}
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
	batch.Queue(metSQL, ids).Query(func(rows pgx.Rows) error {
		var id CronID
		var m Met
		_, err := pgx.ForEachRow(rows, []any{(*int64)(&id), &m.Paused, &m.Running, &m.Alone}, func() error {
			met[id] = new(m)
			return nil
		})
		return err
	})
	return starts, last, met, db.SendBatch(ctx, batch).Close()
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
INSERT INTO cron_records (cron_id, slot, event_id, skipped)
SELECT cron_id, slot, event_id, nullif(skipped, '')
FROM unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::text[]) AS passed (cron_id, slot, event_id, skipped)`

// record records slots; events has the events of the slots that are not skipped, in their order.
func record(ctx context.Context, db eventqueue.DB, slots []Slot, skips []Skip, events []eventqueue.EventID) error {
	crons, times, ids, reasons := make([]int64, len(slots)), make([]time.Time, len(slots)), make([]int64, len(slots)), make([]string, len(slots))
	for i, slot := range slots {
		crons[i], times[i], reasons[i] = int64(slot.Cron), slot.At, string(skips[i])
		if skips[i] == "" {
			ids[i], events = int64(events[0]), events[1:]
		}
	}
	if _, err := db.Exec(ctx, recordSQL, crons, times, ids, reasons); err != nil {
		return fmt.Errorf("record %d cron slots: %w", len(slots), err)
	}
	return nil
}

// prunedAtOnce bounds what one statement deletes.
const prunedAtOnce = 1000

const pruneSQL = `
WITH old AS MATERIALIZED (
    SELECT of.id, old.slot
    FROM unnest($1::bigint[]) AS of (id)
    CROSS JOIN LATERAL (SELECT max(slot) AS slot FROM cron_records WHERE cron_id = of.id) AS newest
    CROSS JOIN LATERAL (SELECT slot FROM cron_records
        WHERE cron_id = of.id AND slot < least(newest.slot, clock_timestamp() - $2::interval) ORDER BY slot LIMIT $3) AS old
    LIMIT $3
)
DELETE FROM cron_records r USING old WHERE r.cron_id = old.id AND r.slot = old.slot`

// Prune implements Store, in one statement.
func (p *Postgres) Prune(ctx context.Context, crons []CronID, olderThan time.Duration) error {
	ids := make([]int64, len(crons))
	for i, id := range crons {
		ids[i] = int64(id)
	}
	_, err := p.db.Exec(ctx, pruneSQL, ids, olderThan, prunedAtOnce)
	return err
}
