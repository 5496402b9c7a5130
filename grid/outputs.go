package grid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
)

// outputs is the table grid_outputs.
type outputs struct {
	db eventqueue.DB
}

// kept is what is known of an action that has finished. Without an output there
// was nothing to be done.
type kept struct {
	Action     string
	Definition []byte
	Output     *string
}

const keptSQL = `
SELECT action, definition, output
FROM grid_outputs
WHERE event_id = $1`

// of returns what the actions of a run have put out so far.
func (o outputs) of(ctx context.Context, event eventqueue.EventID) ([]kept, error) {
	rows, err := o.db.Query(ctx, keptSQL, int64(event))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[kept])
}

// The fence (I5): FOR SHARE waits for a claim that is under way, and keeps others
// waiting until this is committed. So either the next attempt sees this row, or
// this one is refused. What has finished under the same definition stays as it
// is; it can only be this very row, after an answer that was lost.
const keepSQL = `
WITH held AS MATERIALIZED (
    SELECT id, canvas_id FROM events_v2
    WHERE id = $1 AND attempts = $2 AND locked_at IS NOT NULL
    FOR SHARE
), written AS (
    INSERT INTO grid_outputs (event_id, action, canvas_id, definition, attempt, output)
    SELECT id, $3::text, canvas_id, $4::bytea, $2, $5::text FROM held
    ON CONFLICT (event_id, action) DO UPDATE
    SET definition = excluded.definition, attempt = excluded.attempt, output = excluded.output, created_at = excluded.created_at
    WHERE grid_outputs.definition <> excluded.definition
)
SELECT EXISTS (SELECT FROM held)`

// keep writes what an action of a run has put out; nil is nothing to be done. It
// returns eventqueue.ErrLockLost when the attempt does not hold the event any more.
func (o outputs) keep(ctx context.Context, run *eventqueue.Run, s *step, output json.RawMessage) error {
	var text *string
	if output != nil {
		text = new(string(output))
	}
	var held bool
	err := o.db.QueryRow(ctx, keepSQL, int64(run.ID), run.Attempt, s.name, s.fingerprint[:], text).Scan(&held)
	if err == nil && !held {
		return eventqueue.ErrLockLost
	}
	return err
}

const (
	// keepTakes bounds one try to keep an output, keepWait is the wait between two.
	keepTakes = 5 * time.Second
	keepWait  = 200 * time.Millisecond
)

// keepSurely tries until it succeeds, the attempt has lost the event, or ctx has
// ended: an action that has run should not run again because the database was
// away for a moment. It tries at least once, also after the end of ctx.
func (o outputs) keepSurely(ctx context.Context, run *eventqueue.Run, s *step, output json.RawMessage) error {
	for {
		once, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTakes)
		err := o.keep(once, run, s, output)
		cancel()
		if err == nil || errors.Is(err, eventqueue.ErrLockLost) || !passes(err) {
			return err
		}
		select {
		case <-time.After(keepWait):
		case <-ctx.Done():
			return fmt.Errorf("%w, and the run may not last longer: %w", err, context.Cause(ctx))
		}
	}
}

// passes tells whether an error of the database is one that time may mend: a
// connection that was lost, a server that is busy or restarts, a deadlock.
func passes(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return true
	}
	switch refused.Code[:min(2, len(refused.Code))] {
	case "08", "40", "53", "55", "57":
		return true
	default:
		return false
	}
}

const forgetSQL = `
DELETE FROM grid_outputs
WHERE event_id = $1`

// forget removes the outputs of a run in the transaction that completes it.
func forget(ctx context.Context, db eventqueue.DB, event eventqueue.EventID) error {
	_, err := db.Exec(ctx, forgetSQL, int64(event))
	return err
}
