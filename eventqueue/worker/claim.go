package worker

import (
	"context"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/logkey"
	"eventsv2/internal/refusal"
	"eventsv2/internal/sqlstate"
)

// askedBatch is the result of claiming the events of a batch.
type askedBatch struct {
	results []ClaimResult
	// waits has the events that were not asked about, or without success, and how long until each
	// is tried again. dropped will come again with another notification.
	waits   map[eventqueue.EventID]time.Duration
	dropped map[eventqueue.EventID]bool

	answered   bool  // at least one statement was answered
	blamesRows bool  // a claim of nothing was answered
	refusesAll bool  // it was not
	err        error // the last failure not caused by a single row
	unsure     []refusedClaim
}

// refusedClaim is an event whose claim was refused, though perhaps not because of it.
type refusedClaim struct {
	id  eventqueue.EventID
	err error
}

// claimer claims what may run.
type claimer struct {
	part
	number     eventqueue.WorkerNumber
	breakers   *breakers
	refused    refusal.Rows[eventqueue.EventID]
	unanswered *unansweredClaims
	late       lateClaims
}

// ask claims the events of a batch that may run. A row that the database cannot write fails the
// statement for all of them, so a refused batch is halved until that row is alone. It is recorded,
// and from then on it is tried by itself, in growing intervals (I15). An error means that, as far
// as is known, nothing was claimed.
func (c *claimer) ask(ctx context.Context, ids []eventqueue.EventID) (*askedBatch, error) {
	a := &askedBatch{waits: map[eventqueue.EventID]time.Duration{}, dropped: map[eventqueue.EventID]bool{}}
	batch, alone, waits := c.refused.Part(ids)
	for id, wait := range waits {
		// The notification with which it was refused comes again then.
		a.waits[id], a.dropped[id] = wait, true
	}
	if len(batch) > 0 {
		c.askHalving(ctx, batch, a)
	}
	for _, id := range alone {
		c.askHalving(ctx, []eventqueue.EventID{id}, a)
	}
	most := refusal.MaxWait
	if !a.answered {
		if a.err != nil {
			return nil, a.err
		}
		most = maxUnsureWait
	}
	for _, r := range a.unsure {
		c.setAside(r, most, a)
	}
	if a.err != nil {
		c.log.Warn("could not claim a part of a batch; trying again later", zap.Error(a.err))
	}
	return a, nil
}

// answersNothing tries to claim an event that does not exist, before the first row is blamed though
// every statement was refused. If the database answers this, the rows are to blame, however many of
// them come before one that can be claimed. Otherwise a table or a right is missing, for example.
func (c *claimer) answersNothing(ctx context.Context) bool {
	_, err := c.store.Claim(ctx, []eventqueue.EventID{0}, c.breakers.known, newClaimID(c.number))
	return err == nil
}

// askHalving is ask for a part of the batch.
func (c *claimer) askHalving(ctx context.Context, ids []eventqueue.EventID, a *askedBatch) {
	if a.refusesAll {
		c.askLater(ids, a)
		return
	}
	claim := newClaimID(c.number)
	results, err := c.store.Claim(ctx, ids, c.breakers.claimable(), claim)
	c.recordLate(ctx, err)
	if err != nil && sqlstate.MayHaveCommitted(err) {
		c.unanswered.add(claim, ids)
	}
	switch {
	case err == nil:
		a.answered = true
		if len(a.results) == 0 { // nearly always
			a.results = results
		} else {
			a.results = append(a.results, results...)
		}
		c.refused.Remove(ids)
	case !sqlstate.Refused(err):
		a.err = err
		c.askLater(ids, a)
	case len(ids) > 1:
		half := len(ids) / 2
		c.askHalving(ctx, ids[:half], a)
		c.askHalving(ctx, ids[half:], a)
	case sqlstate.ConcernsRow(err):
		c.setAside(refusedClaim{ids[0], err}, refusal.MaxWait, a)
		a.answered = true // as good as answered: others must not wait for this one
	case a.answered || a.blamesRows || c.answersNothing(ctx):
		a.blamesRows = true
		a.unsure = append(a.unsure, refusedClaim{ids[0], err})
	default:
		a.refusesAll, a.err = true, err
		c.askLater(ids, a)
	}
}

// askLater has events tried again that could not be asked about.
func (c *claimer) askLater(ids []eventqueue.EventID, a *askedBatch) {
	for _, id := range ids {
		a.waits[id] = claimFailedDelay + c.config.Jitter(claimFailedDelay)
	}
}

// setAside makes an event wait that the database refuses to claim, for at most so long.
func (c *claimer) setAside(r refusedClaim, most time.Duration, a *askedBatch) {
	wait := c.refused.Put(r.id, most)
	a.waits[r.id] = wait
	c.log.Error("the database refuses to claim this event, and no other for it; it is tried again by itself, in growing intervals; "+
		"check its row for values out of range, and its table for triggers, rules and constraints of your own",
		zap.Stringer(logkey.Event, r.id), zap.Duration(logkey.Wait, wait), zap.Error(r.err))
}

// maxUnsureWait is how long an event waits at most that the database refuses to claim, while the
// cause may be something else that can be repaired.
const maxUnsureWait = time.Minute
