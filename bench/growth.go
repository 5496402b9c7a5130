package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"eventsv2/bench/contest"
	"eventsv2/bench/lab"
	"eventsv2/bench/ours"
	"eventsv2/bench/report"
	"eventsv2/eventqueue/maintenance"
)

// growth are the experiments of -growth: our side alone, when it has more of something.
var growth = []experiment{
	{name: "workers", once: true, run: (*bench).workers},
	{name: "spread", once: true, run: (*bench).spread},
	{name: "dead", once: true, run: (*bench).dead},
	{name: "crowd", once: true, run: (*bench).crowd},
	{name: "lost", once: true, run: (*bench).lost},
	{name: "parked", once: true, aside: true, run: (*bench).parked},
	{name: "fleet", once: true, aside: true, run: (*bench).fleet},
	{name: "snapshot", once: true, run: (*bench).snapshot},
}

// growthMeasures are the measures of growth with their goals.
var growthMeasures = []report.Measure{
	{Name: "workers-1", Of: "workers.1", By: "workers.best", Goal: report.AtLeast(0.85), Text: "1 worker drains 200,000 events, notifier on Postgres, against the best number of workers"},
	{Name: "workers-4", Of: "workers.4", By: "workers.best", Goal: report.AtLeast(0.85), Text: "4 workers, together"},
	{Name: "workers-16", Of: "workers.16", By: "workers.best", Goal: report.AtLeast(0.85), Text: "16 workers, together"},
	{Name: "spread", Of: "spread.many", By: "spread.one", Goal: report.AtLeast(1), Text: "drain 100,000 events of 50 handlers on 10,000 canvases, against those of one handler"},
	{Name: "dead-worker", Of: "dead.took", By: "dead.lock-timeout", Goal: report.AtMost(1.5), Text: "500 events are run that a worker had in hand when it died, against the lock timeout"},
	{Name: "crowd", Of: "crowd.wait", Goal: report.AtMost(5), Unit: "s", Text: "an event waits on its canvas, at most, while another canvas has 1,500,000 due, paused and pending ones"},
	{Name: "lost-postgres", Of: "lost.postgres", Goal: report.AtLeast(20_000), Unit: "per s", Text: "200,000 lost notifications are published again, notifier on Postgres"},
	{Name: "lost-emulator", Of: "lost.emulator", Goal: report.AtLeast(20_000), Unit: "per s", Text: "the same, official emulator"},
	{Name: "parked", Of: "parked.many", By: "parked.few", Goal: report.AtMost(1.1), Text: "what a relay reads with 10,000,000 paused and delayed events, against 10,000"},
	{Name: "fleet-workers", Of: "fleet.workers", Goal: report.AtMost(0), Unit: "per min", Text: "statements of 16 idle workers, notifier on Postgres"},
	{Name: "fleet", Of: "fleet.all", Goal: report.AtMost(20), Unit: "per min", Text: "statements of these and of 3 cron processes"},
	{Name: "snapshot", Of: "snapshot.held", By: "snapshot.none", Goal: report.AtLeast(0.7), Text: "drain 100,000 events after 10 minutes of load with a snapshot held open, against none"},
}

// onOurs is with for what only our side can do.
func (b *bench) onOurs(ctx context.Context, side string, f func(ctx context.Context, q *ours.Queue) error) error {
	return b.with(ctx, side, func(ctx context.Context, q contest.Queue) error { return f(ctx, q.(*ours.Queue)) })
}

// workers drains a backlog with several workers, each in a process of its own.
func (b *bench) workers(ctx context.Context) error {
	var rates []float64
	var last lab.Usage
	for _, n := range []int{1, 4, 16} {
		err := b.with(ctx, postgres, func(ctx context.Context, q contest.Queue) error {
			if err := q.Emit(ctx, 2*b.events); err != nil {
				return err
			}
			if err := b.lab.Prepare(ctx, q.URL()); err != nil {
				return err
			}
			name := fmt.Sprintf("workers.%d", n)
			took, usage, err := b.drainWith(ctx, name, q.URL(), n)
			if err != nil {
				return err
			}
			last = usage
			rates = append(rates, float64(2*b.events)/took.Seconds())
			b.record(name, rates[len(rates)-1], "events/s", usage)
			return nil
		})
		if err != nil {
			return err
		}
	}
	b.record("workers.best", slices.Max(rates), "events/s", last)
	return nil
}

// drainWith measures how long n workers need for a backlog of twice as many events as a run has. They are connected when it begins.
func (b *bench) drainWith(ctx context.Context, name, databaseURL string, n int) (took time.Duration, usage lab.Usage, err error) {
	var children []*child
	defer func() {
		for _, c := range children {
			err = errors.Join(err, c.stop())
		}
	}()
	for range n {
		c, err := startChild(ctx, workerOptions{database: databaseURL})
		if err != nil {
			return 0, usage, err
		}
		children = append(children, c)
	}
	ended := contest.NewCounter()
	return b.timed(name, func() error {
		for _, c := range children {
			if err := c.begin(ended); err != nil {
				return err
			}
		}
		return ended.Wait(ctx, int64(2*b.events))
	})
}

// spread drains events of many handlers and canvases, and as many of one.
func (b *bench) spread(ctx context.Context) error {
	for _, of := range []struct {
		name string
		mode contest.Mode
		emit func(q *ours.Queue, ctx context.Context, n int) error
	}{
		{"spread.one", contest.Throughput, (*ours.Queue).Emit},
		{"spread.many", ours.Spread, (*ours.Queue).EmitSpread},
	} {
		err := b.onOurs(ctx, memory, func(ctx context.Context, q *ours.Queue) error {
			if err := of.emit(q, ctx, b.events); err != nil {
				return err
			}
			if err := b.lab.Prepare(ctx, q.URL()); err != nil {
				return err
			}
			took, usage, err := b.timed(of.name, func() error { return work(ctx, q, of.mode, b.events) })
			if err != nil {
				return err
			}
			b.record(of.name, float64(b.events)/took.Seconds(), "events/s", usage)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// beside runs a relay of a queue while f runs.
func beside(ctx context.Context, q *ours.Queue, config maintenance.RelayConfig, f func() error) error {
	relay, err := q.Relay(config)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(running) }()
	err = f()
	stop()
	return errors.Join(err, <-ended)
}

// inHand is how many events a worker has when it dies.
const inHand = 500

// dead kills a worker, and measures how long it takes until another one has run what it had in hand.
func (b *bench) dead(ctx context.Context) error {
	return b.onOurs(ctx, postgres, func(ctx context.Context, q *ours.Queue) error {
		if err := q.Emit(ctx, inHand); err != nil {
			return err
		}
		c, err := startChild(ctx, workerOptions{database: q.URL(), hangs: true})
		if err != nil {
			return err
		}
		if err := errors.Join(c.begin(contest.NewCounter()), lab.Until(ctx, q.URL(), `SELECT count(*) = $1 FROM events_v2 WHERE begun OR locked_at IS NOT NULL`, inHand)); err != nil {
			return errors.Join(err, c.stop())
		}
		if err := c.kill(); err != nil {
			return err
		}
		return beside(ctx, q, maintenance.RelayConfig{}, func() error {
			took, usage, err := b.timed("dead", func() error { return work(ctx, q, ours.Recovering, inHand) })
			if err != nil {
				return err
			}
			b.record("dead.took", took.Seconds(), "s", usage)
			b.record("dead.lock-timeout", ours.LockTimeout.Seconds(), "s", usage)
			return nil
		})
	})
}

// lost has a relay publish notifications again that have not led to a run for an hour.
func (b *bench) lost(ctx context.Context) error {
	for _, side := range []string{postgres, emulator} {
		err := b.onOurs(ctx, side, func(ctx context.Context, q *ours.Queue) error {
			if err := fill(ctx, q.URL(), 2*b.events, "now() - interval '1 hour'", "now() - interval '1 hour'", ours.Key.Name); err != nil {
				return err
			}
			if err := b.lab.Prepare(ctx, q.URL()); err != nil {
				return err
			}
			again := contest.NewCounter()
			config := maintenance.RelayConfig{PerSecond: 10 * b.events, Observe: func(r maintenance.Relayed) { again.Add(int64(r.Lost + r.Pending)) }}
			return beside(ctx, q, config, func() error {
				took, usage, err := b.timed("lost."+side, func() error { return again.Wait(ctx, int64(2*b.events)) })
				if err != nil {
					return err
				}
				b.record("lost."+side, float64(2*b.events)/took.Seconds(), "per s", usage)
				return nil
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// fill adds n events of a handler, due at a time and notified of at another one, without publishing anything.
func fill(ctx context.Context, databaseURL string, n int, due, notified, name string) error {
	return lab.Exec(ctx, databaseURL, `
INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until, enqueued_at, notified_at, by_sql)
SELECT $1, $2, $3, $4, $5, `+due+`, least(now(), `+due+`), `+notified+`, NULL FROM generate_series(1, $6::bigint)`,
		ours.Canvas.String(), ours.Key.Module, name, ours.Key.Modifier, string(contest.NewValue(crowdNumber).JSON()), n)
}
