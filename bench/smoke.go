package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"eventsv2/bench/contest"
	"eventsv2/bench/report"
)

// smokeIdle is how long an idle worker is listened to.
const smokeIdle = 5 * time.Second

// smokeTest checks the counts that are the same on any machine.
func (b *bench) smokeTest(ctx context.Context) error {
	b.events = min(b.events, 20_000)
	var failed []error
	check := func(measure string, value float64) {
		for _, m := range measures {
			if m.Name != measure {
				continue
			}
			result := report.Result{Measure: m, Value: value}
			fmt.Fprintln(b.out, result)
			if !result.OK() {
				failed = append(failed, fmt.Errorf("%s is %s and must be %s", m.Name, report.Number(value), m.Goal))
			}
		}
	}
	err := b.with(ctx, memory, func(ctx context.Context, q contest.Queue) error {
		found, err := b.costOf(ctx, q, contest.Throughput)
		if err == nil {
			check("wal-per-event", found.walBytes)
			check("statements", found.statements)
			check("allocations", found.allocations)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, side := range []string{memory, postgres} {
		perMinute, err := b.idleStatements(ctx, idler{side, side, startIdleWorker, smokeIdle})
		if err != nil {
			return err
		}
		check("idle-worker", perMinute)
	}
	return errors.Join(failed...)
}
