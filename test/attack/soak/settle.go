package main

import (
	"context"
	"fmt"
	"time"

	"eventsv2/cronchecker"
	"eventsv2/internal/backoff"
)

// settleEvery is how often the queue is asked whether it has come to rest.
const settleEvery = 500 * time.Millisecond

const waitingSQL = `
SELECT (SELECT count(*) FROM events_v2), (SELECT count(*) FROM event_log)`

// settle lifts what holds events back and waits until no row is left and every
// cron slot is done, at most until the deadline. It returns how many rows are left
// and how many events have failed for good.
func (s *stage) settle(ctx context.Context, slots []time.Time) (stuck, failed int, err error) {
	s.tell.Report("the load is over after %d faults; waiting for the queue to come to rest", s.attacker.total())
	ctx, cancel := context.WithTimeout(ctx, s.opts.settle)
	defer cancel()
	s.maintenance.again(ctx, "lift", s.maintenance.lift)
	stuck = -1
	for {
		limited, cancelOne := context.WithTimeout(ctx, callTimeout)
		var left int
		if err = s.pool.QueryRow(limited, waitingSQL).Scan(&left, &failed); err == nil {
			stuck = left
		}
		cancelOne()
		if stuck == 0 && s.ledger.allTicked(slots) {
			s.tell.Report("at rest")
			return 0, failed, nil
		}
		if !backoff.Sleep(ctx, settleEvery) {
			break
		}
	}
	s.tell.Report("not at rest after %s: %d rows are left", s.opts.settle, stuck)
	if stuck < 0 {
		return 0, 0, fmt.Errorf("the database did not say whether anything is left: %w", err)
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

// verdict ends the run in order and judges it.
func (s *stage) verdict(ctx context.Context, loaded time.Duration) (*result, error) {
	slots, err := s.slots(time.Now().Add(-slotTakes))
	if err != nil {
		return nil, err
	}
	stuck, failed, err := s.settle(ctx, slots)
	if err != nil {
		return nil, err
	}
	s.sampler.sample(ctx)
	// Once the library has ended, everything that it wrote is read.
	stopping := s.fleet.Stop(stopLimit)
	return &result{opts: s.opts, loaded: loaded, postgres: s.version, faults: s.attacker.counts, total: s.attacker.total(),
		account: s.ledger.balance(slots), stuck: stuck, failed: failed, missed: s.sampler.failed,
		figures: s.sampler.figures(loaded)}, stopping
}
