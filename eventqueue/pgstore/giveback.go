package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// A claim that is given back was never run. A new notification is pending for its
// event: the one with which it was claimed may come much later. A locked row is left to
// its writer, or until its claim expires. claim_id is the number of the claim plus its
// attempts (claimSQL), so it names the claim only together with them (I4).
//
// An event that was cancelled meanwhile keeps its lock until that expires, and is then ended by the next claim: without a lock it would
// wait like any other, and an emit with its unique key would replace what is not run any more.
const giveBackSQL = `
UPDATE events_v2 e
SET locked_at = NULL, notified_at = NULL
WHERE e.ctid = ANY (ARRAY(
        SELECT e.ctid FROM events_v2 e
        WHERE e.id = ANY ($1::bigint[]) AND e.claim_id - e.attempts = $2 AND e.locked_at IS NOT NULL AND NOT ` + cancelWantedSQL + `
        FOR UPDATE SKIP LOCKED))
  AND e.claim_id - e.attempts = $2 AND e.locked_at IS NOT NULL AND NOT ` + cancelWantedSQL + `
RETURNING e.id`

// GiveBack implements worker.Store.
func (s *Store) GiveBack(ctx context.Context, claim eventqueue.ClaimID, ids []eventqueue.EventID) (given []eventqueue.EventID, err error) {
	err = s.run(ctx, skipping, query{
		forms:     forms{skips: giveBackSQL},
		arguments: []any{int64s(ids), int64(claim)},
		read: func(rows pgx.Rows) error {
			given, err = pgx.CollectRows(rows, pgx.RowTo[eventqueue.EventID])
			return err
		},
	})
	return given, err
}
