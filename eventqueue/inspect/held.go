package inspect

import (
	"context"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// heldShown is how many of the runs of a worker are shown, and heldRead how many are read of all workers.
const (
	heldShown = 5
	heldRead  = 5000
)

// Held lists the runs of a worker that had begun when it last renewed their locks. Runs that are shorter than
// that are not among them.
type Held struct {
	Worker eventqueue.WorkerNumber
	// Count is how many they are, and Oldest some of those with the lowest ids.
	Count  int
	Oldest []eventqueue.Event
}

// More is how many are not among Oldest.
func (h *Held) More() int { return h.Count - len(h.Oldest) }

// heldSQL reads along the index events_v2_begun.
const heldSQL = `
WITH begun AS MATERIALIZED (
    SELECT e.id, e.canvas_id, e.module, e.name, e.modifier, e.enqueued_at, e.claim_id - e.attempts AS claim
    FROM events_v2 e
    WHERE e.begun AND e.locked_at IS NOT NULL AND e.claim_id > e.attempts
    ORDER BY e.id LIMIT $1
)
SELECT id, canvas_id, module, name, modifier, enqueued_at, claim FROM begun ORDER BY id`

// Held returns what workers have in hand, by their numbers, and whether there are more runs than were read. Its cost
// is bounded.
func (r *Reader) Held(ctx context.Context) (held map[eventqueue.WorkerNumber]*Held, more bool, err error) {
	rows, err := r.pool.Query(ctx, heldSQL, heldRead)
	if err != nil {
		return nil, false, err
	}
	held, n := map[eventqueue.WorkerNumber]*Held{}, 0
	var e eventqueue.Event
	var claim eventqueue.ClaimID
	_, err = pgx.ForEachRow(rows, []any{&e.ID, (*[16]byte)(&e.Canvas), &e.Module, &e.Name, &e.Modifier, &e.EnqueuedAt, &claim}, func() error {
		n++
		of := held[claim.Worker()]
		if of == nil {
			of = &Held{Worker: claim.Worker()}
			held[of.Worker] = of
		}
		of.Count++
		if len(of.Oldest) < heldShown {
			of.Oldest = append(of.Oldest, e)
		}
		return nil
	})
	return held, n == heldRead, err
}
