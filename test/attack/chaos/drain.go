package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"eventsv2/test/attack/chaos/check"
	"eventsv2/test/attack/chaos/growth"
	"eventsv2/test/attack/harness"
)

const countWaitingSQL = `
SELECT (SELECT count(*) FROM events_v2 WHERE canvas_id <> $2), coalesce((SELECT max(slot) FROM cron_records WHERE cron_id = $1), 'epoch')`

// longest bounds the waiting for rest, in multiples of what the queue may take
// without getting anywhere.
const longest = 5

// drain lifts what holds events back and waits until no event is left. It gives
// up when the number of those that are left has not fallen for the time that
// -drain allows: what is left then is stuck, and a slow machine alone is no
// reason. After it nothing runs. It returns what has grown in a steady run, by the end of the load.
func (s *stage) drain(ctx context.Context, loaded time.Duration) (grown *growth.Report, err error) {
	watch, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	watching.Go(func() { probe(watch, s.control, s.faults) })
	watching.Go(func() { shift(watch, s.control, s.untouchable()) })
	s.cron.Until = time.Now().Add(-5 * time.Second) // a slot may take a moment
	_, _ = s.Drain(ctx, s.opts.drain, longest*s.opts.drain, func(ctx context.Context) (n int, complete bool, err error) {
		var slot time.Time
		err = errors.Join(s.storms.liftAll(ctx, s.control), s.unlimitRates(ctx),
			s.control.QueryRow(ctx, countWaitingSQL, s.cron.ID, s.untouchable()).Scan(&n, &slot))
		return n, !slot.Before(s.lastSlot()), err
	}) // what is left is on record
	if s.sampler != nil {
		grown = s.sampler.End(ctx, min(loaded, s.opts.load()))
	}
	return grown, s.fleet.stop()
}

// lastSlot is the last cron slot that must be there.
func (s *stage) lastSlot() time.Time {
	slots := s.cron.Slots()
	if len(slots) == 0 {
		return time.Time{}
	}
	return slots[len(slots)-1]
}

// verdict waits until the queue has come to rest, reads all records and has them checked.
func (s *stage) verdict(ctx context.Context, loaded time.Duration) (harness.Result, error) {
	grown, err := s.drain(ctx, loaded)
	if err != nil {
		return nil, err
	}
	s.Progress.Report("checking")
	e := check.Evidence{Limits: s.limits, Rates: s.rates, Cron: s.cron, Embedded: func(process string) bool { return process[:2] != "w4" }}
	s.emitters.Known(&e)
	rules, err := s.storms.left(ctx, s.control)
	if err != nil {
		return nil, err
	}
	if e.MissingDefaults, err = s.others.missing(ctx, s.Postgres.URL); err != nil {
		return nil, err
	}
	var added int
	e.Rules, added = s.storms.history()
	if err := e.Read(ctx, s.control, s.Dir, s.faults, rules); err != nil {
		return nil, err
	}
	return &result{opts: s.opts,
		findings: check.Check(e), loaded: loaded, attacks: s.attacks, unplanned: s.faults.Unplanned(), emitted: s.emitters.Emitted(), rulesAdded: added,
		refusals: s.operator.refusals(), defaults: s.others.set, remarks: s.fleet.remarks, slots: len(e.Cron.Records), where: s.Where(ctx, s.control),
		growth: grown,
	}, nil
}
