package sim

import (
	"context"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/lostanswer"
	"eventsv2/test/oracle"
)

// MarkPending implements eventqueue.PendingStore.
func (s *port) MarkPending(ctx context.Context, ids []eventqueue.EventID) error {
	return s.do(ctx, "Owe", fmt.Sprint(ids), func() (string, error) { return "", s.mem.MarkPending(ctx, ids) })
}

// TakePending implements eventqueue.PendingStore.
func (s *port) TakePending(ctx context.Context, ids []eventqueue.EventID) (taken []eventqueue.Notification, err error) {
	began := time.Now()
	err = s.do(ctx, "TakePending", fmt.Sprint(ids), func() (string, error) {
		taken, err = s.mem.TakePending(ctx, ids)
		return eventsOf(taken), err
	})
	if err != nil || time.Since(began) >= lostanswer.AnswerTakes {
		s.p.w.takeUnanswered(s.p, ids)
	}
	return onlyIf(taken, err), err
}

// takeUnanswered records that notifications were taken, or not, and that nobody was told in time.
func (w *world) takeUnanswered(p *process, ids []eventqueue.EventID) {
	for _, id := range ids {
		if id < forgedFrom {
			w.add(oracle.Record{Kind: oracle.TakeUnanswered, Actor: p.name, Event: id})
		}
	}
}
