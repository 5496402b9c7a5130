package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"eventsv2/test/command"
	"eventsv2/test/programs"
)

// exitStopped is the exit status after a signal; see doc.go.
const exitStopped = 130

// cleanupLimit bounds the stopping of everything.
const cleanupLimit = time.Minute

// errNotOK says that the demo ran to its end and its verdict is bad.
var errNotOK = errors.New("the queue did not keep its word")

// options is the command line.
type options struct {
	input    string
	notifier string
	ui       bool
}

// run is the program without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseOptions(args, stderr)
	if err != nil {
		return command.Usage("demo", err, stderr)
	}
	in, err := loadInput(opts.input)
	if err != nil {
		return command.Usage("demo", err, stderr)
	}
	dir, err := os.MkdirTemp("", "eventsv2-demo-")
	if err != nil {
		return command.Fail("demo", fmt.Errorf("make a directory for logs: %w", err), command.ExitFailed, stderr)
	}
	printer := newPrinter(stdout, len(in.events))
	err = play(ctx, opts, in, dir, printer)
	switch {
	case err == nil:
		if err := os.RemoveAll(dir); err != nil {
			return command.Fail("demo", err, command.ExitFailed, stderr)
		}
		printer.last()
		return command.ExitOK
	case ctx.Err() != nil && !errors.Is(err, errCleanup):
		if err := os.RemoveAll(dir); err != nil {
			return command.Fail("demo", err, exitStopped, stderr)
		}
		printer.say("stopped by a signal: everything that was started is stopped, and its data is removed")
		return exitStopped
	default:
		status := command.Fail("demo", err, command.ExitFailed, stderr)
		keepLogs(dir, stderr)
		printer.last()
		return status
	}
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := command.Flags("demo")
	flags.StringVar(&o.input, "input", "", "NDJSON `file` with the events to emit (default: a built-in sample)")
	flags.StringVar(&o.notifier, "notifier", notifierAuto, "`notifier` to use: emulator (the official one), memory (a fake in this process), or auto (the first of the two that there is)")
	flags.BoolVar(&o.ui, "ui", false, "serve the dashboard, and go on after the verdict until Ctrl-C")
	if err := command.Parse(flags, args, stderr); flags.NArg() > 0 {
		return o, fmt.Errorf("%w: name the input as -input FILE", err)
	} else if err != nil {
		return o, err
	}
	switch o.notifier {
	case notifierAuto, notifierEmulator, notifierMemory:
		return o, nil
	default:
		return o, fmt.Errorf("-notifier is %q: it must be %s, %s or %s", o.notifier, notifierAuto, notifierEmulator, notifierMemory)
	}
}

// keepLogs keeps the directory with the logs of the children. Without any log it removes the
// directory; what cannot be removed only takes up room.
func keepLogs(dir string, stderr io.Writer) {
	if logs, err := filepath.Glob(filepath.Join(dir, "*.log")); err == nil && len(logs) == 0 {
		_ = os.RemoveAll(dir)
		return
	}
	command.RetainLogs("demo", dir, []string{programs.Worker, programs.Cron, programs.Ctl}, stderr)
}
