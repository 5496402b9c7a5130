package main

import (
	"context"
	"io"
	"os"
	"strings"

	"eventsv2/test/command"
	"eventsv2/test/programs"
)

// run is the program without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseOptions(args, stderr)
	if err != nil {
		return command.Usage("chaos", err, stderr)
	}
	tell := command.NewReporter(stdout)
	var found *result
	return command.Logged("chaos", opts.keep, []string{programChaosWorker, programs.Worker, programs.Cron}, stderr, func(dir string) (good bool, err error) {
		if found, err = play(ctx, opts, dir, tell); found == nil {
			return false, err
		}
		if err == nil && opts.report != "" {
			err = os.WriteFile(opts.report, []byte(found.report(opts)), 0o644)
		}
		return len(found.judgement.violations) == 0, err
	}, func() {
		if found != nil {
			found.reportViolations(stderr)
			tell.Print(strings.TrimSpace(found.line()) + "\n")
		}
	})
}
