package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"

	"eventsv2/test/attack/harness"
)

// run is the program without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseOptions(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return harness.ExitOK
	case err != nil:
		return fail(stderr, err, harness.ExitUsage)
	case runtime.GOOS != "linux":
		return fail(stderr, errors.New("the processes are measured through /proc, which only Linux has"), harness.ExitFailed)
	}
	dir, err := os.MkdirTemp("", "eventsv2-soak-")
	if err != nil {
		return fail(stderr, fmt.Errorf("make a directory for logs: %w", err), harness.ExitFailed)
	}
	tell := harness.NewReporter(stdout)
	found, err := play(ctx, opts, dir, tell)
	if err != nil {
		fail(stderr, err, harness.ExitFailed)
	}
	if found != nil {
		if opts.report != "" {
			if failure := os.WriteFile(opts.report, []byte(found.markdown()), 0o644); failure != nil {
				err = errors.Join(err, failure)
				fail(stderr, failure, harness.ExitFailed)
			}
		}
		tell.Print(found.details())
	}
	good := err == nil && found.good()
	if good && !opts.keep {
		if err := os.RemoveAll(dir); err != nil {
			fail(stderr, err, harness.ExitFailed)
			good = false
		}
	} else {
		harness.RetainLogs("soak", dir, []string{programWorker, programCron}, stderr)
	}
	if found != nil {
		tell.Print(found.line() + "\n")
	}
	if !good {
		return harness.ExitFailed
	}
	return harness.ExitOK
}

func fail(stderr io.Writer, err error, status int) int {
	_, _ = fmt.Fprintln(stderr, "soak:", err) // nowhere else to say it
	return status
}
