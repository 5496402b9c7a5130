package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"eventsv2/bench/lab"
	"eventsv2/bench/report"
)

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&o.rounds, "rounds", 3, "how often each experiment is repeated")
	flags.IntVar(&o.events, "events", 100_000, "events of one run")
	flags.IntVar(&o.backlog, "backlog", 1_000_000, "events of a run with a large backlog")
	flags.StringVar(&o.only, "only", "", "experiments to run, with commas between; empty: all ("+strings.Join(experimentNames(), ", ")+")")
	flags.StringVar(&o.profile, "profile", "", "directory, which has to be there, for a CPU profile of each timed run")
	flags.StringVar(&o.write, "write", "", "directory of benchmarks.md, whose figures are written anew")
	flags.BoolVar(&o.smoke, "smoke", false, "check the counts that do not depend on the machine, and nothing else")
	o.worker.register(flags)
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("%q is no flag; bench takes flags only", flags.Arg(0))
	case o.rounds < 1 || o.events < 1000 || o.backlog < 1000:
		return o, errors.New("-rounds must be at least 1, -events and -backlog at least 1000")
	case o.write != "" && o.only != "":
		return o, errors.New("-write needs all experiments: leave -only out")
	}
	for _, name := range o.chosen() {
		if !slices.Contains(experimentNames(), name) {
			return o, fmt.Errorf("-only %s: there is no such experiment; there are %s", name, strings.Join(experimentNames(), ", "))
		}
	}
	return o, nil
}

// chosen are the names of -only.
func (o options) chosen() []string {
	if o.only == "" {
		return nil
	}
	return strings.Split(o.only, ",")
}

func (o options) wants(experiment string) bool {
	return o.only == "" || slices.Contains(o.chosen(), experiment)
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.worker.child() {
		return o.worker.run(ctx, out)
	}
	if o.write != "" {
		if err := report.CheckPage(o.write); err != nil {
			return err
		}
	}
	l, err := lab.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close(ctx)) }()
	b := &bench{options: o, lab: l, out: out, figures: report.NewFigures()}
	if o.smoke {
		return b.smokeTest(ctx)
	}
	began := time.Now()
	for b.round = 1; b.round <= o.rounds; b.round++ {
		for _, e := range experiments {
			if !o.wants(e.name) || e.once && b.round > 1 {
				continue
			}
			if err := e.run(b, ctx); err != nil {
				return fmt.Errorf("%s, round %d: %w", e.name, b.round, err)
			}
		}
	}
	return b.report(ctx, time.Since(began))
}
