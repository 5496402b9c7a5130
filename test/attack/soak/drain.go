package main

import (
	"context"
	"fmt"
	"time"

	"eventsv2/cronchecker"
	"eventsv2/test/attack/harness"
)

const waitingSQL = `
SELECT (SELECT count(*) FROM events_v2), (SELECT count(*) FROM event_log)`

// drain lifts what holds events back and waits until no row is left and every
// cron slot is done, for the time that -drain allows. It returns how many rows are left
// and how many events have failed for good.
func (s *stage) drain(ctx context.Context, slots []time.Time) (stuck, failed int, err error) {
	stuck, err = s.Drain(ctx, s.opts.Drain, s.opts.Drain, func(ctx context.Context) (n int, complete bool, err error) {
		if err := s.maintenance.lift(ctx); err != nil {
			return 0, false, err
		}
		err = s.pool.QueryRow(ctx, waitingSQL).Scan(&n, &failed)
		return n, s.ledger.allTicked(slots), err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("count what is left: %w", err)
	}
	return stuck, failed, nil
}

// slots are the cron slots that have to be done: those of the definition until
// shortly before the end of the load.
func (s *stage) slots(until time.Time) ([]time.Time, error) {
	schedule, err := cronchecker.ParseSchedule(s.cron.Schedule, s.cron.TimeZone)
	if err != nil {
		return nil, err
	}
	const all = int(maxHours)*60 + 60 // one a minute
	return schedule.All(s.cron.StartsAt, until, all), nil
}

// slotTakes is how long a slot may take to be emitted.
const slotTakes = 5 * time.Second

// verdict ends the run in order and checks it.
func (s *stage) verdict(ctx context.Context, loaded time.Duration) (harness.Result, error) {
	slots, err := s.slots(time.Now().Add(-slotTakes))
	if err != nil {
		return nil, err
	}
	stuck, failed, err := s.drain(ctx, slots)
	if err != nil {
		return nil, err
	}
	s.sampler.sample(ctx)
	loaded = min(loaded, s.opts.load())
	// Once the library has ended, everything that it wrote is read.
	stopping := s.fleet.Stop(stopLimit)
	return &result{opts: s.opts, loaded: loaded, where: s.where, faults: s.attacker.counts, total: s.attacker.total(),
		account: s.ledger.balance(slots), stuck: stuck, failed: failed, missed: s.sampler.failed,
		figures: s.sampler.figures(loaded)}, stopping
}
