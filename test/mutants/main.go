package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"eventsv2/test/services"
)

// errSurvivors is why the gate fails after it has said everything else.
var errSurvivors = errors.New("not every mutant was killed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run is the program. It blocks until all mutants are judged or ctx ends.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	only := flags.String("only", "", "judge these `names` only, with commas between")
	sample := flags.Int("sample", 0, "judge so `many` only, drawn with -seed; 0 judges all")
	seed := flags.Int("seed", 1, "draw a sample with this `number`")
	within := flags.Duration("within", 0, "begin no mutant's tests after this `time`, but for the first; 0 is no bound")
	list := flags.Bool("list", false, "list the mutants and do nothing")
	parallel := flags.Int("parallel", min(max(runtime.NumCPU(), 2), 4), "build so many at a time, and run the tests of twice as many")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *sample < 0 || *seed < 0 || *within < 0 {
		return fmt.Errorf("-sample is %d, -seed %d and -within %s: none can be negative", *sample, *seed, *within)
	}
	selected, err := selectMutants(mutants(), *only)
	if err != nil {
		return err
	}
	selected = draw(selected, *sample, *seed)
	if *list {
		return printList(out, selected)
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	postgres, err := services.Postgres(ctx, services.InMemory())
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return errors.Join(fmt.Errorf("make a directory for test binaries: %w", err), stopService(ctx, postgres))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir), stopService(ctx, postgres)) }()
	b := builder{root: root, dir: dir, env: append(os.Environ(), "DATABASE_URL="+postgres.URL),
		programs: &programs{by: map[string]func() (*program, error){}}, bundles: newBundles(selected),
		builds: make(slots, max(*parallel, 1)), tests: make(slots, 2*max(*parallel, 1))}
	return gate{builder: b, out: out, within: *within}.run(ctx, selected)
}

func stopService(ctx context.Context, s *services.Service) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return s.Stop(ctx)
}

// selectMutants returns those that are named, or all.
func selectMutants(all []mutant, names string) ([]mutant, error) {
	if names == "" {
		return all, nil
	}
	byName := map[string]mutant{}
	for _, m := range all {
		byName[m.name] = m
	}
	var selected []mutant
	for name := range strings.SplitSeq(names, ",") {
		m, ok := byName[name]
		if !ok {
			return nil, fmt.Errorf("there is no mutant %q: -list shows their names", name)
		}
		selected = append(selected, m)
	}
	return selected, nil
}

// draw returns a number of the mutants, or all of them for 0 and where there are no more. They are
// neighbors in the order of their judges' packages, as most of one package share a program.
func draw(all []mutant, number, seed int) []mutant {
	if number == 0 || number >= len(all) {
		return all
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b mutant) int { return strings.Compare(a.judges[0].pkg, b.judges[0].pkg) })
	first := seed % len(all)
	return slices.Concat(all[first:], all[:first])[:number]
}

func printList(out io.Writer, all []mutant) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, m := range all {
		var judges []string
		for _, j := range m.judges {
			judges = append(judges, j.pkg+" "+strings.Join(j.tests, " "))
		}
		if _, err := fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", m.name, m.breaks, m.file, strings.Join(judges, ", then ")); err != nil {
			return err
		}
	}
	return table.Flush()
}
