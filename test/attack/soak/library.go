package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/service"
	"eventsv2/test/command"
	"eventsv2/test/programs"
)

// roleVariable makes this program one that embeds the queue, as any program may.
// A process of its own can be frozen, and reports how many goroutines it has.
const (
	roleVariable = "SOAK_ROLE"
	roleLibrary  = "library"
)

// runLibrary is a worker, a relay and a cron checker in one process. It is
// configured like cmd/worker, and writes what it does to its standard output.
func runLibrary(ctx context.Context, stdout, stderr io.Writer) int {
	config, err := service.FromEnv()
	if err == nil {
		config.Name, config.NoPruner = "soak-library", true
		config.Address, config.HandlersFile = "", "" // those are the other programs'
		reports := &reporter{out: json.NewEncoder(stdout)}
		err = programs.Embed(ctx, config, func(s *service.Service) error {
			return programs.Register(s, handlers(), reports.handle)
		}, reports.measure)
	}
	if err != nil {
		return command.Fail(soak.Name, err, command.ExitFailed, stderr)
	}
	return command.ExitOK
}

// report is a line that the process writes: what was done, or how large the process is.
type report struct {
	Module string `json:"module,omitempty"` // of an event that was done
	Value  []byte `json:"value,omitempty"`

	Goroutines int    `json:"goroutines,omitempty"`
	Heap       uint64 `json:"heap,omitempty"` // bytes in use after the last collection
}

// reporter writes reports. The standard output is a pipe whose reader the soak is; once
// that is dead, the first write ends the process.
type reporter struct {
	mu  sync.Mutex
	out *json.Encoder
}

func (r *reporter) write(one report) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Encode(one)
}

// handle does one event; what it has done is written before it returns.
func (r *reporter) handle(ctx context.Context, run *eventqueue.Run) error {
	if err := perform(ctx, run.Name, run.Retries); err != nil {
		return err
	}
	return r.write(report{Module: run.Module, Value: run.Value})
}

// measureEvery is the time between two measurements.
const measureEvery = time.Second

func (r *reporter) measure(ctx context.Context) error {
	heap := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for backoff.Sleep(ctx, measureEvery) {
		metrics.Read(heap)
		if err := r.write(report{Goroutines: runtime.NumGoroutine(), Heap: heap[0].Value.Uint64()}); err != nil {
			return err
		}
	}
	return nil
}

// listener reads the reports of the process.
type listener struct {
	ledger *ledger

	mu   sync.Mutex
	size report // the last one of its size
}

// listen reads until the end of the reports, or until it cannot read one: the ledger will miss
// what comes after that.
func (l *listener) listen(from io.Reader) {
	lines := json.NewDecoder(from)
	for {
		var one report
		err := lines.Decode(&one)
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			_, _ = io.Copy(io.Discard, from) // the process must be able to write
			return
		case one.Module != "":
			_ = l.ledger.done(one.Module, one.Value) // the ledger records what is wrong
		default:
			l.mu.Lock()
			l.size = one
			l.mu.Unlock()
		}
	}
}

// last returns the last measurement, of no goroutines if there is none.
func (l *listener) last() report {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}
