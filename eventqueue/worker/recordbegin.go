package worker

import (
	"context"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/internal/logkey"
)

// beginRecorder records the beginning of runs.
type beginRecorder struct {
	part
	reporter   *reporter
	releaser   *releaser
	unanswered *unansweredClaims
}

// record records that the runs of claimed events begin, where that has to be known before they do
// (I18): an earlier claim of each has expired, and it is not known whether its run had begun. It
// returns those whose runs may begin, and lets go of the others.
func (b *beginRecorder) record(ctx context.Context, first []candidate) (recorded []candidate) {
	if len(first) == 0 {
		return nil
	}
	claims := make([]Claim, len(first))
	for i, l := range first {
		claims[i] = Claim{Event: l.result.Event.ID, Attempt: l.result.Attempt, ID: l.result.ClaimID}
	}
	written, refused, err := renewAround(ctx, b.store, claims)
	for _, r := range refused {
		b.log.Error("the database refuses to record that the run of this event begins, and of no other for it; it does not run; "+
			"check its row, and the triggers and constraints of its table", zap.Stringer(logkey.Event, r.Item.Event), zap.Error(r.Err))
	}
	if err != nil {
		b.log.Warn("could not record that runs begin; their events are released", zap.Int(logkey.Count, len(first)), zap.Error(err))
	}
	done, lost := idSet(written.Done), idSet(written.Lost)
	back := map[eventqueue.ClaimID][]eventqueue.EventID{}
	for _, l := range first {
		id := l.result.Event.ID
		if done[id] {
			l.result.RowID = 0 // the row was moved
			recorded = append(recorded, l)
			continue
		}
		if !lost[id] {
			back[l.result.ClaimID] = append(back[l.result.ClaimID], id)
		}
		b.requeue(l)
	}
	for claim, ids := range back {
		b.unanswered.add(claim, ids)
	}
	return recorded
}

// requeue is for an event whose claim failed.
func (b *beginRecorder) requeue(l candidate) {
	out := Outcome{Event: l.result.Event.ID, Canvas: l.result.Event.Canvas, Handler: l.result.Event.Handler(),
		Label: machine.LockClaimFailed, To: machine.Follow(machine.LockClaim, machine.LockClaimFailed).To,
		Delay: claimFailedDelay + b.config.Jitter(claimFailedDelay)}
	b.reporter.report(out)
	b.releaser.letGo(l.delivery, answerTo(l.delivery, out))
}
