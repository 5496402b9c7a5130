package pgstore

import (
	"context"

	"eventsv2/eventqueue/worker"
)

// renew also answers for the rows that it has written and whose cancellation is wanted: with NULL.
var renew = fenced(`, ended AS (
    UPDATE events_v2 e SET locked_at = clock.now, begun = e.begun OR e.suspect IS NULL, lost_run = e.lost_run AND e.suspect IS NOT NULL FROM clock
    WHERE ` + heldSQL + ` RETURNING e.id, ` + cancelWantedSQL + ` AS cancelled
)`).and(`
UNION ALL SELECT id, NULL FROM ended WHERE cancelled`)

// Renew implements worker.Store.
func (s *Store) Renew(ctx context.Context, claims []worker.Claim) (written worker.WriteResult, err error) {
	err = s.waitThenSkip(ctx, []query{fencedWrite(&written, renew, columnsOfClaims(claims))})
	return written, err
}

// begin records that the runs of suspects begin, $5 in all in their worker.
var begin = fenced(`, ended AS (
    UPDATE events_v2 e SET locked_at = clock.now, begun = true, lost_run = false, suspect = least($5, ` + anyCompanySQL + `) FROM clock WHERE ` + heldSQL + ` RETURNING e.id
)`)

// BeginRuns implements worker.Store.
func (s *Store) BeginRuns(ctx context.Context, claims []worker.Claim, together int) (written worker.WriteResult, err error) {
	err = s.waitThenSkip(ctx, []query{fencedWrite(&written, begin, columnsOfClaims(claims), together)})
	return written, err
}

func columnsOfClaims(claims []worker.Claim) claimColumns {
	c := claimColumns{ids: make([]int64, len(claims)), attempts: make([]int32, len(claims)), claimIDs: make([]int64, len(claims))}
	for i, claim := range claims {
		c.ids[i], c.attempts[i], c.claimIDs[i] = int64(claim.Event), claim.Attempt, int64(claim.ID)
	}
	return c
}

// writeProgress writes how far runs are, $5 and $6, each of the claim that its event has.
var writeProgress = fenced(`, ended AS (
    UPDATE events_v2 e SET progress = ROW(e.attempts, how.fraction, how.note, clock.now)::event_progress
    FROM clock, unnest($1::bigint[], $5::float8[], $6::text[]) AS how (id, fraction, note)
    WHERE ` + heldSQL + ` AND how.id = e.id RETURNING e.id
)`)

// WriteProgress implements worker.ProgressStore.
func (s *Store) WriteProgress(ctx context.Context, claims []worker.Claim, progress []worker.Progress) (written worker.WriteResult, err error) {
	fractions, notes := make([]float64, len(progress)), make([]string, len(progress))
	for i, p := range progress {
		fractions[i], notes[i] = p.Fraction, p.Note
	}
	err = s.waitThenSkip(ctx, []query{fencedWrite(&written, writeProgress, columnsOfClaims(claims), fractions, notes)})
	return written, err
}
