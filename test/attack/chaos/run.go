package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"eventsv2/test/attack/harness"
	"eventsv2/test/command"
	"eventsv2/test/programs"
)

// run is the program without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseOptions(args, stderr)
	if err != nil {
		return command.Usage(name, err, stderr)
	}
	progress := command.NewReporter(stdout)
	var found harness.Result
	binaries := []string{programChaosWorker, programs.Worker, programs.Cron} // not worth retaining beside the logs
	return command.Logged(name, opts.retain, binaries, stderr, func(dir string) (good bool, err error) {
		if found, err = play(ctx, opts, dir, progress); found == nil {
			return false, err
		}
		if opts.report != "" {
			err = errors.Join(err, os.WriteFile(opts.report, []byte(found.Page()), 0o644))
		}
		return found.Good(), err
	}, func() {
		if found != nil {
			progress.Print(found.Details() + strings.TrimSpace(found.Line()) + "\n")
		}
	})
}
