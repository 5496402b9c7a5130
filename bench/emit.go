package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"eventsv2/bench/contest"
)

// emit measures emits of a thousand events at a time.
func (b *bench) emit(ctx context.Context) error {
	return b.inTurns(ctx, func(ctx context.Context, side string, q contest.Queue) error {
		name := "emit." + side
		took, usage, err := b.timed(name, func() error { return q.Emit(ctx, b.events) })
		if err != nil {
			return err
		}
		b.record(name, float64(b.events)/took.Seconds(), "events/s", usage)
		return nil
	})
}

// inTurns runs an experiment with the in-memory notifier, whose side is named ours
// here, and with River.
func (b *bench) inTurns(ctx context.Context, f func(ctx context.Context, side string, q contest.Queue) error) error {
	for _, at := range []struct{ name, side string }{{"ours", memory}, {river, river}} {
		err := b.with(ctx, at.side, func(ctx context.Context, q contest.Queue) error {
			if err := b.lab.Prepare(ctx, q.URL()); err != nil {
				return err
			}
			return f(ctx, at.name, q)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	emitters = 16
	// emitFor is how long they emit, and steadyFor how long a steady state is
	// measured, after warmUp.
	emitFor   = 5 * time.Second
	steadyFor = 5 * time.Second
	warmUp    = 2 * time.Second
)

// singles measures emits of one event at a time, from many goroutines at once.
func (b *bench) singles(ctx context.Context) error {
	return b.inTurns(ctx, func(ctx context.Context, side string, q contest.Queue) error {
		name := "singles." + side
		var emitted atomic.Int64
		took, usage, err := b.timed(name, func() error {
			until := time.Now().Add(emitFor)
			group, ctx := errgroup.WithContext(ctx)
			for range emitters {
				group.Go(func() error {
					for time.Now().Before(until) {
						if err := q.EmitOne(ctx, int(emitted.Add(1))); err != nil {
							return err
						}
					}
					return nil
				})
			}
			return group.Wait()
		})
		if err != nil {
			return err
		}
		b.record(name, float64(emitted.Load())/took.Seconds(), "events/s", usage)
		return nil
	})
}

// aheadAtMost is how many events the emitter of the steady state is ahead of the
// worker.
const aheadAtMost = 20_000

// steady emits in batches and drains at the same time.
func (b *bench) steady(ctx context.Context) error {
	return b.inTurns(ctx, func(ctx context.Context, side string, q contest.Queue) error {
		name := "steady." + side
		w, err := q.Work(ctx, contest.Throughput)
		if err != nil {
			return err
		}
		emitting, stop := context.WithCancel(ctx)
		emitted := make(chan error, 1)
		go func() { emitted <- emitUntil(emitting, q, w.Ended) }()
		err = b.steadyRate(ctx, name, w.Ended)
		stop()
		return errors.Join(err, <-emitted, w.Stop(ctx))
	})
}

func (b *bench) steadyRate(ctx context.Context, name string, ended *contest.Counter) error {
	if err := sleep(ctx, warmUp); err != nil {
		return err
	}
	before := ended.Load()
	took, usage, err := b.timed(name, func() error { return sleep(ctx, steadyFor) })
	if err != nil {
		return err
	}
	b.record(name, float64(ended.Load()-before)/took.Seconds(), "events/s", usage)
	return nil
}

// emitUntil emits until ctx ends, never too far ahead of what has ended.
func emitUntil(ctx context.Context, q contest.Queue, ended *contest.Counter) error {
	for emitted := int64(0); ; {
		if err := ended.Wait(ctx, emitted-aheadAtMost); err != nil {
			if errors.Is(context.Cause(ctx), context.Canceled) {
				return nil // the measurement is over
			}
			return err
		}
		// Cutting off the emit would be an error, and a batch takes a short time only.
		if err := q.Emit(context.WithoutCancel(ctx), contest.BatchSize); err != nil {
			return err
		}
		emitted += contest.BatchSize
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
