package main

import (
	"context"
	"errors"
	"runtime"
	"time"

	"eventsv2/bench/contest"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
)

// cost counts the bytes that are written for an event from emit to its end, and the
// statements that a worker sends for it.
func (b *bench) cost(ctx context.Context) error {
	for _, c := range []struct {
		name, side string
		mode       contest.Mode
	}{{"ours", memory, contest.Throughput}, {"history", memory, contest.History}, {river, river, contest.Throughput}} {
		err := b.with(ctx, c.side, func(ctx context.Context, q contest.Queue) error {
			busy := b.lab.StartBusy()
			found, err := b.costOf(ctx, q, c.mode)
			if err != nil {
				return err
			}
			usage := b.lab.StopBusy(busy)
			b.record("wal."+c.name, found.walBytes, "B/event", usage)
			b.record("statements."+c.name, found.statements, "/event", usage)
			b.record("allocations."+c.name, found.allocations, "/event", usage)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// costs are per event.
type costs struct {
	walBytes float64
	// While draining; the allocations are those of the whole process.
	statements, allocations float64
}

func (b *bench) costOf(ctx context.Context, q contest.Queue, mode contest.Mode) (costs, error) {
	if err := b.lab.Prepare(ctx, q.URL()); err != nil {
		return costs{}, err
	}
	walBefore, err := b.lab.WAL(ctx)
	if err != nil {
		return costs{}, err
	}
	if err := q.Emit(ctx, b.events); err != nil {
		return costs{}, err
	}
	before, err := b.lab.Statements(ctx, q.URL())
	if err != nil {
		return costs{}, err
	}
	var allocated, allocatedAfter runtime.MemStats
	runtime.ReadMemStats(&allocated)
	if err := work(ctx, q, mode, b.events); err != nil {
		return costs{}, err
	}
	runtime.ReadMemStats(&allocatedAfter)
	after, err := b.lab.Statements(ctx, q.URL())
	if err != nil {
		return costs{}, err
	}
	walAfter, err := b.lab.WAL(ctx)
	n := float64(b.events)
	return costs{
		walBytes:    float64(walAfter-walBefore) / n,
		statements:  float64(after-before) / n,
		allocations: float64(allocatedAfter.Mallocs-allocated.Mallocs) / n,
	}, err
}

// idleFor is how long nothing happens. settled is how long a program may send the
// statements of its start.
const (
	idleFor = time.Minute
	settled = 2 * time.Second
)

// idler is a program that is left without anything to do.
type idler struct {
	name, side string
	start      func(ctx context.Context, q contest.Queue) (stop func(context.Context) error, err error)
	during     time.Duration
}

// idle counts the statements of a worker and a relay while there is nothing to do.
func (b *bench) idle(ctx context.Context) error {
	for _, i := range []idler{
		{"worker", memory, startIdleWorker, idleFor},
		{"postgres", postgres, startIdleWorker, idleFor},
		{"relay", memory, startIdleRelay, 2 * idleFor},
	} {
		busy := b.lab.StartBusy()
		perMinute, err := b.idleStatements(ctx, i)
		if err != nil {
			return err
		}
		b.record("idle."+i.name, perMinute, "per min", b.lab.StopBusy(busy))
	}
	return nil
}

// idleStatements is how many statements a minute a program sends.
func (b *bench) idleStatements(ctx context.Context, i idler) (perMinute float64, err error) {
	err = b.with(ctx, i.side, func(ctx context.Context, q contest.Queue) error {
		stop, err := i.start(ctx, q)
		if err != nil {
			return err
		}
		perMinute, err = b.statementsPerMinute(ctx, q, i.during)
		return errors.Join(err, stop(ctx))
	})
	return perMinute, err
}

// startIdleWorker starts a worker that has had something to do and then nothing
// more.
func startIdleWorker(ctx context.Context, q contest.Queue) (stop func(context.Context) error, err error) {
	w, err := q.Work(ctx, contest.Throughput)
	if err != nil {
		return nil, err
	}
	err = q.Emit(ctx, 1)
	if err == nil {
		err = w.Ended.Wait(ctx, 1)
	}
	if err != nil {
		return nil, errors.Join(err, w.Stop(ctx))
	}
	return w.Stop, nil
}

func startIdleRelay(ctx context.Context, q contest.Queue) (stop func(context.Context) error, err error) {
	pool, err := pgstore.Open(ctx, q.URL(), "bench-relay", contest.Connections)
	if err != nil {
		return nil, err
	}
	relay, err := maintenance.NewRelay(pgstore.New(pool), memnotify.New(memnotify.Config{}), maintenance.RelayConfig{})
	if err != nil {
		pool.Close()
		return nil, err
	}
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(running) }()
	stop = func(context.Context) error {
		defer pool.Close()
		cancel()
		return <-ended
	}
	if err := sleep(ctx, firstCounts); err != nil {
		return nil, errors.Join(err, stop(ctx))
	}
	return stop, nil
}

// firstCounts is for how long a relay counts once a minute what is pending, before it rests.
const firstCounts = 3 * time.Minute

// counting is a queue that hands in, once a minute, what it has counted since.
type counting interface {
	HandIn(ctx context.Context) error
}

func (b *bench) statementsPerMinute(ctx context.Context, q contest.Queue, during time.Duration) (float64, error) {
	if err := sleep(ctx, settled); err != nil {
		return 0, err
	}
	if c, ok := q.(counting); ok { // what is counted belongs to the work before
		if err := c.HandIn(ctx); err != nil {
			return 0, err
		}
	}
	before, err := b.lab.Statements(ctx, q.URL())
	if err != nil {
		return 0, err
	}
	if err := sleep(ctx, during); err != nil {
		return 0, err
	}
	after, err := b.lab.Statements(ctx, q.URL())
	return float64(after-before) / during.Minutes(), err
}
