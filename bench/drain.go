package main

import (
	"context"
	"errors"

	"eventsv2/bench/contest"
	"eventsv2/bench/lab"
	"eventsv2/bench/ours"
)

// drain measures how fast a worker runs a backlog.
func (b *bench) drain(ctx context.Context) error {
	if err := b.bareDrain(ctx); err != nil {
		return err
	}
	for _, side := range []string{memory, river, emulator, postgres} {
		err := b.with(ctx, side, func(ctx context.Context, q contest.Queue) error {
			return b.drainOnce(ctx, q, "drain."+side, b.events)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// backlogs is drain with a backlog ten times as long, and with events that wait
// for other reasons beside it.
func (b *bench) backlogs(ctx context.Context) error {
	err := b.with(ctx, memory, func(ctx context.Context, q contest.Queue) error {
		return b.drainOnce(ctx, q, "backlog.million", b.backlog)
	})
	if err != nil {
		return err
	}
	return b.with(ctx, memory, func(ctx context.Context, q contest.Queue) error {
		if err := park(ctx, q.URL(), b.backlog); err != nil {
			return err
		}
		return b.drainOnce(ctx, q, "backlog.parked", b.events)
	})
}

// pauseSQL pauses a handler of a canvas and module.
const pauseSQL = `INSERT INTO scheduling_rules (rule_type, canvas_id, handler_name, event_space) VALUES ('pause', $1, 'paused', $2)`

// park fills the table with n events of a paused handler and n that are far off.
func park(ctx context.Context, databaseURL string, n int) error {
	return errors.Join(
		lab.Exec(ctx, databaseURL, pauseSQL, ours.Canvas.String(), ours.Key.Module),
		lab.Exec(ctx, databaseURL, `
INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until, notified_at)
SELECT $1, $2, CASE n % 2 WHEN 0 THEN 'paused' ELSE $3 END, $4, $5,
    clock_timestamp() + (n % 2) * interval '30 days', CASE n % 2 WHEN 0 THEN clock_timestamp() END
FROM generate_series(1, 2 * $6::bigint) AS n`,
			ours.Canvas.String(), ours.Key.Module, ours.Key.Name, ours.Key.Modifier, string(contest.NewValue(0).JSON()), n))
}

// drainOnce emits n events and measures how long a worker needs for them.
func (b *bench) drainOnce(ctx context.Context, q contest.Queue, name string, n int) error {
	if err := q.Emit(ctx, n); err != nil {
		return err
	}
	if err := b.lab.Prepare(ctx, q.URL()); err != nil {
		return err
	}
	took, usage, err := b.timed(name, func() error { return work(ctx, q, contest.Throughput, n) })
	if err != nil {
		return err
	}
	b.record(name, float64(n)/took.Seconds(), "events/s", usage)
	return nil
}
