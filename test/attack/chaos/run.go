package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"eventsv2/test/attack/harness"
)

// run is the program without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseOptions(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return harness.ExitOK
	case err != nil:
		_, _ = fmt.Fprintln(stderr, "chaos:", err) // nowhere else to say it
		return harness.ExitUsage
	}
	dir, err := os.MkdirTemp("", "eventsv2-chaos-")
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "chaos: make a directory for logs:", err)
		return harness.ExitFailed
	}
	t := harness.NewReporter(stdout)
	result, err := play(ctx, opts, dir, t)
	if err == nil && opts.report != "" {
		err = os.WriteFile(opts.report, []byte(result.report(opts)), 0o644)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "chaos:", err)
	}
	good := err == nil && len(result.judgement.violations) == 0
	if good && !opts.keep {
		err = os.RemoveAll(dir)
	} else {
		harness.RetainLogs("chaos", dir, []string{programChaosWorker, programWorker, programCron}, stderr)
	}
	if result != nil {
		result.reportViolations(stderr)
		t.Print(strings.TrimSpace(result.line()) + "\n")
	}
	if !good || err != nil {
		return harness.ExitFailed
	}
	return harness.ExitOK
}
