package main

import (
	"context"
	"io"

	"eventsv2/test/attack/harness"
	"eventsv2/test/command"
)

// run is the program without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseOptions(args, stderr)
	if err != nil {
		return command.Usage(chaos.Name, err, stderr)
	}
	return chaos.Run(opts.Options, stdout, stderr, func(dir string, progress *command.Reporter) (harness.Result, error) {
		return play(ctx, opts, dir, progress)
	})
}
