package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"eventsv2/bench/contest"
	"eventsv2/bench/lab"
)

// sampleEvery is how often the worker's memory is read.
const sampleEvery = 100 * time.Millisecond

// memory drains a large backlog with a worker in a process of its own, and measures the
// memory of that process. The notifications of the backlog are in Postgres, so they take
// no memory of the worker.
func (b *bench) memory(ctx context.Context) error {
	return b.with(ctx, postgres, func(ctx context.Context, q contest.Queue) error {
		if err := q.Emit(ctx, b.backlog); err != nil {
			return err
		}
		if err := b.lab.Prepare(ctx, q.URL()); err != nil {
			return err
		}
		var samples []int64
		var most int64
		_, usage, err := b.timed("memory", func() (err error) {
			samples, most, err = watchChild(ctx, q.URL(), b.backlog)
			return err
		})
		if err != nil {
			return err
		}
		b.record("memory.worker", float64(most)/1e6, "MB", usage)
		quarter := len(samples) / 4
		b.record("memory.growth", mean(samples[3*quarter:])/mean(samples[quarter:2*quarter]), "", usage)
		return nil
	})
}

func mean(values []int64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
	}
	return sum / float64(len(values))
}

// watchChild runs a worker until so many events have ended and samples its memory.
func watchChild(ctx context.Context, databaseURL string, events int) (samples []int64, most int64, err error) {
	c, err := startChild(ctx, workerOptions{database: databaseURL})
	if err != nil {
		return nil, 0, err
	}
	ended := contest.NewCounter()
	if err := c.begin(ended); err != nil {
		return nil, 0, errors.Join(err, c.stop())
	}
	done := make(chan error, 1)
	go func() { done <- ended.Wait(ctx, int64(events)) }()
	ticks := time.NewTicker(sampleEvery)
	defer ticks.Stop()
	for running := true; running; {
		select {
		case <-ticks.C:
		case err = <-done:
			running = false
		}
		if now, high, err := lab.ResidentBytes(c.cmd.Process.Pid); err == nil && now > 0 {
			samples, most = append(samples, now), high
		}
	}
	if err := errors.Join(err, c.stop()); err != nil {
		return nil, 0, err
	}
	if len(samples) < 8 {
		return nil, 0, fmt.Errorf("the worker ran too short to be watched: %d samples; give -backlog more events", len(samples))
	}
	return samples, most, nil
}
