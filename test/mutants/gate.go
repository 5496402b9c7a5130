package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// gate judges mutants and reports.
type gate struct {
	builder  builder
	out      io.Writer
	parallel int
}

// run judges all and returns errSurvivors unless every one was killed.
func (g gate) run(ctx context.Context, all []mutant) error {
	began := time.Now()
	if err := g.withoutMutants(ctx, all); err != nil {
		return err
	}
	g.say("%-46s %-12s %-8s %6s  %s", "MUTANT", "BREAKS", "FATE", "TOOK", "NOTICED BY")
	var (
		mu    sync.Mutex
		kills int
	)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(g.parallel)
	for i := range all {
		group.Go(func() error {
			v := g.judge(ctx, &all[i])
			mu.Lock()
			defer mu.Unlock()
			if v.fate == killed {
				kills++
			}
			g.report(v)
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("stopped before all mutants were judged: %w", err)
	}
	g.say("took %s", time.Since(began).Round(time.Second))
	g.say("mutants: %d killed: %d", len(all), kills)
	if kills != len(all) {
		return errSurvivors
	}
	return nil
}

// withoutMutants runs what the judges run on the code as it is: a judge that
// fails anyway can tell nothing.
func (g gate) withoutMutants(ctx context.Context, all []mutant) error {
	var judges []judge
	for i := range all {
		for _, j := range all[i].judges {
			judges = addTests(judges, j)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(g.parallel)
	for i, j := range judges {
		group.Go(func() error {
			binary, err := g.builder.build(ctx, j.pkg, "", "unchanged-"+strconv.Itoa(i))
			if err != nil {
				return err
			}
			output, err := g.builder.test(ctx, binary, j)
			if err != nil {
				return err
			}
			return allPassed(output, j)
		})
	}
	return group.Wait()
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
	overlay, err := g.builder.overlay(m)
	if err != nil {
		v.fate, v.why = couldNotJudge, err.Error()
		if gone := new(notApplicable); errors.As(err, &gone) || errors.Is(err, os.ErrNotExist) {
			v.fate = outdated
		}
		return v
	}
	for i, j := range m.judges {
		binary, err := g.builder.build(ctx, j.pkg, overlay, m.name+"-"+strconv.Itoa(i))
		if err != nil {
			v.fate, v.why = uncompilable, err.Error()
			return v
		}
		output, err := g.builder.test(ctx, binary, j)
		if err := errors.Join(err, os.Remove(binary)); err != nil {
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
	if v.fate != killed {
		g.say("    %s: %s", v.mutant.file, v.why)
	}
}

// say prints a line. Where that fails there is nobody to tell.
func (g gate) say(format string, args ...any) { _, _ = fmt.Fprintf(g.out, format+"\n", args...) }
