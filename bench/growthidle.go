package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"eventsv2/bench/contest"
	"eventsv2/bench/lab"
	"eventsv2/bench/ours"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/test/programs"
)

// crowd measures how long an event waits at most while another canvas has very many.
func (b *bench) crowd(ctx context.Context) error {
	return b.onOurs(ctx, postgres, func(ctx context.Context, q *ours.Queue) error {
		third := b.backlog / 2
		err := errors.Join(
			lab.Exec(ctx, q.URL(), pauseSQL, ours.Canvas.String(), ours.Key.Module),
			fill(ctx, q.URL(), third, "now()", "now()", ours.Key.Name),
			fill(ctx, q.URL(), third, "now()", "NULL", "paused"),
			fill(ctx, q.URL(), third, "now()", "NULL", ours.Key.Name))
		if err != nil {
			return err
		}
		if err := b.lab.Prepare(ctx, q.URL()); err != nil {
			return err
		}
		return beside(ctx, q, maintenance.RelayConfig{}, func() error {
			w, err := q.Work(ctx, contest.Latency)
			if err != nil {
				return err
			}
			var waits []time.Duration
			_, usage, err := b.timed("crowd", func() error {
				waits, err = paced(ctx, q.EmitElsewhere, startsOf(ctx, w.Started))
				return err
			})
			if err := errors.Join(err, w.Stop(ctx)); err != nil {
				return err
			}
			b.record("crowd.wait", percentile(waits, 100).Seconds(), "s", usage)
			return nil
		})
	})
}

// crowdNumber is that of the events of the crowd.
const crowdNumber = -1

// startsOf passes on the starts of events that are not of a crowd, until ctx ends.
func startsOf(ctx context.Context, all contest.Starts) contest.Starts {
	some := make(chan contest.Start, latencyEvents)
	go func() {
		for {
			select {
			case s := <-all:
				if s.Number != crowdNumber {
					some <- s
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return some
}

// parked counts what a relay reads while very many events wait for something else, and while few do.
func (b *bench) parked(ctx context.Context) error {
	return b.withParked(ctx, 10_000, func(few *ours.Queue) error {
		return b.withParked(ctx, 10*b.backlog, func(many *ours.Queue) error {
			if err := sleep(ctx, idleFor/2); err != nil { // what is read at the start is read once
				return err
			}
			for _, of := range []struct {
				name string
				q    *ours.Queue
			}{{"parked.few", few}, {"parked.many", many}} {
				before, err := b.lab.Blocks(ctx, of.q.URL())
				if err == nil {
					err = sleep(ctx, idleFor)
				}
				if err != nil {
					return err
				}
				after, err := b.lab.Blocks(ctx, of.q.URL())
				if err != nil {
					return err
				}
				b.record(of.name, float64(after-before)/idleFor.Minutes(), "blocks/min", lab.Usage{})
			}
			return nil
		})
	})
}

// withParked runs f beside the relay of a queue with n events that are paused or delayed.
func (b *bench) withParked(ctx context.Context, n int, f func(q *ours.Queue) error) error {
	return b.onOurs(ctx, memory, func(ctx context.Context, q *ours.Queue) error {
		if err := park(ctx, q.URL(), n/2); err != nil {
			return err
		}
		if err := b.lab.Prepare(ctx, q.URL()); err != nil {
			return err
		}
		return beside(ctx, q, maintenance.RelayConfig{}, func() error { return f(q) })
	})
}

// How many programs of a fleet there are, and for how long they have nothing to do.
const (
	fleetWorkers = 16
	fleetCrons   = 3
	fleetIdle    = 5 * time.Minute
	fleetSettles = 90 * time.Second // a worker asks once, after a minute, whether a relay runs
)

// fleet counts the statements of many programs, as they are deployed, while there is nothing to do. Those of the workers
// have a role of their own, by which they are counted.
func (b *bench) fleet(ctx context.Context) error {
	return b.with(ctx, postgres, func(ctx context.Context, q contest.Queue) (err error) {
		dir, err := os.MkdirTemp("", "eventsv2-bench-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		if err := programs.Build(ctx, dir, programs.Deployed(programs.Worker, programs.Cron)); err != nil {
			return err
		}
		const role = "bench_workers"
		if err := lab.Exec(ctx, q.URL(), "CREATE ROLE "+role+" SUPERUSER LOGIN PASSWORD '"+role+"'"); err != nil {
			return err
		}
		at, err := url.Parse(q.URL())
		if err != nil {
			return err
		}
		at.User = url.UserPassword(role, role)
		handlers := filepath.Join(dir, "handlers.yaml")
		if err := os.WriteFile(handlers, []byte("handlers:\n  - {module: bench, name: noop, modifier: _, url: \"http://127.0.0.1:9/\"}\n"), 0o600); err != nil {
			return err
		}
		settings := map[string]string{"NOTIFIER": "postgres", "PORT": "0", "HANDLERS_FILE": handlers}
		var running []*programs.Process
		defer func() {
			var group errgroup.Group
			for _, p := range running {
				group.Go(func() error { return p.Stop(time.Minute) })
			}
			err = errors.Join(err, group.Wait())
		}()
		start := func(program, databaseURL string, n int) error {
			for i := range n {
				name := fmt.Sprintf("%s-%d", program, i+1)
				p, err := programs.Start(programs.Program{Name: name, Path: filepath.Join(dir, program), Log: filepath.Join(dir, name+".log"),
					Env: programs.Environment(settings, map[string]string{"DATABASE_URL": databaseURL})})
				if err != nil {
					return err
				}
				running = append(running, p)
			}
			return nil
		}
		if err := errors.Join(start(programs.Worker, at.String(), fleetWorkers), start(programs.Cron, q.URL(), fleetCrons)); err != nil {
			return err
		}
		for _, p := range running {
			if err := p.AwaitStart(ctx); err != nil {
				return err
			}
		}
		if err := sleep(ctx, fleetSettles); err != nil {
			return err
		}
		all, err := b.lab.Statements(ctx, q.URL())
		if err != nil {
			return err
		}
		of, err := b.lab.StatementsOf(ctx, q.URL(), role)
		if err != nil {
			return err
		}
		if err := sleep(ctx, fleetIdle); err != nil {
			return err
		}
		allAfter, err := b.lab.Statements(ctx, q.URL())
		if err != nil {
			return err
		}
		ofAfter, err := b.lab.StatementsOf(ctx, q.URL(), role)
		if err != nil {
			return err
		}
		b.record("fleet.workers", float64(ofAfter-of)/fleetIdle.Minutes(), "per min", lab.Usage{})
		b.record("fleet.all", float64(allAfter-all)/fleetIdle.Minutes(), "per min", lab.Usage{})
		return nil
	})
}

// The load under which a snapshot is held open, and for how long.
const (
	snapshotFor   = 10 * time.Minute
	snapshotEvery = 500 * time.Millisecond // a batch
)

// snapshot drains a backlog at the end of a time in which nothing that has ended could be vacuumed, and one without that.
func (b *bench) snapshot(ctx context.Context) error {
	err := b.onOurs(ctx, memory, func(ctx context.Context, q *ours.Queue) error {
		release, err := lab.Snapshot(ctx, q.URL())
		if err != nil {
			return err
		}
		err = beside(ctx, q, maintenance.RelayConfig{}, func() error {
			w, err := q.Work(ctx, contest.Throughput)
			if err != nil {
				return err
			}
			for until := time.Now().Add(snapshotFor); err == nil && time.Now().Before(until); {
				err = errors.Join(q.Emit(ctx, contest.BatchSize), sleep(ctx, snapshotEvery))
			}
			if err := errors.Join(err, w.Stop(ctx)); err != nil {
				return err
			}
			return b.drainOnce(ctx, q, "snapshot.held", b.events)
		})
		return errors.Join(err, release())
	})
	if err != nil {
		return err
	}
	return b.onOurs(ctx, memory, func(ctx context.Context, q *ours.Queue) error {
		return beside(ctx, q, maintenance.RelayConfig{}, func() error { return b.drainOnce(ctx, q, "snapshot.none", b.events) })
	})
}
