package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"

	"eventsv2/bench/contest"
	"eventsv2/bench/lab"
	"eventsv2/bench/ours"
	"eventsv2/bench/peer"
	"eventsv2/bench/report"
)

// options are the flags.
type options struct {
	rounds  int
	events  int
	backlog int
	only    string
	profile string
	write   string
	smoke   bool
	growth  bool
	worker  workerOptions
}

// bench is one run of the program.
type bench struct {
	options
	lab   *lab.Lab
	out   io.Writer
	round int

	mu      sync.Mutex // an experiment may run aside
	figures *report.Figures
}

// record keeps one figure of this round and prints it with how busy the machine
// was.
func (b *bench) record(name string, value float64, unit string, usage lab.Usage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.figures.Add(name, unit, value)
	fmt.Fprintf(b.out, "round %d  %-24s %12s %-12s (%s)\n", b.round, name, report.Number(value), unit, usage)
}

// open makes an empty queue of one of the sides.
func (b *bench) open(ctx context.Context, side string) (contest.Queue, error) {
	switch side {
	case river:
		return peer.Open(ctx, b.lab)
	case string(ours.Emulator):
		host, err := b.lab.EmulatorHost(ctx)
		if err != nil {
			return nil, err
		}
		return ours.Open(ctx, b.lab, ours.Emulator, host)
	default:
		return ours.Open(ctx, b.lab, ours.Notifier(side), "")
	}
}

// The sides; ours has one for each notifier.
const (
	river    = "river"
	memory   = string(ours.InMemory)
	emulator = string(ours.Emulator)
	postgres = string(ours.Postgres)
)

// runLimit bounds one run: the slowest takes eleven minutes.
const runLimit = 20 * time.Minute

// with opens a queue for f and closes it again.
func (b *bench) with(ctx context.Context, side string, f func(ctx context.Context, q contest.Queue) error) error {
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	q, err := b.open(ctx, side)
	if err != nil {
		return fmt.Errorf("open a queue of %s: %w", side, err)
	}
	return errors.Join(f(ctx, q), q.Close(ctx))
}

// work starts a worker and waits until n events have ended.
func work(ctx context.Context, q contest.Queue, mode contest.Mode, n int) error {
	w, err := q.Work(ctx, mode)
	if err != nil {
		return err
	}
	return errors.Join(w.Ended.Wait(ctx, int64(n)), w.Stop(ctx))
}

// timed measures f, and writes a profile of it if that was requested.
func (b *bench) timed(name string, f func() error) (took time.Duration, usage lab.Usage, err error) {
	stop, err := b.startProfile(name)
	if err != nil {
		return 0, usage, err
	}
	runtime.GC() // what the run before has left
	busy := b.lab.StartBusy()
	began := time.Now()
	err = f()
	took = time.Since(began)
	usage = b.lab.StopBusy(busy)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.figures.Note(usage.Mine, usage.Others)
	return took, usage, errors.Join(err, stop())
}

func (b *bench) startProfile(name string) (stop func() error, err error) {
	if b.profile == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(filepath.Join(b.profile, fmt.Sprintf("%s-%d.pprof", name, b.round)))
	if err != nil {
		return nil, fmt.Errorf("write a profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}
