package worker

import (
	"context"
	"os"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/internal/buildinfo"
	"eventsv2/internal/logkey"
)

// Registration describes a worker to operators.
type Registration struct {
	// Number is in the number of each of the worker's claims.
	Number   eventqueue.WorkerNumber
	Host     string
	PID      int
	Version  string // of the program
	Handlers eventqueue.HandlerSet
	Slots    int // how many events it may hold at once
}

// registration describes this worker.
func (w *Worker) registration() Registration {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return Registration{Number: w.number, Host: storable(host), PID: os.Getpid(), Version: storable(buildinfo.Short()), Handlers: w.breakers.known, Slots: w.config.Concurrency}
}

// holdAgain is how long a connection lasts that counts as a success.
const holdAgain = 2 * time.Second

// hold keeps the connection of a worker open, which shows that it lives, until ctx ends.
func (w *Worker) hold(ctx context.Context, reserve Reserve) {
	wait, warned := backoff.New(w.config.Jitter), false
	for ctx.Err() == nil {
		began := time.Now()
		err := reserve.Hold(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > holdAgain {
			wait.Reset()
			warned = false
		}
		if !warned {
			w.log.Warn("the connection for heartbeats has ended; it is opened again", zap.Duration(logkey.Wait, wait.Next), zap.Error(err))
			warned = true
		}
		wait.Pause(ctx)
	}
}
