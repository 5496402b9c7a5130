package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"eventsv2/test/command"
)

// options is the command line.
type options struct {
	list     bool
	only     string
	parallel int
	sample   time.Duration
	seed     uint64
	keep     bool
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := command.Flags("faults")
	flags.BoolVar(&o.list, "list", false, "say which scenarios there are, and run none")
	flags.StringVar(&o.only, "only", "", "run the scenarios of these `names` only, with commas between them")
	flags.IntVar(&o.parallel, "parallel", 5, "how `many` scenarios run at once; most of them wait most of the time")
	flags.DurationVar(&o.sample, "sample", 0, "run only scenarios that together take about this `time`, drawn with -seed")
	flags.Uint64Var(&o.seed, "seed", 1, "draw a sample with this `number`")
	flags.BoolVar(&o.keep, "keep", false, "keep all logs though no scenario failed")
	err := command.Parse(flags, args, stderr)
	if err == nil && o.parallel < 1 {
		err = fmt.Errorf("-parallel is %d: it must be positive", o.parallel)
	}
	if err == nil && o.sample < 0 {
		err = fmt.Errorf("-sample is %s: it must not be negative", o.sample)
	}
	return o, err
}

// wholeLimit is how long all scenarios may take: longer, and nobody runs them.
const wholeLimit = 10 * time.Minute

// run is the program without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseOptions(args, stderr)
	var chosen []scenario
	if err == nil {
		chosen, err = choose(opts.only)
	}
	if err == nil && opts.sample > 0 {
		chosen = draw(chosen, opts)
	}
	if err != nil {
		return command.Usage("faults", err, stderr)
	}
	if opts.list {
		list(stdout, chosen)
		return command.ExitOK
	}
	began, failures := time.Now(), &command.Findings{}
	var failed int
	var skipped []string
	return command.Logged("faults", opts.keep, []string{binaries}, stderr, func(dir string) (good bool, err error) {
		failed, skipped, err = playAll(ctx, opts, chosen, dir, stdout, failures)
		if took := time.Since(began); err == nil && opts.only == "" && opts.sample == 0 && took > wholeLimit {
			err = fmt.Errorf("all scenarios took %s, at most %s are allowed: look for one that takes longer than it says, or raise -parallel on a machine that has more to give", took.Round(time.Second), wholeLimit)
		}
		return failed == 0, err
	}, func() {
		failures.Print(stdout)
		verdict := fmt.Sprintf("faults: scenarios=%d failed=%d", len(chosen), failed)
		if len(skipped) > 0 {
			verdict += " SKIPPED=" + strings.Join(skipped, ",")
		}
		_, _ = fmt.Fprintf(stdout, "took=%s\n%s\n", time.Since(began).Round(time.Second), verdict) // nowhere else to say it
	})
}

// choose returns the scenarios of some names, the usual ones for no name.
func choose(names string) ([]scenario, error) {
	if names == "" {
		return usual(), nil
	}
	all := scenarios()
	var chosen []scenario
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(s scenario) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no scenario %q (-list names them)", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// draw returns scenarios, one at least, that take about the time of the sample, of which several are played at once.
func draw(all []scenario, o options) (drawn []scenario) {
	left := o.sample * time.Duration(o.parallel)
	for _, i := range rand.New(rand.NewPCG(o.seed, 0)).Perm(len(all)) {
		if one := all[i]; len(drawn) == 0 || one.lasts <= left {
			drawn = append(drawn, one)
			left -= one.lasts
		}
	}
	return drawn
}

func list(out io.Writer, all []scenario) {
	for _, s := range all {
		_, _ = fmt.Fprintf(out, "%-34s %s\n", s.name, s.acknowledgement) // nowhere else to say it
	}
}

// playAll plays scenarios, several at once, says a line about each, and adds those that failed to
// the failures.
func playAll(ctx context.Context, opts options, chosen []scenario, dir string, out io.Writer, failures *command.Findings) (failed int, skipped []string, err error) {
	s, err := openStage(ctx, dir)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	var (
		mu      sync.Mutex
		playing sync.WaitGroup
		late    []scenario // beside others, for whom the machine may have been too busy
	)
	fail := func(one scenario, why []string) (verdict string) {
		failed++
		failures.Add("%s: FAILED\n%s", one.name, strings.Join(append(slices.Clip(why), complaints(filepath.Join(dir, one.name))...), "\n"))
		return "FAILED " + strings.Join(why, "; ")
	}
	say := func(one scenario, took time.Duration, figures []string, verdict string) {
		_, _ = fmt.Fprintf(out, "%-34s %4.0fs %s %s\n", one.name, took.Seconds(), strings.Join(figures, " "), verdict) // nowhere else to say it
	}
	slots := make(chan struct{}, opts.parallel)
	// What takes longest goes first, so that nothing long is left at the end.
	slices.SortStableFunc(chosen, func(a, b scenario) int { return int(b.lasts - a.lasts) })
	for _, one := range chosen {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			playing.Wait()
			return failed, skipped, context.Cause(ctx)
		}
		playing.Go(func() {
			defer func() { <-slots }()
			began := time.Now()
			got := s.play(ctx, one)
			mu.Lock()
			defer mu.Unlock()
			verdict := "ok"
			switch {
			case got.skipped != "" && len(got.why) == 0 && os.Getenv("CI") != "":
				verdict = fail(one, []string{"CI may skip nothing: " + got.skipped})
			case got.skipped != "" && len(got.why) == 0:
				skipped = append(skipped, one.name)
				verdict = "SKIPPED: " + got.skipped
			case got.late && opts.parallel > 1 && len(chosen) > 1:
				late = append(late, one)
				verdict = "late or repeated beside others, played again alone: " + strings.Join(got.why, "; ")
			case len(got.why) > 0:
				verdict = fail(one, got.why)
			}
			say(one, time.Since(began), got.figures, verdict)
		})
	}
	playing.Wait()
	// What is promised in seconds is judged where only the program decides them. Whatever
	// else was wrong has failed above.
	for _, one := range late {
		one.name += "-alone"
		began := time.Now()
		got := s.play(ctx, one)
		verdict := "ok"
		if len(got.why) > 0 {
			verdict = fail(one, got.why)
		}
		say(one, time.Since(began), got.figures, verdict)
	}
	return failed, skipped, nil
}
