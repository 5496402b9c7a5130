package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// errRanPaused is a broken promise that the verdict alone would not show.
var errRanPaused = errors.New("events of a paused handler ran")

// pauseAct pauses the busiest handler, emits, shows that its events wait while
// all others end, and unpauses it.
func (s *stage) pauseAct(ctx context.Context, events []eventqueue.NewEvent) error {
	scope, count := busiestScope(events)
	if _, err := s.rules.Add(ctx, operate.PauseRule, scope); err != nil {
		return err
	}
	s.printer.say("paused %s on canvas %s; emitting %s: rows in Postgres first, then the notifier",
		scope.Name, abbreviate(scope.Canvas), plural(len(events), "event"))
	ids, err := s.emitter.emit(ctx, events)
	if err != nil {
		return err
	}
	var paused []eventqueue.EventID
	for i, e := range events {
		if scopeOf(e) == scope {
			paused = append(paused, ids[i])
		}
	}
	if err := s.await(ctx, func(c counts) (bool, error) { return c.waiting == count, nil }); err != nil {
		return err
	}
	if ran := s.target.runs(paused); ran > 0 {
		return fmt.Errorf("%w: the target saw %d of %s", errRanPaused, ran, scope)
	}
	s.printer.say("%s ended; the paused handler's %d wait in Postgres, and not one of them ran", plural(len(events)-count, "event"), count)
	_, notified, err := s.rules.Lift(ctx, operate.PauseRule, scope)
	if err != nil {
		return err
	}
	if err := s.awaitEnd(ctx, paused); err != nil {
		return err
	}
	s.printer.say("unpaused %s: %d notified again, and all %d have run", scope.Name, notified, count)
	return nil
}

// inHand is how many events the workers together are running when one of them is killed.
const inHand = 12

// crashAct emits, kills a worker that is running events, starts another one, and shows that
// the events of the dead worker are taken over.
func (s *stage) crashAct(ctx context.Context, events []eventqueue.NewEvent) error {
	wanted := min(inHand, s.accepted(events))
	if wanted == 0 {
		s.printer.say("the input is too small to kill a worker in the middle of it")
		_, err := s.emitter.emit(ctx, events)
		return err
	}
	full := s.target.gate.close(wanted)
	s.printer.say("emitting %s more; the target is slow now, so that the workers have some in hand", plural(len(events), "event"))
	if _, err := s.emitter.emit(ctx, events); err != nil {
		return err
	}
	select {
	case <-full:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	victim := s.target.gate.busiest()
	s.fleet.Process(victim).Kill()
	crashed := time.Now()
	held := s.target.gate.open(victim)
	s.printer.say("kill -9 %s with %s in hand; their rows are still in Postgres, locked for %s at most",
		victim, plural(len(held), "event"), lockTimeout)
	if err := s.fleet.startWorker(ctx, fmt.Sprintf("worker-%d", workers+1)); err != nil {
		return err
	}
	s.printer.say("started worker-%d; the cron process has the dead worker's events notified again once their locks expire", workers+1)
	if err := s.awaitEnd(ctx, held); err != nil {
		return err
	}
	s.printer.say("all %d have ended on other workers, %.1f s after the crash", len(held), time.Since(crashed).Seconds())
	return nil
}

// accepted counts the events that the target does not refuse.
func (s *stage) accepted(events []eventqueue.NewEvent) int {
	n := 0
	for _, e := range events {
		if !s.in.refusals || !bytes.Contains(e.Value, []byte(refusalMark)) {
			n++
		}
	}
	return n
}

// awaitEnd waits until all of the events have ended.
func (s *stage) awaitEnd(ctx context.Context, ids []eventqueue.EventID) error {
	return s.await(ctx, func(counts) (bool, error) {
		n, err := countEnded(ctx, s.pool, ids)
		return n == len(ids), err
	})
}

// abbreviate is the beginning of a canvas, which is enough to recognise it.
func abbreviate(canvas eventqueue.CanvasID) string {
	first, _, _ := strings.Cut(canvas.String(), "-")
	return first + "…"
}
