package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
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
	s.cron.until = time.Now().Add(-5 * time.Second) // a slot may take a moment
	_, _ = s.Drain(ctx, s.opts.Drain, longest*s.opts.Drain, func(ctx context.Context) (n int, complete bool, err error) {
		var slot time.Time
		err = errors.Join(s.storms.liftAll(ctx, s.control), s.unlimitRates(ctx),
			s.control.QueryRow(ctx, countWaitingSQL, s.cron.id, s.untouchable()).Scan(&n, &slot))
		return n, !slot.Before(s.lastSlot()), err
	}) // what is left is on record
	if s.sampler != nil {
		grown = s.sampler.End(ctx, min(loaded, s.opts.load()))
	}
	return grown, s.fleet.stop()
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

// verdict waits until the queue has come to rest, reads all records and has them checked.
func (s *stage) verdict(ctx context.Context, loaded time.Duration) (harness.Result, error) {
	grown, err := s.drain(ctx, loaded)
	if err != nil {
		return nil, err
	}
	s.Progress.Report("checking")
	e := evidence{acknowledgements: s.emitters.acknowledgements, repeats: s.emitters.repeats, ordered: s.emitters.ordered,
		limits: s.limits, rates: s.rates, embedded: func(process string) bool { return process[:2] != "w4" }}
	if e.runs, err = readRuns(s.Dir, s.faults); err != nil {
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
	if e.missingDefaults, err = s.others.missing(ctx, s.Postgres.URL); err != nil {
		return nil, err
	}
	e.faults, e.cron, e.final.at = s.faults.list(), s.cron, time.Now()
	var added int
	e.rules, added = s.storms.history()
	return &result{opts: s.opts,
		findings: check(e), loaded: loaded, faults: s.faults, emitters: s.emitters, rulesAdded: added,
		refusals: s.operator.refusals(), defaults: s.others.set, remarks: s.fleet.remarks, slots: len(s.cron.records), where: s.Where(ctx, s.control),
		growth: grown,
	}, nil
}
