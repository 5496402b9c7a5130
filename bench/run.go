package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"eventsv2/bench/lab"
	"eventsv2/bench/report"
)

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&o.rounds, "rounds", 3, "how often each experiment is repeated")
	flags.IntVar(&o.events, "events", 100_000, "events of one run")
	flags.IntVar(&o.backlog, "backlog", 1_000_000, "events of a run with a large backlog")
	flags.StringVar(&o.only, "only", "", "experiments to run, with commas between; empty: all ("+strings.Join(namesOf(experiments), ", ")+"; with -growth "+strings.Join(namesOf(growth), ", ")+")")
	flags.StringVar(&o.profile, "profile", "", "directory, which has to be there, for a CPU profile of each timed run")
	flags.StringVar(&o.write, "write", "", "directory of "+report.Benchmarks.File+" and "+report.Growth.File+", of which one gets the figures")
	flags.BoolVar(&o.growth, "growth", false, "measure the queue alone, with more workers, events, canvases and time, in one round")
	flags.BoolVar(&o.smoke, "smoke", false, "check the counts that do not depend on the machine, and nothing else")
	o.worker.register(flags)
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.growth {
		o.rounds = 1
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
		if all := namesOf(o.experiments()); !slices.Contains(all, name) {
			return o, fmt.Errorf("-only %s: there is no such experiment; there are %s", name, strings.Join(all, ", "))
		}
	}
	return o, nil
}

// experiments are those that the flags leave to choose from.
func (o options) experiments() []experiment {
	if o.growth {
		return growth
	}
	return experiments
}

// page is the one on which the figures are.
func (o options) page() report.Page {
	if o.growth {
		return report.Growth
	}
	return report.Benchmarks
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
		return o.worker.run(ctx, os.Stdin, out)
	}
	if o.write != "" {
		if err := report.CheckPage(o.write, o.page()); err != nil {
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
	if err := b.experiment(ctx); err != nil {
		return err
	}
	return b.report(ctx, time.Since(began))
}

// experiment runs what was chosen. The first failure ends the others.
func (b *bench) experiment(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	run := func(e experiment) error {
		if err := e.run(b, ctx); err != nil {
			return fmt.Errorf("%s, round %d: %w", e.name, b.round, err)
		}
		return nil
	}
	group.Go(func() error {
		for round := range b.rounds {
			b.round = round + 1
			for _, e := range b.experiments() {
				if !b.wants(e.name) || e.once && b.round > 1 {
					continue
				}
				if e.aside {
					group.Go(func() error { return run(e) })
				} else if err := run(e); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return group.Wait()
}
