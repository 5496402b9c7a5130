// Package contest has the interface of the two sides of the benchmark, so that each
// measure is written once and the same code measures both.
package contest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Queue is an empty queue in a database of its own, with a pool of
// Connections connections.
type Queue interface {
	// Emit emits n events, BatchSize at a time, from one goroutine.
	Emit(ctx context.Context, n int) error

	// EmitOne emits one event with the given number in its value. It is called from
	// many goroutines.
	EmitOne(ctx context.Context, number int) error

	// Work starts a worker.
	Work(ctx context.Context, mode Mode) (*Worker, error)

	// URL returns the URL of the database.
	URL() string

	// Close ends what the queue holds and drops the database.
	Close(ctx context.Context) error
}

const (
	// BatchSize is how many events one call of an emit in batches takes.
	BatchSize = 1000
	// Connections is the size of each side's pool.
	Connections = 20
	// ValueBytes is the size of each event's value.
	ValueBytes = 100
)

// Mode is what a worker is tuned for.
type Mode int

// Each side has its best settings for each mode.
const (
	Throughput Mode = iota
	Latency
	// History is Throughput with every completed event retained.
	History
)

// Worker is a worker that runs no-op handlers.
type Worker struct {
	Ended   *Counter // events whose end is in the database
	Started Starts

	stop func(ctx context.Context) error
}

// NewWorker makes a Worker of one that a side has started.
func NewWorker(ended *Counter, started Starts, stop func(ctx context.Context) error) *Worker {
	return &Worker{Ended: ended, Started: started, stop: stop}
}

// Stop ends the worker.
func (w *Worker) Stop(ctx context.Context) error { return w.stop(ctx) }

// Starts passes on when handlers start, in mode Latency.
type Starts <-chan Start

// Start is the beginning of one handler.
type Start struct {
	Number int
	At     time.Time
}

// Counter counts events. Wait waits for a number of them.
type Counter struct {
	n, target atomic.Int64
	mu        sync.Mutex
	enough    chan struct{} // of the goroutine in Wait; nil if there is none
}

// NewCounter is a counter at 0.
func NewCounter() *Counter { return &Counter{} }

// Add counts n events more.
func (c *Counter) Add(n int64) {
	if now, target := c.n.Add(n), c.target.Load(); target > 0 && now >= target {
		c.tell()
	}
}

func (c *Counter) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.enough != nil && c.n.Load() >= c.target.Load() {
		close(c.enough)
		c.enough = nil
	}
}

// Load returns the count so far.
func (c *Counter) Load() int64 { return c.n.Load() }

// Wait blocks until n events are counted. One goroutine at a time may wait.
func (c *Counter) Wait(ctx context.Context, n int64) error {
	enough := make(chan struct{})
	c.mu.Lock()
	c.enough = enough
	c.target.Store(n)
	c.mu.Unlock()
	c.tell() // n events may have been counted already
	select {
	case <-enough:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d of %d events have ended: %w", c.Load(), n, context.Cause(ctx))
	}
}

// Value is the value of an event: a JSON text of ValueBytes bytes.
type Value struct {
	Number int    `json:"n"`
	Pad    string `json:"pad"`
}

// NewValue makes a value with a number and enough filler.
func NewValue(number int) Value {
	digits := len(strconv.Itoa(number))
	return Value{Number: number, Pad: pad[:ValueBytes-len(`{"n":,"pad":""}`)-digits]}
}

var pad = strings.Repeat("x", ValueBytes)

// JSON is the text of the value.
func (v Value) JSON() []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("contest: a number and a text cannot be JSON: " + err.Error())
	}
	return text
}
