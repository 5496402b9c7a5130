package sim

import (
	"context"
	"fmt"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// SetConcurrencyLimit implements operate.ConcurrencyLimitStore.
func (s *port) SetConcurrencyLimit(ctx context.Context, limit operate.ConcurrencyLimit) (before bool, err error) {
	err = s.do(ctx, "SetConcurrencyLimit", fmt.Sprint(limit, " to ", limit.Max), func() (string, error) {
		if before, err = s.db.SetConcurrencyLimit(ctx, limit); err != nil {
			return "", err
		}
		s.p.w.limitChanged(limit)
		return fmt.Sprintf("before %t", before), nil
	})
	return onlyIf(before, err), err
}

// ConcurrencyLimits implements operate.ConcurrencyLimitStore.
func (s *port) ConcurrencyLimits(ctx context.Context, canvas eventqueue.CanvasID) (limits []operate.ConcurrencyLimit, err error) {
	err = s.do(ctx, "ConcurrencyLimits", canvas.String(), func() (string, error) {
		limits, err = s.db.ConcurrencyLimits(ctx, canvas)
		return "", err
	})
	return onlyIf(limits, err), err
}

// FillGroups implements operate.ConcurrencyLimitStore.
func (s *port) FillGroups(ctx context.Context, limit operate.ConcurrencyLimit, after string) (advanced []eventqueue.Event, next string, err error) {
	err = s.do(ctx, "FillGroups", fmt.Sprint(limit, " after ", after), func() (string, error) {
		defer s.p.w.takingBack(s.p)()
		advanced, next, err = s.db.FillGroups(ctx, limit, after)
		byID(advanced)
		return fmt.Sprint(idsOf(advanced, func(e eventqueue.Event) eventqueue.EventID { return e.ID })), err
	})
	return onlyIf(advanced, err), onlyIf(next, err), err
}
