package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"eventsv2/bench/contest"
	"eventsv2/bench/lab"
	"eventsv2/bench/ours"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgnotify"
	"eventsv2/eventqueue/pgstore"
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

// childDone is the line that a child prints when its events have ended. Then it waits for
// a signal, so that its figures can still be read.
const childDone = "done"

// workerOptions are the flags that make this program the worker whose memory is measured.
type workerOptions struct {
	database string
	events   int
}

func (o *workerOptions) register(flags *flag.FlagSet) {
	flags.StringVar(&o.database, "worker-database", "", "used by the program itself: be a worker on this database")
	flags.IntVar(&o.events, "worker-events", 0, "used by the program itself: the events to wait for")
}

func (o *workerOptions) child() bool { return o.database != "" }

func (o *workerOptions) args() []string {
	return []string{"-worker-database", o.database, "-worker-events", fmt.Sprint(o.events)}
}

func (o *workerOptions) run(ctx context.Context, out io.Writer) (err error) {
	pool, err := pgstore.Open(ctx, o.database, "bench-worker", contest.Connections)
	if err != nil {
		return err
	}
	defer pool.Close()
	notifier, err := pgnotify.New(pool, pgnotify.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, notifier.Close()) }()
	store := pgstore.New(pool)
	queue, err := eventqueue.New(store, notifier, eventqueue.QueueConfig{})
	if err != nil {
		return err
	}
	work := context.WithoutCancel(ctx)
	w, err := ours.Work(work, store, notifier, queue, contest.Throughput)
	if err != nil {
		return err
	}
	if err := w.Ended.Wait(ctx, int64(o.events)); err != nil {
		return errors.Join(err, w.Stop(work))
	}
	fmt.Fprintln(out, childDone)
	<-ctx.Done()
	return w.Stop(work)
}
