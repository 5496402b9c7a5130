package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"
)

func main() {
	testing.Init() // a bubble of synctest needs a test to live in
	options, err := parse(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		_, _ = fmt.Fprintf(os.Stderr, "simulate: %v\n", err)
		os.Exit(2)
	}
	os.Args = os.Args[:1] // the rest is nothing to the package testing
	run := newRun(os.Stdout, options)
	tests := []testing.InternalTest{{Name: "seeds", F: func(t *testing.T) {
		if !run.all(t) {
			os.Exit(1)
		}
		os.Exit(0) // before the package testing has its say
	}}}
	testing.Main(func(string, string) (bool, error) { return true, nil }, tests, nil, nil)
}

// options are what was asked for.
type options struct {
	first, seeds uint64
	trace, twice bool
}

// parse reads the options; usage goes to the given writer when it is asked for.
func parse(args []string, usage io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("simulate", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Uint64Var(&o.seeds, "seeds", 60, "how many seeds to simulate")
	flags.Uint64Var(&o.first, "first", 1, "the first seed")
	flags.BoolVar(&o.trace, "trace", false, "print the trace of each seed")
	flags.BoolVar(&o.twice, "twice", false, "simulate each seed twice and compare the traces")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(usage)
		flags.Usage()
		return o, err
	case err != nil:
		return o, fmt.Errorf("%w; -help lists the options", err)
	case flags.NArg() > 0:
		return o, fmt.Errorf("%q is no option; -help lists the options", flags.Arg(0))
	case o.seeds == 0:
		return o, errors.New("-seeds is 0: it must be at least 1")
	case o.first+o.seeds < o.first:
		return o, fmt.Errorf("-first %d and -seeds %d go beyond the largest seed", o.first, o.seeds)
	}
	return o, nil
}
