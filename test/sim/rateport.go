package sim

import (
	"context"
	"fmt"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/oracle"
)

var _ operate.RateStore = (*port)(nil)

// TakeRate implements worker.RateTaker.
func (s *port) TakeRate(ctx context.Context, asks []worker.RateAsk) (answers []ratelimit.Answer, err error) {
	err = s.do(ctx, "TakeRate", describeAsks(asks), func() (string, error) {
		if answers, err = s.db.TakeRate(ctx, asks); err != nil {
			return "", err
		}
		granted := make([]int, len(asks))
		for i, ask := range asks {
			granted[i] = answers[i].Granted
			s.p.w.add(oracle.Record{Kind: oracle.Granted, Actor: s.p.name, Scope: ask.Scope, Granted: answers[i].Granted, Ran: ask.Ran})
		}
		return fmt.Sprint(granted), nil
	})
	return onlyIf(answers, err), err
}

func describeAsks(asks []worker.RateAsk) string {
	text := make([]string, len(asks))
	for i, ask := range asks {
		text[i] = fmt.Sprintf("%s want %d put off %d ran %d", ask.Scope, ask.Want, ask.PutOff, ask.Ran)
	}
	return fmt.Sprint(text)
}

// SetRateLimit implements operate.RateStore.
func (s *port) SetRateLimit(ctx context.Context, limit operate.RateLimit) (before *operate.RateLimit, err error) {
	err = s.do(ctx, "SetRateLimit", fmt.Sprint(limit), func() (string, error) {
		if before, err = s.db.SetRateLimit(ctx, limit); err == nil {
			s.p.w.rateChanged(limit)
		}
		return "", err
	})
	return onlyIf(before, err), err
}

// RemoveRateLimit implements operate.RateStore.
func (s *port) RemoveRateLimit(ctx context.Context, scope eventqueue.Scope) (removed bool, err error) {
	err = s.do(ctx, "RemoveRateLimit", fmt.Sprint(scope), func() (string, error) {
		if removed, err = s.db.RemoveRateLimit(ctx, scope); err == nil {
			s.p.w.rateChanged(operate.RateLimit{Scope: scope})
		}
		return fmt.Sprint(removed), err
	})
	return onlyIf(removed, err), err
}

// RateLimits implements operate.RateStore. Nobody asks here.
func (s *port) RateLimits(ctx context.Context, canvas *eventqueue.CanvasID) ([]operate.RateStatus, error) {
	return s.db.RateLimits(ctx, canvas)
}

// CheckRate implements operate.RateStore. Nobody asks here.
func (s *port) CheckRate(ctx context.Context, scope eventqueue.Scope) (ratelimit.Answer, error) {
	return s.db.CheckRate(ctx, scope)
}

// TakeLimited implements operate.RateStore.
func (s *port) TakeLimited(ctx context.Context, scope eventqueue.Scope, after operate.RatePlace, limit int) (due []eventqueue.Notification, next operate.RatePlace, err error) {
	err = s.do(ctx, "TakeLimited", fmt.Sprint(scope, " after ", after), func() (string, error) {
		due, next, err = s.db.TakeLimited(ctx, scope, after, limit)
		byEvent(due)
		for _, n := range due {
			s.p.w.add(oracle.Record{Kind: oracle.MadeDue, Actor: s.p.name, Event: n.Event, Due: s.p.w.row(n.Event).DelayUntil})
		}
		return eventsOf(due), err
	})
	return onlyIf(due, err), onlyIf(next, err), err
}
