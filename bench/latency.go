package main

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"eventsv2/bench/contest"
)

// The load of the latency experiments.
const (
	latencyEvery  = 20 * time.Millisecond
	latencyWarmUp = 50  // events that are not counted
	latencyEvents = 600 // with those
)

// latency measures the time from the call of emit to the start of the handler.
func (b *bench) latency(ctx context.Context) error {
	for _, side := range []string{memory, river, postgres} {
		err := b.with(ctx, side, func(ctx context.Context, q contest.Queue) error {
			if err := b.lab.Prepare(ctx, q.URL()); err != nil {
				return err
			}
			return b.latencyOf(ctx, q, "latency."+side)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) latencyOf(ctx context.Context, q contest.Queue, name string) error {
	w, err := q.Work(ctx, contest.Latency)
	if err != nil {
		return err
	}
	var waits []time.Duration
	_, usage, err := b.timed(name, func() error {
		waits, err = paced(ctx, q.EmitOne, w.Started)
		return err
	})
	if err := errors.Join(err, w.Stop(ctx)); err != nil {
		return err
	}
	b.record(name+".p50", milliseconds(percentile(waits, 50)), "ms", usage)
	b.record(name+".p99", milliseconds(percentile(waits, 99)), "ms", usage)
	return nil
}

// paced sends events at the steady rate and returns how long each took to start.
func paced(ctx context.Context, send func(ctx context.Context, number int) error, started contest.Starts) ([]time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sent := make([]time.Time, latencyEvents)
	ticks := time.NewTicker(latencyEvery)
	defer ticks.Stop()
	var senders sync.WaitGroup
	defer senders.Wait()
	for i := range sent {
		<-ticks.C
		sent[i] = time.Now()
		senders.Go(func() {
			if err := send(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	waits := make([]time.Duration, latencyEvents)
	for range waits {
		select {
		case s := <-started:
			waits[s.Number] = s.At.Sub(sent[s.Number])
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return waits[latencyWarmUp:], nil
}

// emulatorLatency measures the same through the emulator and, at the same rate, a bare
// notification from publish to pull.
func (b *bench) emulatorLatency(ctx context.Context) error {
	return b.with(ctx, emulator, func(ctx context.Context, q contest.Queue) error {
		if err := b.lab.Prepare(ctx, q.URL()); err != nil {
			return err
		}
		w, err := q.Work(ctx, contest.Latency)
		if err != nil {
			return err
		}
		bare, err := b.openBare(ctx, "bare")
		if err != nil {
			return errors.Join(err, w.Stop(ctx))
		}
		var waits, bareWaits []time.Duration
		_, usage, err := b.timed("emulator", func() (err error) {
			var bareErr error
			var both sync.WaitGroup
			both.Go(func() { bareWaits, bareErr = paced(ctx, bare.publish, bare.started) })
			waits, err = paced(ctx, q.EmitOne, w.Started)
			both.Wait()
			return errors.Join(err, bareErr)
		})
		if err := errors.Join(err, bare.close(), w.Stop(ctx)); err != nil {
			return err
		}
		for _, p := range []struct {
			name string
			at   float64
		}{{"p50", 50}, {"p99", 99}} {
			whole, alone := milliseconds(percentile(waits, p.at)), milliseconds(percentile(bareWaits, p.at))
			b.record("emulator.ours."+p.name, whole, "ms", usage)
			b.record("emulator.bare."+p.name, alone, "ms", usage)
			b.record("emulator.added."+p.name, whole-alone, "ms", usage)
		}
		return nil
	})
}

// percentile returns the smallest value that p percent of the values do not exceed.
func percentile(values []time.Duration, p float64) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(math.Ceil(p/100*float64(len(sorted))))-1]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
