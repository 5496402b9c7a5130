package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"eventsv2/test/command"
)

// gate judges mutants and reports.
type gate struct {
	builder *builder
	out     io.Writer
	within  time.Duration // no mutant's tests begin later than this, but for the first; 0 is no bound
	noticed map[string]noticed
}

// leastTime is for the first mutants of a sample, however long compiling has taken.
const leastTime = 20 * time.Second

// mostAgain is how many mutants may be judged again. Where more were not killed it is not the load: tests have stopped
// noticing.
const mostAgain = 6

// waitingMutants is how many mutants are judged at once, most of which wait for their turn to be built or to run.
const waitingMutants = 40

// run judges all and returns errSurvivors unless every one was killed. The few that were not, among many tests that run
// at once, are judged again, each alone: a machine that stood still fails no change. They are named either way, since a
// test that notices only sometimes should be made to notice always.
func (g gate) run(ctx context.Context, all []mutant) error {
	began, findings := time.Now(), &command.Findings{}
	if g.within > 0 {
		// The first program is built before the time counts.
		if _, err := g.builder.binary(ctx, g.builder.judges(&all[0])[0]); err != nil {
			return err
		}
		g.builder.until = began.Add(max(g.within, time.Since(began)+leastTime))
	}
	g.say("%-46s %-12s %-8s %6s  %s", "MUTANT", "BREAKS", "FATE", "TOOK", "NOTICED BY")
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
		findings = &command.Findings{} // repeated at the end: findings of the last verdict
		if alive, _, err = g.judgeAll(ctx, again, 1, findings); err != nil {
			return err
		}
	}
	findings.Print(g.out)
	g.say("took %s", time.Since(began).Round(time.Second))
	if reliable := slices.DeleteFunc(slices.Clone(again), func(m mutant) bool { return slices.Contains(alive, m) }); len(reliable) > 0 {
		g.say("killed only when judged again, so their tests are not reliable: %s", names(reliable))
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
			mu.Lock()
			last := g.noticed[all[i].name]
			mu.Unlock()
			v := g.builder.judge(ctx, &all[i], last)
			mu.Lock()
			defer mu.Unlock()
			g.say("%-46s %-12s %-8s %5.1fs  %s %s", v.mutant.name, v.mutant.breaks, v.fate, v.took.Seconds(), v.pkg, v.test)
			switch v.fate {
			case killed:
				test, _, _ := strings.Cut(v.test, "/")
				g.noticed[v.mutant.name] = noticed{v.pkg, test}
			case leftOut:
				left++
			default:
				g.say("    %s: %s", v.mutant.file, v.why)
				alive = append(alive, all[i])
				findings.Add("%s (%s, %s): %s: %s", v.mutant.name, v.mutant.breaks, v.mutant.file, v.fate, v.why)
			}
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

// say prints a line. An error of it cannot be reported.
func (g gate) say(format string, args ...any) { _, _ = fmt.Fprintf(g.out, format+"\n", args...) }
