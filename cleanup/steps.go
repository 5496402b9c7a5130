package cleanup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/internal/sqlstate"
)

// Each statement of a course is a transaction of its own.

const findOwnSQL = `
SELECT ` + columns + `
FROM cleanups c
WHERE ` + ofKey + ` AND c.event_id = $5`

// findOwn returns the row that earlier runs of the event have written, if there is one.
func (c *course) findOwn(ctx context.Context) (own Cleanup, begun bool, err error) {
	own.Key = c.pub.Key
	err = c.db.QueryRow(ctx, findOwnSQL, keyed(own.Key, int64(c.run.ID))...).Scan(own.targets()...)
	if errors.Is(err, pgx.ErrNoRows) {
		return own, false, nil
	}
	if err != nil {
		return own, false, fmt.Errorf("find the cleanup of event %s: %w", c.run.ID, err)
	}
	return own, true, nil
}

// held is true while the claim of run $5 with token $6 and number $8 is the last one (I5).
const held = `EXISTS (SELECT FROM events_v2 e WHERE e.id = $5 AND e.attempts = $6 AND coalesce(e.claim_id - e.attempts, 0) = $8)`

// A cleanup that a crashed run had claimed belongs to the event of that run, which is in
// events_v2. So the condition free has an exception for $5, the run's own event. The update
// only takes the row version that was selected (xmin). If it had to wait for another
// claim, it finds another version and does nothing, since the statement's snapshot may be
// too old to see the event of that claim.
const claimNextSQL = `
WITH next AS MATERIALIZED (
    SELECT c.id, c.xmin AS version
    FROM cleanups c
    WHERE ` + ofKey + ` AND ` + held + `
      AND c.id <> ALL ($7::bigint[])
      AND c.expires_at <= clock_timestamp()
      AND NOT EXISTS (SELECT FROM events_v2 e WHERE e.id = c.event_id)
      AND NOT EXISTS (SELECT FROM events_v2 e WHERE e.id = c.cleaned_by AND e.id <> $5)
    ORDER BY c.cleaned_by NULLS FIRST, c.id
    LIMIT 1
), claimed AS (
    UPDATE cleanups c
    SET cleaned_by = $5
    FROM next
    WHERE c.id = next.id AND c.xmin = next.version
    RETURNING ` + columns + `
)
SELECT next.id, c.*
FROM next
LEFT JOIN claimed c ON true`

// claimNext claims an expired cleanup for this event: the one whose last try is the
// longest ago, or that was never tried. If there is none, its ID is 0. claimed is false
// if another event was faster.
func (c *course) claimNext(ctx context.Context, seen []int64) (next Cleanup, claimed bool, err error) {
	var id int64
	var open, resent *bool // NULL, like all of the row, when it was not claimed
	targets := append([]any{&id}, next.targets()...)
	targets[2], targets[len(targets)-1] = &open, &resent
	args := keyed(c.pub.Key, int64(c.run.ID), c.run.Attempt, seen, int64(c.run.ClaimID))
	err = c.db.QueryRow(ctx, claimNextSQL, args...).Scan(targets...)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Cleanup{}, false, nil
	case err != nil:
		return Cleanup{}, false, fmt.Errorf("claim what has expired: %w", err)
	}
	claimed = next.ID != 0
	next.ID, next.Key, next.Open, next.resent = ID(id), c.pub.Key, open != nil && *open, resent != nil && *resent
	return next, claimed, nil
}

const recordedSQL = `
SELECT EXISTS (SELECT FROM cleanups c WHERE ` + ofKey + ` AND c.id <> $5 AND c.token = $6::text::uuid AND c.data = $7)`

// recorded reports whether what was sent with the token of a cleanup has a row of its own.
func (c *course) recorded(ctx context.Context, of Cleanup, data []byte) (recorded bool, err error) {
	err = c.db.QueryRow(ctx, recordedSQL, keyed(c.pub.Key, int64(of.ID), of.Token, stored(data))...).Scan(&recorded)
	return recorded, err
}

const dropSQL = `
DELETE FROM cleanups c
WHERE ` + ofKey + ` AND c.id = $5 AND c.cleaned_by = $6`

// drop deletes the row of a complete cleanup. The exception is a row that belongs to its
// own event again, because an operator has retried the event.
func (c *course) drop(ctx context.Context, done Cleanup) error {
	_, err := c.db.Exec(ctx, dropSQL, keyed(c.pub.Key, int64(done.ID), int64(c.run.ID))...)
	if err != nil {
		return fmt.Errorf("delete cleanup %s, which is done: %w", done.ID, err)
	}
	return nil
}

// If another event is cleaning up this intent, because this event had ended and was
// then retried by an operator, the row belongs to this event again. What this run may send stays for its time from now on.
const intendSQL = `
INSERT INTO cleanups AS c (canvas_id, component, topic, inputs_hash, event_id, expires_at)
SELECT $1, $2, $3, $4, $5::bigint, clock_timestamp() + $7::bigint * interval '1 microsecond'
WHERE ` + held + `
ON CONFLICT ON CONSTRAINT cleanups_once DO UPDATE
SET cleaned_by = CASE WHEN c.data IS NULL THEN NULL ELSE c.cleaned_by END,
    expires_at = CASE WHEN c.data IS NULL THEN excluded.expires_at ELSE c.expires_at END,
    resent = c.resent OR c.data IS NULL
RETURNING ` + columns

// intend records that the event is about to publish, and returns the row. The row may be
// that of an earlier run. This is the last step that is fenced.
func (c *course) intend(ctx context.Context) (own Cleanup, err error) {
	own.Key = c.pub.Key
	args := keyed(own.Key, int64(c.run.ID), c.run.Attempt, time.Duration(c.pub.TTL).Microseconds(), int64(c.run.ClaimID))
	err = c.db.QueryRow(ctx, intendSQL, args...).Scan(own.targets()...)
	if errors.Is(err, pgx.ErrNoRows) {
		err = eventqueue.ErrLockLost
	}
	if err != nil {
		return own, fmt.Errorf("write the intent of event %s: %w", c.run.ID, err)
	}
	return own, nil
}

// rememberFor is how long remember tries after the handler's time is over.
const rememberFor = 10 * time.Second

// Not fenced: a run that has sent something must be able to record it. The publication
// gets a free row of its own if the row has other data by now, of a concurrent run of
// the event, or was deleted, because the event had ended and it was cleaned up. A try whose answer was lost may have
// written either row.
const rememberSQL = `
WITH filled AS (
    UPDATE cleanups c
    SET data = $6, cleaned_by = NULL, expires_at = clock_timestamp() + $7::bigint * interval '1 microsecond'
    WHERE ` + ofKey + ` AND c.event_id = $5 AND (c.data IS NULL OR c.data = $6)
    RETURNING c.id
)
INSERT INTO cleanups (canvas_id, component, topic, inputs_hash, token, data, expires_at)
SELECT $1, $2, $3, $4, $8::text::uuid, $6, clock_timestamp() + $7::bigint * interval '1 microsecond'
WHERE NOT EXISTS (SELECT FROM filled)
  AND NOT EXISTS (SELECT FROM cleanups c WHERE ` + ofKey + ` AND c.token = $8::text::uuid AND c.data = $6 AND c.event_id IS NULL)`

// remember records the data with which the sent publication can be deleted. It tries until it succeeds, or the database
// refuses it: otherwise nothing would ever delete the publication.
func (c *course) remember(ctx context.Context, own Cleanup, data []byte) error {
	args := keyed(own.Key, int64(c.run.ID), stored(data), time.Duration(c.pub.TTL).Microseconds(), own.Token)
	err := sqlstate.Persist(ctx, rememberFor, func(ctx context.Context) error {
		_, err := c.db.Exec(ctx, rememberSQL, args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("remember what was sent: %w", err)
	}
	return nil
}
