package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// The exit statuses; see doc.go.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitStopped = 130
)

// cleanupLimit bounds the stopping of everything.
const cleanupLimit = time.Minute

// errNotOK says that the demo ran to its end and its verdict is bad.
var errNotOK = errors.New("the queue did not keep its word")

// options is the command line.
type options struct {
	input    string
	notifier string
}

// run is the program without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseOptions(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return fail(stderr, err, exitUsage)
	}
	in, err := loadInput(opts.input)
	if err != nil {
		return fail(stderr, err, exitUsage)
	}
	dir, err := os.MkdirTemp("", "eventsv2-demo-")
	if err != nil {
		return fail(stderr, fmt.Errorf("make a directory for logs: %w", err), exitFailed)
	}
	story := newStory(stdout, len(in.events))
	err = play(ctx, opts, in, dir, story)
	switch {
	case err == nil:
		if err := os.RemoveAll(dir); err != nil {
			return fail(stderr, err, exitFailed)
		}
		story.last()
		return exitOK
	case ctx.Err() != nil && !errors.Is(err, errCleanup):
		if err := os.RemoveAll(dir); err != nil {
			return fail(stderr, err, exitStopped)
		}
		story.say("stopped by a signal: everything that was started is stopped, and its data is removed")
		return exitStopped
	default:
		_, _ = fmt.Fprintln(stderr, "demo:", err) // nowhere else to say it
		keepLogs(dir, stderr)
		story.last()
		return exitFailed
	}
}

func fail(stderr io.Writer, err error, status int) int {
	_, _ = fmt.Fprintln(stderr, "demo:", err) // nowhere else to say it
	return status
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.input, "input", "", "NDJSON `file` with the events to emit (default: a built-in sample)")
	flags.StringVar(&o.notifier, "notifier", doorbellAuto, "`doorbell` to use: emulator (the official one), memory (a fake in this process), or auto (the first of the two that there is)")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(stderr)
		flags.Usage()
		return o, err
	}
	if err != nil {
		return o, fmt.Errorf("%w (-help lists the options)", err)
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is no option: name the input as -input FILE", flags.Arg(0))
	}
	switch o.notifier {
	case doorbellAuto, doorbellEmulator, doorbellMemory:
		return o, nil
	default:
		return o, fmt.Errorf("-notifier is %q: it must be %s, %s or %s", o.notifier, doorbellAuto, doorbellEmulator, doorbellMemory)
	}
}

// keepLogs names the directory with the logs of the children and removes what is
// of no use there; without any log it removes the directory. What cannot be
// removed only takes up room.
func keepLogs(dir string, stderr io.Writer) {
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err == nil && len(logs) == 0 {
		_ = os.RemoveAll(dir)
		return
	}
	for _, name := range []string{programWorker, programCron} {
		_ = os.Remove(filepath.Join(dir, name))
	}
	_, _ = fmt.Fprintln(stderr, "demo: the logs of the child processes are kept in", dir) // nowhere else to say it
}
