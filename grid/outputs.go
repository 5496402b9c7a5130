package grid

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/sqlstate"
)

// outputs is the table grid_outputs.
type outputs struct {
	db eventqueue.DB
}

// storedOutput is the row of a complete action. Without an Output the action was
// skipped.
type storedOutput struct {
	Action     string // see rowOf
	Definition []byte
	Output     *string
}

const storedSQL = `
SELECT action, definition, output
FROM grid_outputs
WHERE event_id = $1`

// of returns the saved outputs of a run.
func (o outputs) of(ctx context.Context, event eventqueue.EventID) ([]storedOutput, error) {
	rows, err := o.db.Query(ctx, storedSQL, int64(event))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[storedOutput])
}

// rowOf names the row of a step: its action and its definition, so that the versions of a program that a rolling
// deployment runs side by side each keep their own outputs. No action has a / in its name. Rows of versions before
// these have the name alone.
func rowOf(s *step) string { return s.name + "/" + hex.EncodeToString(s.fingerprint[:]) }

// The fence (I5): FOR SHARE waits for a claim that is being written, and makes other
// claims wait until this statement is committed. So either the next attempt sees this
// row, or this one is refused. A row that is there is not changed: it can only be this very
// row, after an answer that was lost.
const saveSQL = `
WITH held AS MATERIALIZED (
    SELECT id, canvas_id FROM events_v2
    WHERE id = $1 AND attempts = $2 AND coalesce(claim_id - attempts, 0) = $6 AND locked_at IS NOT NULL
    FOR SHARE
), written AS (
    INSERT INTO grid_outputs (event_id, action, canvas_id, definition, attempt, output)
    SELECT id, $3::text, canvas_id, $4::bytea, $2, $5::text FROM held
    ON CONFLICT (event_id, action) DO NOTHING
)
SELECT EXISTS (SELECT FROM held)`

// save writes the output of an action; nil means that the action was skipped. It
// returns eventqueue.ErrLockLost if the attempt no longer holds the event.
func (o outputs) save(ctx context.Context, run *eventqueue.Run, s *step, output json.RawMessage) error {
	var text *string
	if output != nil {
		text = new(string(output))
	}
	var held bool
	err := o.db.QueryRow(ctx, saveSQL, int64(run.ID), run.Attempt, rowOf(s), s.fingerprint[:], text, int64(run.ClaimID)).Scan(&held)
	if err == nil && !held {
		return eventqueue.ErrLockLost
	}
	return err
}

// saveWithRetries is save until it succeeds, the database refuses it, or ctx has ended: an action that has run should
// not run again because of a short outage of the database. It tries at least once, also after the end of ctx.
func (o outputs) saveWithRetries(ctx context.Context, run *eventqueue.Run, s *step, output json.RawMessage) error {
	var lost error
	err := sqlstate.Persist(ctx, 0, func(ctx context.Context) error {
		err := o.save(ctx, run, s, output)
		if errors.Is(err, eventqueue.ErrLockLost) {
			lost, err = err, nil
		}
		return err
	})
	return cmp.Or(err, lost)
}

const deleteOutputsSQL = `
DELETE FROM grid_outputs
WHERE event_id = $1`

// deleteOutputs deletes the outputs of a run in the transaction that completes it.
func deleteOutputs(ctx context.Context, db pgsession.DB, event eventqueue.EventID) error {
	_, err := db.Exec(ctx, deleteOutputsSQL, int64(event))
	return err
}
