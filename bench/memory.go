package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
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
			samples, most, err = watchChild(ctx, workerOptions{database: q.URL(), events: b.backlog})
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

// watchChild runs a worker to its end and samples its memory.
func watchChild(ctx context.Context, o workerOptions) (samples []int64, most int64, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, 0, err
	}
	child := exec.CommandContext(ctx, self, o.args()...)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		return nil, 0, err
	}
	if err := child.Start(); err != nil {
		return nil, 0, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), childDone) {
				return
			}
		}
	}()
	ticks := time.NewTicker(sampleEvery)
	defer ticks.Stop()
	for running := true; running; {
		select {
		case <-ticks.C:
		case <-done:
			running = false
		}
		if now, high, err := lab.ResidentBytes(child.Process.Pid); err == nil && now > 0 {
			samples, most = append(samples, now), high
		}
	}
	if err := errors.Join(child.Process.Signal(os.Interrupt), child.Wait()); err != nil {
		return nil, 0, fmt.Errorf("the worker: %w", err)
	}
	if len(samples) < 8 {
		return nil, 0, fmt.Errorf("the worker ran too short to be watched: %d samples; give -backlog more events", len(samples))
	}
	return samples, most, nil
}
