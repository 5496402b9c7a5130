package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"eventsv2/test/command"
)

// gate judges mutants and reports.
type gate struct {
	builder builder
	out     io.Writer
	within  time.Duration // no mutant's tests begin later than this, but for the first; 0 is no bound
}

// leastTime is for the first mutants of a sample, however long compiling has taken.
const leastTime = 20 * time.Second

// mostAgain is how many mutants may be judged again. Where more were not killed it is
// not the load: tests have stopped noticing.
const mostAgain = 6

// waitingMutants is how many mutants are judged at once, most of which wait for their turn to be built
// or to run.
const waitingMutants = 40

// run judges all and returns errSurvivors unless every one was killed. The few that
// were not, among many tests that run at once, are judged again, each alone: a machine
// that stood still fails no change. They are named either way, since a test that
// notices only sometimes should be made to notice always.
func (g gate) run(ctx context.Context, all []mutant) error {
	began, findings := time.Now(), &command.Findings{}
	if err := g.withoutMutants(ctx, all); err != nil {
		return err
	}
	if g.within > 0 {
		g.builder.until = began.Add(max(g.within, time.Since(began)+leastTime))
	}
	g.say("%-46s %-12s %-8s %6s  %s", "MUTANT", "BREAKS", "FATE", "TOOK", "NOTICED BY")
	// Many wait for a bundle, so that the next ones are built while tests of others run.
	alive, left, err := g.judgeAll(ctx, all, waitingMutants, findings)
	if err != nil {
		return err
	}
	if g.builder.until = (time.Time{}); left > 0 {
		g.say("left out, as %s were over: %d of %d", g.within, left, len(all))
	}
	again := alive
	if n := len(again); n > 0 && n <= mostAgain {
		g.say("not killed at first, judged again alone: %s", names(again))
		findings = &command.Findings{} // what is said again is what the last judgement found
		if alive, _, err = g.judgeAll(ctx, again, 1, findings); err != nil {
			return err
		}
	}
	findings.Print(g.out)
	g.say("took %s", time.Since(began).Round(time.Second))
	if len(again) > len(alive) {
		g.say("killed only when judged again, so their tests are not reliable: %s", names(without(again, alive)))
	}
	if len(alive) > 0 {
		g.say("not killed: %s", names(alive))
	}
	g.say("mutants: %d killed: %d", len(all)-left, len(all)-left-len(alive))
	switch {
	case len(alive) > 0:
		return errSurvivors
	case left == len(all):
		return fmt.Errorf("%w before any mutant was judged", errTooLate)
	}
	return nil
}

// judgeAll judges mutants, so many at a time, and reports each. It returns those that were not killed, which it adds to
// the findings, and how many were left out.
func (g gate) judgeAll(ctx context.Context, all []mutant, atOnce int, findings *command.Findings) (alive []mutant, left int, err error) {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range all {
		group.Go(func() error {
			v := g.judge(ctx, &all[i])
			mu.Lock()
			defer mu.Unlock()
			switch v.fate {
			case killed:
			case leftOut:
				left++
			default:
				alive = append(alive, all[i])
				findings.Add("%s (%s, %s): %s: %s", v.mutant.name, v.mutant.breaks, v.mutant.file, v.fate, v.why)
			}
			g.report(v)
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, 0, fmt.Errorf("stopped before all mutants were judged: %w", err)
	}
	return alive, left, nil
}

// names lists mutants in one line.
func names(all []mutant) string {
	var each []string
	for i := range all {
		each = append(each, all[i].name)
	}
	return strings.Join(each, ", ")
}

// without returns those of all that are not among the others.
func without(all, others []mutant) []mutant {
	return slices.DeleteFunc(slices.Clone(all), func(m mutant) bool {
		return slices.ContainsFunc(others, func(other mutant) bool { return other.name == m.name })
	})
}

// withoutMutants runs what the judges run on the code as it is: a judge that
// fails anyway can tell nothing. All run at once; the few that fail are run again, each alone,
// and named.
func (g gate) withoutMutants(ctx context.Context, all []mutant) error {
	var judges []judge
	for i := range all {
		for _, j := range all[i].judges {
			judges = addTests(judges, j)
		}
	}
	failed := make([]error, len(judges))
	var group errgroup.Group
	for i, j := range judges {
		group.Go(func() error {
			failed[i] = g.withoutMutant(ctx, j, "unchanged-"+strconv.Itoa(i))
			return nil
		})
	}
	_ = group.Wait() // of functions that return nil
	if len(slices.DeleteFunc(slices.Clone(failed), func(err error) bool { return err == nil })) > mostAgain {
		return errors.Join(failed...)
	}
	for i, err := range failed {
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return err
		}
		g.say("failed without a mutant, so it is run again alone: %v", err)
		if err := g.withoutMutant(ctx, judges[i], "again-"+strconv.Itoa(i)); err != nil {
			return err
		}
	}
	return nil
}

// withoutMutant runs what one judge runs on the code as it is.
func (g gate) withoutMutant(ctx context.Context, j judge, name string) error {
	binary, err := g.builder.unchanged(ctx, j.pkg, name)
	if err != nil {
		return err
	}
	output, err := g.builder.test(ctx, binary, j, unchangedLimit)
	if err != nil {
		return err
	}
	return allPassed(output, j)
}

// addTests adds the tests of a judge to those of its package.
func addTests(judges []judge, j judge) []judge {
	at := slices.IndexFunc(judges, func(other judge) bool { return other.pkg == j.pkg })
	if at < 0 {
		judges = append(judges, judge{pkg: j.pkg})
		at = len(judges) - 1
	}
	for _, test := range j.tests {
		if !slices.Contains(judges[at].tests, test) {
			judges[at].tests = append(judges[at].tests, test)
		}
	}
	return judges
}

// judge makes a mutant and shows it to its judges, until one notices.
func (g gate) judge(ctx context.Context, m *mutant) (v verdict) {
	began := time.Now()
	v.mutant = m
	defer func() { v.took = time.Since(began) }()
	text, err := m.apply(g.builder.root)
	if err != nil {
		v.fate, v.why = couldNotJudge, err.Error()
		if gone := new(notApplicable); errors.As(err, &gone) || errors.Is(err, os.ErrNotExist) {
			v.fate = outdated
		}
		return v
	}
	for i, j := range m.judges {
		binary, err := g.builder.build(ctx, j.pkg, m, text, m.name+"-"+strconv.Itoa(i))
		if err != nil {
			v.fate, v.why = uncompilable, err.Error()
			return v
		}
		output, err := g.builder.test(ctx, binary, j, testLimit)
		if errors.Is(err, errTooLate) {
			v.fate = leftOut
			return v
		}
		if err := errors.Join(err, binary.remove()); err != nil {
			v.fate, v.why = couldNotJudge, err.Error()
			return v
		}
		if v.fate, v.by, v.why = judged(output, j); v.fate != survived {
			return v
		}
	}
	return v
}

func (g gate) report(v verdict) {
	g.say("%-46s %-12s %-8s %5.1fs  %s", v.mutant.name, v.mutant.breaks, v.fate, v.took.Seconds(), v.by)
	if v.fate != killed && v.fate != leftOut {
		g.say("    %s: %s", v.mutant.file, v.why)
	}
}

// say prints a line. Where that fails there is nobody to tell.
func (g gate) say(format string, args ...any) { _, _ = fmt.Fprintf(g.out, format+"\n", args...) }
