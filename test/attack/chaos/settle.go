package main

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
)

// settleEvery is how often the queue is asked whether it has come to rest.
const settleEvery = 500 * time.Millisecond

const countWaitingSQL = `
SELECT (SELECT count(*) FROM events_v2), coalesce((SELECT max(slot) FROM cron_records WHERE cron_id = $1), 'epoch')`

// longest bounds the waiting for rest, in multiples of what the queue may take
// without getting anywhere.
const longest = 5

// settle lifts what holds events back and waits until no event is left. It gives
// up when the number of those that are left has not fallen for the time that
// -settle allows: what is left then is stuck, and a slow machine alone is no
// reason. After it nothing runs.
func (s *stage) settle(ctx context.Context) error {
	s.tell.Report("the load is over; %d kills; waiting for the queue to come to rest", s.faults.kills())
	watch, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	watching.Go(func() { probe(watch, s.control, s.faults) })
	watching.Go(func() { shift(watch, s.control) })
	s.cron.until = time.Now().Add(-5 * time.Second) // a slot may take a moment
	deadline, last := time.Now().Add(s.opts.settle), time.Now().Add(longest*s.opts.settle)
	for fewest := math.MaxInt; ; backoff.Sleep(ctx, settleEvery) {
		// Until it has worked: Postgres may have been killed a moment ago.
		if err := s.storms.liftAll(ctx, s.control); err != nil {
			s.tell.Report("lifting the rules: %v", err)
		}
		if err := s.unlimitRates(ctx); err != nil {
			s.tell.Report("removing the rate limits: %v", err)
		}
		var n int
		var slot time.Time
		err := s.control.QueryRow(ctx, countWaitingSQL, s.cron.id).Scan(&n, &slot)
		complete := !slot.Before(s.lastSlot())
		switch {
		case err == nil && n == 0 && complete:
			s.tell.Report("at rest")
			return s.fleet.stop()
		case time.Now().After(deadline) || time.Now().After(last):
			s.tell.Report("not at rest: %d events are left, the last slot is there: %t, error: %v", n, complete, err)
			return s.fleet.stop()
		case err == nil && n < fewest:
			s.tell.Report("%d events are left", n)
			fewest, deadline = n, time.Now().Add(s.opts.settle)
		}
	}
}

// lastSlot is the last cron slot that must be there.
func (s *stage) lastSlot() time.Time {
	slots := s.cron.slots()
	if len(slots) == 0 {
		return time.Time{}
	}
	return slots[len(slots)-1]
}

const readCronSQL = `
SELECT slot, event_id, created_at
  FROM cron_records
 WHERE cron_id = $1`

// verdict reads all records and has them judged.
func (s *stage) verdict(ctx context.Context, loaded time.Duration) (*result, error) {
	s.tell.Report("judging")
	e := evidence{acknowledgements: s.emitters.acknowledgements, repeats: s.emitters.repeats, ordered: s.emitters.ordered,
		limits: s.limits, rates: s.rates, embedded: func(process string) bool { return process[:2] != "w4" }}
	var err error
	if e.runs, err = readRuns(s.dir, s.faults); err != nil {
		return nil, err
	}
	if e.stories, err = readStories(ctx, s.control); err != nil {
		return nil, err
	}
	if e.grants, err = readGrants(ctx, s.control); err != nil {
		return nil, err
	}
	if e.rewritten, err = readRewritten(ctx, s.control); err != nil {
		return nil, err
	}
	if e.final.rules, err = s.storms.left(ctx, s.control); err != nil {
		return nil, err
	}
	rows, err := s.control.Query(ctx, readCronSQL, s.cron.id)
	if err != nil {
		return nil, fmt.Errorf("read cron_records: %w", err)
	}
	s.cron.records, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r cronRecord, err error) {
		var id eventqueue.EventID
		err = row.Scan(&r.slot, &id, &r.at)
		r.event = id
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("read cron_records: %w", err)
	}
	e.faults, e.cron, e.final.at = s.faults.list(), s.cron, time.Now()
	var added int
	e.rules, added = s.storms.history()
	return &result{
		judgement: check(e), loaded: loaded, faults: s.faults, emitters: s.emitters, rulesAdded: added,
		refusals: s.operator.refusals(), remarks: s.fleet.remarks, slots: len(s.cron.records), host: describeHost(ctx, s.control, s.emulator.Origin),
	}, nil
}
