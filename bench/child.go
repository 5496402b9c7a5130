package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"eventsv2/bench/contest"
	"eventsv2/bench/ours"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgnotify"
	"eventsv2/eventqueue/pgstore"
)

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
