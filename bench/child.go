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
	"strconv"
	"time"

	"eventsv2/bench/contest"
	"eventsv2/bench/ours"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgnotify"
	"eventsv2/eventqueue/pgstore"
)

// workerOptions are the flags that make this program a worker in a process of its own. It prints a line when it is
// connected, begins with the first line that it reads, and then prints how many events have ended whenever that has
// grown. It stops at the end of its input, and so with the process that has started it.
type workerOptions struct {
	database string
	hangs    bool
}

func (o *workerOptions) register(flags *flag.FlagSet) {
	flags.StringVar(&o.database, "worker-database", "", "used by the program itself: be a worker on this database")
	flags.BoolVar(&o.hangs, "worker-hangs", false, "used by the program itself: with handlers that do not return")
}

func (o *workerOptions) child() bool { return o.database != "" }

func (o *workerOptions) args() []string {
	return []string{"-worker-database", o.database, "-worker-hangs=" + strconv.FormatBool(o.hangs)}
}

// childConnections is the size of a child's pool, as that of a deployed worker.
const childConnections = 10

// countEvery is how often a child looks how many events have ended.
const countEvery = 5 * time.Millisecond

func (o *workerOptions) run(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	pool, err := pgstore.Open(ctx, o.database, "bench-worker", childConnections)
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
	fmt.Fprintln(out, 0)
	lines := bufio.NewReader(in)
	if _, err := lines.ReadString('\n'); err != nil {
		return nil // it was never to begin
	}
	mode := contest.Throughput
	if o.hangs {
		mode = ours.Hanging
	}
	work := context.WithoutCancel(ctx)
	w, err := ours.Work(work, store, notifier, queue, mode)
	if err != nil {
		return err
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = lines.ReadString('\n') // until the end of the input
	}()
	ticks := time.NewTicker(countEvery)
	defer ticks.Stop()
	for printed := int64(0); ; {
		select {
		case <-over:
			return w.Stop(work)
		case <-ticks.C:
		}
		if n := w.Ended.Load(); n > printed {
			fmt.Fprintln(out, n)
			printed = n
		}
	}
}

// child is a worker in a process of its own.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

// startChild starts a worker, and waits until it is connected.
func startChild(ctx context.Context, o workerOptions) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, self, o.args()...)}
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.lines = bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	if !c.lines.Scan() {
		return nil, fmt.Errorf("a worker has ended before its begin: %w", errors.Join(c.lines.Err(), c.cmd.Wait()))
	}
	return c, nil
}

// begin lets the worker begin. What it has ended is added to a counter.
func (c *child) begin(ended *contest.Counter) error {
	go func() {
		for last := int64(0); c.lines.Scan(); {
			if n, err := strconv.ParseInt(c.lines.Text(), 10, 64); err == nil {
				ended.Add(n - last)
				last = n
			}
		}
	}()
	_, err := io.WriteString(c.in, "\n")
	return err
}

// stop ends the worker.
func (c *child) stop() error {
	err := errors.Join(c.in.Close(), c.cmd.Wait())
	if err != nil {
		return fmt.Errorf("a worker: %w", err)
	}
	return nil
}

// kill ends the worker as a crash does.
func (c *child) kill() error {
	err := c.cmd.Process.Kill()
	_ = c.cmd.Wait() // which says that it was killed
	return err
}
