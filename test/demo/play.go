package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"eventsv2/test/command"
)

// lockTimeout is how long the locks of a dead worker are valid.
const lockTimeout = 4 * time.Second

// How often the queue is checked, and how long all acts together may take.
const (
	pollEvery    = 100 * time.Millisecond
	actsLimit    = 2 * time.Minute
	actsPerEvent = 50 * time.Millisecond
	judgingLimit = time.Minute
)

// errTooSlow ends the acts. Events that have not ended by then count as lost.
var errTooSlow = errors.New("the deadline of the demo has passed")

// play is the demo from its first line to its verdict. Nothing of what it starts
// is left when it returns. A signal ends the context, and with it the demo; after the verdict that is no error.
func play(signals context.Context, opts options, in *input, dir string, printer *printer) (err error) {
	ctx, broken := context.WithCancelCause(signals)
	defer broken(nil)
	stop := &command.Cleanups{}
	defer func() { err = errors.Join(err, cleanUp(ctx, stop)) }()
	printer.say("%s of %s on %s, from %s", plural(len(in.events), "event"), plural(len(in.handlers()), "handler"),
		plural(in.canvases(), "canvas"), in.name)
	s, err := setUp(ctx, opts, in, dir, printer, stop, broken)
	if err != nil {
		return because(ctx, err)
	}
	began := time.Now()
	if err := s.perform(ctx); err != nil {
		return because(ctx, err)
	}
	v, err := s.judge(ctx, time.Since(began))
	if err != nil {
		return because(ctx, err)
	}
	printer.conclude(v.String())
	if !v.ok() {
		return fmt.Errorf("%w: %d events lost, %d bodies differ, %d events left in the queue", errNotOK, v.lost, v.differing, v.waiting)
	}
	if opts.ui {
		printer.say("%s", v)
		if err := s.goOn(ctx); signals.Err() == nil {
			return because(ctx, err)
		}
	}
	return nil
}

// errCleanup is in the error of cleanUp.
var errCleanup = errors.New("not everything could be stopped and removed")

func cleanUp(ctx context.Context, stop *command.Cleanups) error {
	if err := stop.CleanUp(ctx, cleanupLimit); err != nil {
		return fmt.Errorf("%w: %w", errCleanup, err)
	}
	return nil
}

// because returns the cause of the end of ctx if it has ended, and otherwise err.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// perform plays the acts. If they take too long it says so, and the verdict shows the
// result.
func (s *stage) perform(ctx context.Context) error {
	limit := actsLimit + time.Duration(len(s.in.events))*actsPerEvent
	acting, cancel := context.WithTimeoutCause(ctx, limit, errTooSlow)
	defer cancel()
	first, rest := s.in.split()
	for _, act := range []func() error{
		func() error { return s.pauseAct(acting, first) },
		func() error { return s.crashAct(acting, rest) },
		func() error {
			return s.await(acting, func(c counts) (bool, error) { return c.waiting == 0, nil })
		},
	} {
		err := act()
		if ctx.Err() == nil && errors.Is(context.Cause(acting), errTooSlow) {
			s.printer.say("gave up after %s: what has not ended by now counts as lost", limit)
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// await checks the queue until met returns true, and shows the progress.
func (s *stage) await(ctx context.Context, met func(counts) (bool, error)) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		c, err := countEvents(ctx, s.pool)
		if err != nil {
			return err
		}
		s.printer.progress(c.ended)
		if ok, err := met(c); ok || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// judge compares everything that is known at the end.
func (s *stage) judge(ctx context.Context, took time.Duration) (verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, judgingLimit)
	defer cancel()
	c, err := countEvents(ctx, s.pool)
	if err != nil {
		return verdict{}, err
	}
	ended, err := endings(ctx, s.pool)
	if err != nil {
		return verdict{}, err
	}
	v := judge(facts{emitted: s.emitter.emitted, ended: ended, seen: s.target.sightings(), waiting: c.waiting, took: took})
	s.tell(v)
	return v, nil
}

// tell sums up before the last line.
func (s *stage) tell(v verdict) {
	t := s.target.tally()
	s.printer.say("the target did: %s", handlerList(t.handlers))
	if t.tripped > 0 {
		s.printer.say("it answered %s with a 500 the first time, on purpose: retried after a short wait", plural(t.tripped, "event"))
	}
	if t.refused > 0 {
		s.printer.say("it refused %s for good (422): FAILED in event_log, with value and error, not lost", plural(t.refused, "event"))
	}
	if v.duplicates > 0 {
		s.printer.say("it did %s again: done for the dead worker, which could not say so (at least once; ce-id is the same)",
			plural(v.duplicates, "event"))
	}
	if v.differing == 0 {
		s.printer.say("every body that arrived was byte for byte what was emitted")
	}
}

// shownHandlers is how many handlers fit on a line.
const shownHandlers = 6

// handlerList is the handlers with the most events.
func handlerList(counts map[string]int) string {
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, name := range names[:min(shownHandlers, len(names))] {
		parts = append(parts, fmt.Sprintf("%d × %s", counts[name], readable(name)))
	}
	if more := len(names) - shownHandlers; more > 0 {
		parts = append(parts, plural(more, "handler")+" more")
	}
	return strings.Join(parts, ", ")
}

// readable undoes the percent-encoding of a header.
func readable(name string) string {
	if text, err := url.PathUnescape(name); err == nil {
		return text
	}
	return name
}

func plural(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		return fmt.Sprintf("%d %ses", n, noun)
	default:
		return fmt.Sprintf("%d %ss", n, noun)
	}
}
