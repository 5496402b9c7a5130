package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"eventsv2/test/command"
	"eventsv2/test/programs"
)

// run is the program without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseOptions(args, stderr)
	switch {
	case err != nil:
		return command.Usage("soak", err, stderr)
	case runtime.GOOS != "linux":
		return command.Fail("soak", errors.New("the processes are measured through /proc, which only Linux has"), command.ExitFailed, stderr)
	}
	tell := command.NewReporter(stdout)
	var found *result
	return command.Logged("soak", opts.keep, []string{programs.Worker, programs.Cron}, stderr, func(dir string) (good bool, err error) {
		if found, err = play(ctx, opts, dir, tell); found == nil {
			return false, err
		}
		if opts.report != "" {
			err = errors.Join(err, os.WriteFile(opts.report, []byte(found.markdown()), 0o644))
		}
		tell.Print(found.details())
		return found.good(), err
	}, func() {
		if found != nil {
			tell.Print(fmt.Sprintln(found.line()))
		}
	})
}
