package worker

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/logkey"
	"eventsv2/internal/sqlstate"
)

// askedBatch is the result of claiming the events of a batch.
type askedBatch struct {
	results []ClaimResult
	// waits has the events that were not asked about, or without success, and how long until each
	// is tried again. dropped are those of them that another notification will bring back.
	waits   map[eventqueue.EventID]time.Duration
	dropped map[eventqueue.EventID]bool

	answered bool  // at least one statement was answered
	refusals int   // how many were refused
	err      error // the last failure not caused by a single row
	unsure   []refusedClaim
}

// refusedClaim is an event whose claim was refused, though perhaps not because of it.
type refusedClaim struct {
	id  eventqueue.EventID
	err error
}

// mostRefusals is how many statements may be refused in the search for the rows to blame. After
// that all are taken for refused: a table or a right is missing, for example.
const mostRefusals = 24

// asker claims what may run.
type asker struct {
	part
	known      eventqueue.HandlerSet
	refused    refusedRows
	unanswered *unansweredClaims
}

// ask claims the events of a batch that may run. A row that the database cannot write fails the
// statement for all of them, so a refused batch is halved until that row is alone. It is recorded,
// and from then on it is tried by itself, in growing intervals (I15). An error means that, as far
// as is known, nothing was claimed.
func (w *asker) ask(ctx context.Context, ids []eventqueue.EventID) (*askedBatch, error) {
	a := &askedBatch{waits: map[eventqueue.EventID]time.Duration{}, dropped: map[eventqueue.EventID]bool{}}
	batch, alone := w.refused.part(ids, a)
	if len(batch) > 0 {
		w.askHalving(ctx, batch, a)
	}
	for _, id := range alone {
		w.askHalving(ctx, []eventqueue.EventID{id}, a)
	}
	most := maxRefusedWait
	if !a.answered {
		if a.err == nil && len(a.unsure) > 0 {
			a.err = w.askForNothing(ctx, a.unsure[0].err)
		}
		if a.err != nil {
			return nil, a.err
		}
		most = maxUnsureWait
	}
	for _, r := range a.unsure {
		w.setAside(r, most, a)
	}
	if a.err != nil {
		w.log.Warn("could not claim a part of a batch; it is looked at again", zap.Error(a.err))
	}
	return a, nil
}

// askForNothing tries to claim an event that does not exist, after every statement of the batch was
// refused. If the database answers this, the rows were to blame, and no other event has to wait for
// them; otherwise it returns the refusal.
func (w *asker) askForNothing(ctx context.Context, refusal error) error {
	if _, err := w.store.Claim(ctx, []eventqueue.EventID{0}, w.known, w.config.LockTimeout, newClaimID()); err != nil {
		return refusal
	}
	return nil
}

// askHalving is ask for a part of the batch.
func (w *asker) askHalving(ctx context.Context, ids []eventqueue.EventID, a *askedBatch) {
	claim := newClaimID()
	results, err := w.store.Claim(ctx, ids, w.known, w.config.LockTimeout, claim)
	if err != nil && sqlstate.MayHaveCommitted(err) {
		w.unanswered.add(claim, ids)
	}
	switch {
	case err == nil:
		a.answered = true
		a.results = append(a.results, results...)
		w.refused.remove(ids)
	case !sqlstate.Refused(err) || !a.answered && a.refusals >= mostRefusals:
		a.err = err
		for _, id := range ids {
			a.waits[id] = claimFailedDelay + w.config.Jitter(claimFailedDelay)
		}
	case len(ids) > 1:
		a.refusals++
		half := len(ids) / 2
		w.askHalving(ctx, ids[:half], a)
		w.askHalving(ctx, ids[half:], a)
	case sqlstate.BlamesRow(err):
		w.setAside(refusedClaim{ids[0], err}, maxRefusedWait, a)
		a.answered = true // as good as answered: others must not wait for this one
	default: // the row, if others can be claimed
		a.refusals++
		a.unsure = append(a.unsure, refusedClaim{ids[0], err})
	}
}

// setAside makes an event wait that the database refuses to claim, for at most so long.
func (w *asker) setAside(r refusedClaim, most time.Duration, a *askedBatch) {
	wait := w.refused.put(r.id, most)
	a.waits[r.id] = wait
	w.log.Error("the database refuses to claim this event, and no other for it; it is tried again by itself, in growing intervals; "+
		"look at its row, and at what else is on its table",
		zap.Stringer(logkey.Event, r.id), zap.Duration(logkey.Wait, wait), zap.Error(r.err))
}

// How long an event waits that the database refuses to claim: at first, at most, and at most while
// the cause may be something else that can be repaired; and how many of them a worker records. One
// that is deleted is found again by halving.
const (
	minRefusedWait = time.Second
	maxRefusedWait = eventqueue.MaxRequeue
	maxUnsureWait  = time.Minute
	maxRefusedRows = 10_000
)

// refusedRows records the events that the database refuses to claim.
type refusedRows struct {
	mu   sync.Mutex
	rows map[eventqueue.EventID]refusedRow
}

type refusedRow struct {
	wait time.Duration
	next time.Time // of the next try, by this machine's monotonic clock
}

// part separates the ids that may be claimed together from those of refused rows. Those that have
// to wait longer go into a.
func (r *refusedRows) part(ids []eventqueue.EventID, a *askedBatch) (batch, alone []eventqueue.EventID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rows) == 0 {
		return ids, nil
	}
	now := time.Now()
	for _, id := range ids {
		row, refused := r.rows[id]
		switch {
		case !refused:
			batch = append(batch, id)
		case now.Before(row.next):
			// The notification with which it was refused comes again then.
			a.waits[id], a.dropped[id] = row.next.Sub(now), true
		default:
			alone = append(alone, id)
		}
	}
	return batch, alone
}

// put records that an event was refused, for the first time or again, and returns how long it has
// to wait, at most so long.
func (r *refusedRows) put(id eventqueue.EventID, most time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	row, again := r.rows[id]
	if !again {
		r.makeRoom()
		row.wait = minRefusedWait / 2
	}
	row.wait = min(2*row.wait, most)
	row.next = time.Now().Add(row.wait / 2) // an event that is tried a little early is not put off once more
	r.rows[id] = row
	return row.wait
}

// makeRoom deletes any row when there are too many.
func (r *refusedRows) makeRoom() {
	if r.rows == nil {
		r.rows = map[eventqueue.EventID]refusedRow{}
	}
	for id := range r.rows {
		if len(r.rows) < maxRefusedRows {
			return
		}
		delete(r.rows, id)
	}
}

// remove deletes events that could be claimed, or asked about.
func (r *refusedRows) remove(ids []eventqueue.EventID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rows) == 0 {
		return
	}
	for _, id := range ids {
		delete(r.rows, id)
	}
}
