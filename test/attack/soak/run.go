package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"eventsv2/test/attack/harness"
	"eventsv2/test/command"
	"eventsv2/test/programs"
)

func main() {
	command.Main(func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		if os.Getenv(roleVariable) == roleLibrary {
			return runLibrary(ctx, stdout, stderr)
		}
		return run(ctx, args, stdout, stderr)
	})
}

// maxHours is a week.
const maxHours = 7 * 24

// soak is this program's part of its command line that others have as well.
var soak = harness.Command{Name: "soak", Unit: "hours", Each: time.Hour, Longest: maxHours,
	Draining: "the queue may take to come to rest at the end", Binaries: []string{programs.Worker, programs.Cron}}

// options is the command line.
type options struct {
	harness.Options
	every time.Duration
}

// load is how long events are emitted.
func (o options) load() time.Duration { return soak.Load(o.Options) }

func parseOptions(args []string, stderr io.Writer) (o options, err error) {
	defaults := harness.Options{Length: 1, Rate: 100, Drain: 5 * time.Minute}
	o.Options, err = soak.Parse(args, stderr, defaults, func(flags *flag.FlagSet) {
		flags.DurationVar(&o.every, "every", time.Minute, "`time` between two faults, at least 5s")
	})
	if err == nil && o.every < 5*time.Second {
		err = fmt.Errorf("-every is %s: it must be at least 5s", o.every)
	}
	return o, err
}

// run is the program without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseOptions(args, stderr)
	switch {
	case err != nil:
		return command.Usage(soak.Name, err, stderr)
	case runtime.GOOS != "linux":
		return command.Fail(soak.Name, errors.New("the processes are measured through /proc, which only Linux has"), command.ExitFailed, stderr)
	}
	return soak.Run(opts.Options, stdout, stderr, func(dir string, progress *command.Reporter) (harness.Result, error) {
		return play(ctx, opts, dir, progress)
	})
}
