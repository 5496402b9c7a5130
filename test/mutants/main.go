package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
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
	record := flags.Bool("record", false, "write which tests noticed, so that they are tried first from now on")
	parallel := flags.Int("parallel", min(max(runtime.NumCPU(), 2), 4), "build so many at a time, and run the tests of twice as many")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *sample < 0 || *seed < 0 || *within < 0 || *parallel < 1 {
		return fmt.Errorf("-sample is %d, -seed %d, -within %s and -parallel %d: none can be negative, and one at least is built at a time", *sample, *seed, *within, *parallel)
	}
	chosen, err := selectMutants(mutants(), *only)
	if err != nil {
		return err
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	last, err := readNoticed(root)
	if err != nil {
		return err
	}
	chosen = draw(chosen, last, *sample, *seed)
	if *list {
		return printList(out, chosen)
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
	b, err := newBuilder(ctx, root, dir, append(os.Environ(), "DATABASE_URL="+postgres.URL), *parallel, chosen)
	if err != nil {
		return err
	}
	err = gate{builder: b, out: out, within: *within, noticed: last}.run(ctx, chosen)
	if *record {
		err = errors.Join(err, writeNoticed(root, mutants(), last))
	}
	return err
}

func stopService(ctx context.Context, s *services.Service) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return s.Stop(ctx)
}

// moduleRoot is the directory of go.mod.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("ask go for the root of the module: %w", err)
	}
	file := strings.TrimSpace(string(out))
	if filepath.Base(file) != "go.mod" {
		return "", fmt.Errorf("this is not in a module: run it in the checkout")
	}
	return filepath.Dir(file), nil
}

// selectMutants returns those that are named, or all.
func selectMutants(all []mutant, names string) ([]mutant, error) {
	if names == "" {
		return all, nil
	}
	var chosen []mutant
	for name := range strings.SplitSeq(names, ",") {
		at := slices.IndexFunc(all, func(m mutant) bool { return m.name == name })
		if at < 0 {
			return nil, fmt.Errorf("there is no mutant %q: -list shows their names", name)
		}
		chosen = append(chosen, all[at])
	}
	return chosen, nil
}

// draw returns a number of the mutants, or all of them for 0 and where there are no more. They are neighbors in the
// order of the packages that noticed last, as each package has to be built.
func draw(all []mutant, last map[string]noticed, number, seed int) []mutant {
	if number == 0 || number >= len(all) {
		return all
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b mutant) int {
		return cmp.Or(cmp.Compare(last[a.name].pkg, last[b.name].pkg), cmp.Compare(a.dir(), b.dir()))
	})
	first := seed % len(all)
	return slices.Concat(all[first:], all[:first])[:number]
}

func printList(out io.Writer, all []mutant) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i := range all {
		if _, err := fmt.Fprintf(table, "%s\t%s\t%s\n", all[i].name, all[i].breaks, all[i].file); err != nil {
			return err
		}
	}
	return table.Flush()
}
