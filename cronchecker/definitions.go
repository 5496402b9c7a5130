package cronchecker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
)

var (
	// ErrTaken is returned by Definitions.Add if the canvas already has a definition
	// of that name.
	ErrTaken = errors.New("exists already: remove or replace it, or choose another name")
	// ErrNotFound is returned by methods of Definitions for a definition that does
	// not exist.
	ErrNotFound = errors.New("does not exist")
)

// MaxNext is the largest number of slots that Definitions.Next returns.
const MaxNext = 1000

// Definitions manages the cron definitions of a database, for operators. Each method
// blocks for one statement. On an error it changes nothing, unless ctx ends while it
// runs. All methods are safe for concurrent use, also while checkers run.
type Definitions struct {
	db eventqueue.DB
}

// NewDefinitions makes a Definitions on a pool or a transaction, which the caller
// closes.
func NewDefinitions(db eventqueue.DB) *Definitions { return NewDefinitionsIn("", db) }

// NewDefinitionsIn is NewDefinitions for the queue in a schema; "" is public.
func NewDefinitionsIn(schema pgsession.Schema, db eventqueue.DB) *Definitions {
	return &Definitions{schema.On(db)}
}

// The update reads the clock once more, because it may have waited for a checker.
// Because of the WHERE, a taken name returns no row.
const addSQL = `
INSERT INTO cron_definitions AS d (canvas_id, name, schedule, time_zone, missed, starts_at, skip_if_paused, skip_if_running)
VALUES ($1, $2, $3, $4, $5::text::cron_missed_policy, clock_timestamp(), $7, $8)
ON CONFLICT ON CONSTRAINT cron_definitions_once DO UPDATE
SET schedule = excluded.schedule, time_zone = excluded.time_zone, missed = excluded.missed,
    enabled = true, skip_if_paused = excluded.skip_if_paused, skip_if_running = excluded.skip_if_running,
    starts_at = CASE WHEN d.enabled AND ` + startsReadableSQL + `
        AND (d.schedule, d.time_zone, d.missed) = (excluded.schedule, excluded.time_zone, excluded.missed) THEN d.starts_at ELSE clock_timestamp() END
WHERE $6::boolean
RETURNING ` + definitionColumns

// Add adds an enabled definition. Its first slot is the next one from now by the
// database's clock.
//
// If the canvas has a definition of that name, Add returns ErrTaken, or replaces it if
// replace is true. The replaced definition keeps its id; slots that were due under the
// old schedule and have no event yet get none. A definition that is enabled and has the
// same schedule and policy already keeps its start (I14), also if its Skips change. An error names the field that is wrong.
func (s *Definitions) Add(ctx context.Context, d NewDefinition, replace bool) (Definition, error) {
	if err := d.normalize(); err != nil {
		return Definition{}, fmt.Errorf("add cron definition: %w", err)
	}
	rows, err := s.db.Query(ctx, addSQL, [16]byte(d.Canvas), d.Name, d.Schedule, d.TimeZone, string(d.Missed), replace, d.SkipIfPaused, d.SkipIfRunning)
	added, err := one(rows, err)
	if errors.Is(err, ErrNotFound) {
		err = ErrTaken
	}
	return added, described(err, "add", d.Canvas, d.Name)
}

// Validate names the first field that makes no sense.
func (d NewDefinition) Validate() error { return d.normalize() }

// normalize checks the definition and fills in the defaults.
func (d *NewDefinition) normalize() error {
	asStored := Definition{Canvas: d.Canvas, Name: d.Name}
	if err := asStored.check(); err != nil {
		return err
	}
	schedule, err := ParseSchedule(d.Schedule, d.TimeZone)
	if err != nil {
		return err
	}
	d.Schedule, d.TimeZone = schedule.String(), schedule.Zone().String()
	d.Missed, err = ParseMissed(string(d.Missed))
	return err
}

const listSQL = `
SELECT ` + definitionColumns + `
FROM cron_definitions d
WHERE $1::uuid IS NULL OR d.canvas_id = $1
ORDER BY d.canvas_id, d.name`

// List returns the definitions of a canvas, or of all canvases for nil, ordered
// by canvas and name.
func (s *Definitions) List(ctx context.Context, canvas *eventqueue.CanvasID) ([]Definition, error) {
	rows, err := s.db.Query(ctx, listSQL, (*[16]byte)(canvas))
	if err != nil {
		return nil, fmt.Errorf("list cron definitions: %w", err)
	}
	list, err := pgx.CollectRows(rows, scanDefinition)
	if err != nil {
		return nil, fmt.Errorf("list cron definitions: %w", err)
	}
	return list, nil
}

// The records are deleted with the definition: a new one of that name has another id.
const removeSQL = `
DELETE FROM cron_definitions d
WHERE d.canvas_id = $1 AND d.name = $2
RETURNING ` + definitionColumns

// Remove deletes a definition and its records. Emitted events stay, and no further one
// is emitted after Remove has returned. If the definition does not exist, the error is
// ErrNotFound.
func (s *Definitions) Remove(ctx context.Context, canvas eventqueue.CanvasID, name string) error {
	rows, err := s.db.Query(ctx, removeSQL, [16]byte(canvas), name)
	_, err = one(rows, err)
	return described(err, "remove", canvas, name)
}

// Enabling an enabled definition does not move its start (I14), unless that is a time that
// Go cannot represent.
const setEnabledSQL = `
UPDATE cron_definitions d
SET enabled = $3,
    starts_at = CASE WHEN $3 AND NOT d.enabled OR NOT ` + startsReadableSQL + ` THEN clock_timestamp() ELSE d.starts_at END
WHERE d.canvas_id = $1 AND d.name = $2
RETURNING ` + definitionColumns

// SetEnabled switches a definition on or off. Once it is off, no event is emitted for
// it. Slots that pass while it is off never get an event, whatever its policy for missed
// slots. If the definition does not exist, the error is ErrNotFound.
func (s *Definitions) SetEnabled(ctx context.Context, canvas eventqueue.CanvasID, name string, enabled bool) error {
	rows, err := s.db.Query(ctx, setEnabledSQL, [16]byte(canvas), name, enabled)
	_, err = one(rows, err)
	return described(err, "enable or disable", canvas, name)
}

const getSQL = `
SELECT clock_timestamp(), ` + definitionColumns + `
FROM cron_definitions d
WHERE d.canvas_id = $1 AND d.name = $2`

// Next returns the next n slots of a definition by the database's clock, in its time
// zone. n is 1 to MaxNext. For a disabled definition these are the slots that it would
// have. If the definition does not exist, the error is ErrNotFound.
func (s *Definitions) Next(ctx context.Context, canvas eventqueue.CanvasID, name string, n int) ([]time.Time, error) {
	if n < 1 || n > MaxNext {
		return nil, fmt.Errorf("next cron slots: n is %d: it must be from 1 to %d", n, MaxNext)
	}
	_, schedule, after, err := s.get(ctx, canvas, name)
	if err != nil {
		return nil, err
	}
	slots := make([]time.Time, n)
	for i := range slots {
		slots[i] = schedule.Next(after)
		after = slots[i]
	}
	return slots, nil
}

// Preview returns a definition with what Schedule.Preview says of its next n slots, which are those of Next, or
// for an after that is not zero the first n slots of its schedule after that time. n is 1 to MaxNext. If the
// definition does not exist, the error is ErrNotFound.
func (s *Definitions) Preview(ctx context.Context, canvas eventqueue.CanvasID, name string, after time.Time, n int) (Definition, []PreviewedSlot, error) {
	if n < 1 || n > MaxNext {
		return Definition{}, nil, fmt.Errorf("preview cron slots: n is %d: it must be from 1 to %d", n, MaxNext)
	}
	d, schedule, next, err := s.get(ctx, canvas, name)
	if err != nil {
		return d, nil, err
	}
	if !after.IsZero() {
		next = after
	}
	return d, schedule.Preview(next, n), nil
}

// get reads a definition. Its next slots are those after a time: now by the database's clock, or its start.
func (s *Definitions) get(ctx context.Context, canvas eventqueue.CanvasID, name string) (d Definition, schedule Schedule, after time.Time, err error) {
	err = s.db.QueryRow(ctx, getSQL, [16]byte(canvas), name).Scan(append([]any{&after}, definitionTargets(&d)...)...)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotFound
	}
	if err == nil {
		schedule, err = ParseSchedule(d.Schedule, d.TimeZone)
	}
	if err == nil {
		err = d.check()
	}
	if d.StartsAt.After(after) {
		after = d.StartsAt
	}
	return d, schedule, after, described(err, "next slots of", canvas, name)
}

// one reads the only row of a statement. Without a row it returns ErrNotFound.
func one(rows pgx.Rows, err error) (Definition, error) {
	if err != nil {
		return Definition{}, err
	}
	d, err := pgx.CollectExactlyOneRow(rows, scanDefinition)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotFound
	}
	return d, err
}

func scanDefinition(row pgx.CollectableRow) (d Definition, err error) {
	err = row.Scan(definitionTargets(&d)...)
	return d, err
}

// described adds the operation and the definition to an error.
func described(err error, operation string, canvas eventqueue.CanvasID, name string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s cron definition %q of canvas %s: %w", operation, name, canvas, err)
}
