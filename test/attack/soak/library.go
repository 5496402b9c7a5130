package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/service"
	"eventsv2/test/command"
)

// roleVariable makes this program one that embeds the queue, as any program may.
// A process of its own can be frozen, and tells how many goroutines it has.
const (
	roleVariable = "SOAK_ROLE"
	roleLibrary  = "library"
)

// runLibrary is a worker, a relay and a cron checker in one process. It is
// configured like cmd/worker, and writes what it does to its standard output.
func runLibrary(ctx context.Context, stdout, stderr io.Writer) int {
	if err := embed(ctx, &notes{out: stdout}); err != nil {
		return command.Fail("soak", err, command.ExitFailed, stderr)
	}
	return command.ExitOK
}

// embed runs the parts until ctx ends.
func embed(ctx context.Context, out *notes) error {
	config, err := service.FromEnv()
	if err != nil {
		return err
	}
	config.Name, config.NoPruner = "soak-library", true
	config.Address, config.HandlersFile = "", "" // those are the other programs'
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return service.Run(ctx, config, out.register) })
	group.Go(func() error { return out.measure(ctx) })
	return group.Wait()
}

func (n *notes) register(s *service.Service) error {
	retries := maxRetries
	for _, key := range handlerKeys() {
		policy := eventqueue.Policy{Timeout: handlerTimeout, MaxRetries: &retries,
			Backoff: eventqueue.Exponential(backoffBase, backoffMax)}
		if err := s.Register(key, eventqueue.HandlerFunc(n.handle), policy); err != nil {
			return err
		}
	}
	return nil
}

// notes are what the process tells the soak, line by line: what was done, and
// how large it is. The standard output is a pipe whose reader the soak is; once
// that is dead, the first write ends the process.
type notes struct {
	mu  sync.Mutex
	out io.Writer
}

// The first word of a line.
const (
	noteDone  = "done"  // module, value
	noteStats = "stats" // goroutines, bytes of the heap in use after the last collection
)

func (n *notes) write(format string, args ...any) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, err := fmt.Fprintf(n.out, format+"\n", args...)
	return err
}

// handle does one event; what it has done is written before it returns.
func (n *notes) handle(ctx context.Context, run *eventqueue.Run) error {
	if err := perform(ctx, run.Name, run.Retries); err != nil {
		return err
	}
	return n.write("%s %s %s", noteDone, run.Module, run.Value)
}

// measureEvery is the time between two measurements.
const measureEvery = time.Second

func (n *notes) measure(ctx context.Context) error {
	heap := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for backoff.Sleep(ctx, measureEvery) {
		metrics.Read(heap)
		if err := n.write("%s %d %d", noteStats, runtime.NumGoroutine(), heap[0].Value.Uint64()); err != nil {
			return err
		}
	}
	return nil
}
