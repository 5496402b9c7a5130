package sim

import (
	"context"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/internal/lostanswer"
	"eventsv2/test/oracle"
)

// MarkPending implements eventqueue.PendingStore.
func (s *port) MarkPending(ctx context.Context, ids []eventqueue.EventID) error {
	err := s.do(ctx, "Owe", fmt.Sprint(ids), func() (string, error) { return "", s.db.MarkPending(ctx, ids) })
	if err != nil {
		s.p.w.takeUnanswered(s.p, ids)
	}
	return err
}

// TakePending implements eventqueue.PendingStore.
func (s *port) TakePending(ctx context.Context, ids []eventqueue.EventID) (taken []eventqueue.Notification, err error) {
	began := time.Now()
	err = s.do(ctx, "TakePending", fmt.Sprint(ids), func() (string, error) {
		taken, err = s.db.TakePending(ctx, ids)
		byEvent(taken)
		return eventsOf(taken), err
	})
	if err != nil || time.Since(began) >= lostanswer.AnswerTakes {
		s.p.w.takeUnanswered(s.p, ids)
	}
	return onlyIf(taken, err), err
}

// TakeDue implements maintenance.RelayStore. Its caller has what it takes marked as pending
// again if the answer is lost.
func (s *port) TakeDue(ctx context.Context, within time.Duration, limit int, await maintenance.AwaitTake) (taken []eventqueue.Notification, err error) {
	over := func(error) {}
	err = s.do(ctx, "TakeDue", "", func() (string, error) {
		taken, err = s.db.TakeDue(ctx, within, limit, func(ids []eventqueue.EventID) func(error) {
			over = await(ids)
			return func(error) {} // that is known when the answer comes
		})
		byEvent(taken)
		return eventsOf(taken), err
	})
	over(err)
	if err != nil {
		s.p.w.takeUnanswered(s.p, idsOf(taken, func(n eventqueue.Notification) eventqueue.EventID { return n.Event }))
	}
	return onlyIf(taken, err), err
}

// takeUnanswered records that notifications were taken, or marked as pending, or not, and that nobody was
// told in time: they are marked again.
func (w *world) takeUnanswered(p *process, ids []eventqueue.EventID) {
	for _, id := range ids {
		if id < forgedFrom {
			w.add(oracle.Record{Kind: oracle.TakeUnanswered, Actor: p.name, Event: id})
		}
	}
}
