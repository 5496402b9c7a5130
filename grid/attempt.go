package grid

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
)

// attempt is one attempt of a run. Only the goroutine of runAll changes it; the
// goroutines of actions only read values that were set before they began.
type attempt struct {
	runner   *Runner
	grid     *Grid
	run      *eventqueue.Run
	states   map[*step]state
	failures map[*step]result // those that failed
	halted   bool             // nothing more is to start
}

// state is the progress of an action in this attempt.
type state struct {
	phase  phase
	output json.RawMessage // of completed; nil: the action was skipped
}

type phase int

const (
	waiting phase = iota
	running
	completed
	// skipped: an output that it needs does not exist, so it cannot run from this event.
	skipped
	// failed: the action, or one that it needs, has failed.
	failed
)

// result is the result of the call of an action.
type result struct {
	step   *step
	output json.RawMessage
	err    error
	// lost: another attempt has the event.
	lost bool
}

// resume starts an attempt from the saved outputs.
func (r *Runner) resume(ctx context.Context, g *Grid, run *eventqueue.Run) (*attempt, error) {
	rows, err := r.outputs.of(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	a := &attempt{runner: r, grid: g, run: run, states: map[*step]state{}, failures: map[*step]result{}}
	byName := make(map[string]storedOutput, len(rows))
	for _, row := range rows {
		byName[row.Action] = row
	}
	for _, s := range g.steps {
		row, ok := byName[rowOf(s)]
		if !ok {
			row, ok = byName[s.name]
		}
		if !ok || !bytes.Equal(row.Definition, s.fingerprint[:]) {
			continue
		}
		done := state{phase: completed}
		if row.Output != nil {
			done.output = json.RawMessage(*row.Output)
		}
		a.states[s] = done
	}
	return a, nil
}

// runAll runs every action that can run, and returns when all started actions have
// ended.
func (a *attempt) runAll(ctx context.Context) error {
	results := make(chan result)
	for active := 0; ; {
		for active < a.runner.config.Concurrency && !a.halted && ctx.Err() == nil {
			s := a.next()
			if s == nil {
				break
			}
			a.states[s] = state{phase: running}
			active++
			go a.execute(ctx, s, a.inputsOf(s), results)
		}
		if active == 0 {
			return a.outcome(ctx)
		}
		a.record(<-results)
		active--
	}
}

// next returns an action that can run now, the first in the order of the grid, or
// nil. It also marks actions that cannot run.
func (a *attempt) next() *step {
	for _, s := range a.grid.steps {
		if a.states[s].phase != waiting {
			continue
		}
		ready := a.ready(s)
		if ready == completed {
			return s
		}
		a.states[s] = state{phase: ready}
	}
	return nil
}

// ready returns whether a step can run, from the phases of the actions whose outputs it
// takes: completed means that all inputs exist, waiting that some do not exist yet, and
// skipped or failed that the step cannot run.
func (a *attempt) ready(s *step) phase {
	all := completed
	for i, from := range s.inputs {
		if from.from == nil {
			continue
		}
		switch other := a.states[from.from]; {
		case other.phase == failed:
			return failed
		case other.phase == waiting || other.phase == running:
			all = waiting
		case other.output == nil && !s.uses.inputs[i].optional && all == completed:
			all = skipped
		}
	}
	return all
}

// inputsOf collects the outputs that a step takes, for its goroutine.
func (a *attempt) inputsOf(s *step) filler {
	taken := map[*step]json.RawMessage{}
	for _, from := range s.inputs {
		if from.from != nil {
			taken[from.from] = a.states[from.from].output
		}
	}
	return s.fill(a.run.Value, func(other *step) json.RawMessage { return taken[other] })
}

// record records the result of an action.
func (a *attempt) record(e result) {
	if e.err == nil {
		a.states[e.step] = state{phase: completed, output: e.output}
		return
	}
	a.states[e.step] = state{phase: failed}
	a.failures[e.step] = e
	a.halted = a.halted || e.lost || eventqueue.IsPermanent(e.err)
}

// execute calls an action and saves its output. It always sends one result.
func (a *attempt) execute(ctx context.Context, s *step, fill filler, results chan<- result) {
	e := result{step: s, err: errNoReturn} // the error if the action ends its goroutine
	began := time.Now()
	defer func() {
		if e.err != nil {
			e.err = fmt.Errorf("%s.%s (%s): %w", keyActions, s.name, s.uses.name, e.err)
		}
		a.runner.config.Logger.Debug("an action has ended", zap.Stringer(logEvent, a.run.ID), zap.String(logGrid, a.grid.name),
			zap.String(logAction, s.name), zap.Duration(logTook, time.Since(began)), zap.Bool(logSkipped, e.err == nil && e.output == nil), zap.Error(e.err))
		results <- e
	}()
	output, err := a.call(ctx, s, fill)
	if err != nil {
		e.err = err
		return
	}
	if err := a.runner.outputs.saveWithRetries(ctx, a.run, s, output); err != nil {
		e.err, e.lost = fmt.Errorf("store its output: %w", err), errors.Is(err, eventqueue.ErrLockLost)
		return
	}
	e.output, e.err = output, nil
}

// errNoReturn is the error of an action that left by runtime.Goexit.
var errNoReturn = errors.New("the action ended its goroutine without returning")

// call calls the Go function and returns its output as JSON; nil means that the action
// was skipped.
func (a *attempt) call(ctx context.Context, s *step, fill filler) (output json.RawMessage, err error) {
	defer func() {
		if value := recover(); value != nil {
			output, err = nil, &eventqueue.PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	if s.uses.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.uses.timeout, fmt.Errorf("its time of %s has passed", s.uses.timeout))
		defer cancel()
	}
	at := ActionRun{Canvas: a.run.Canvas, Event: a.run.ID, Grid: a.grid.name, Action: s.name, Attempt: a.run.Attempt, ClaimID: a.run.ClaimID}
	value, err := s.uses.call(ctx, at, fill)
	switch {
	case errors.Is(err, ErrSkip):
		return nil, nil
	case err != nil && errors.Is(err, ctx.Err()):
		return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
	case err != nil:
		return nil, err
	}
	return encode(value, a.runner.config.MaxOutputBytes)
}

// encode returns an output as JSON. Its errors are permanent, since no retry helps.
func encode(value any, limit int) (json.RawMessage, error) {
	output, err := json.Marshal(value)
	switch {
	case err != nil:
		return nil, eventqueue.Permanent(fmt.Errorf("its output cannot be written as JSON: %w", err))
	case len(output) > limit:
		return nil, eventqueue.Permanent(fmt.Errorf("its output is %d bytes long as JSON: the limit is %d; keep large data elsewhere and put out a reference",
			len(output), limit))
	case !utf8.Valid(output):
		return nil, eventqueue.Permanent(errors.New("its output is not UTF-8"))
	default:
		return output, nil
	}
}

// outcome returns the error of the attempt: nil if every action that can run is complete.
func (a *attempt) outcome(ctx context.Context) error {
	var problems, snoozes []error
	var shortest time.Duration
	permanent, lost := false, false
	for _, s := range a.grid.steps {
		e, ok := a.failures[s]
		if !ok {
			continue
		}
		permanent, lost = permanent || eventqueue.IsPermanent(e.err), lost || e.lost
		if wait, ok := eventqueue.SnoozeOf(e.err); ok {
			if len(snoozes) == 0 || wait < shortest {
				shortest = wait
			}
			snoozes = append(snoozes, e.err)
			continue
		}
		problems = append(problems, e.err)
	}
	switch {
	case lost:
		return fmt.Errorf("grid %s: %w", a.grid.name, errors.Join(problems...))
	case len(problems) > 0 && !permanent && len(snoozes) > 0:
		// The failure counts; the snoozes are only reported, and do not snooze the run.
		return fmt.Errorf("grid %s: %w\n%s", a.grid.name, errors.Join(problems...), texts(snoozes))
	case len(problems) > 0:
		return fmt.Errorf("grid %s: %w", a.grid.name, errors.Join(append(problems, snoozes...)...))
	case len(snoozes) > 0:
		return fmt.Errorf("grid %s: %s: %w", a.grid.name, texts(snoozes), eventqueue.Snooze(shortest))
	case a.incomplete():
		return fmt.Errorf("grid %s: not all actions have run: %w", a.grid.name, context.Cause(ctx))
	default:
		return nil
	}
}

// incomplete reports whether actions are still waiting, as after the end of the
// context.
func (a *attempt) incomplete() bool {
	for _, s := range a.grid.steps {
		if a.states[s].phase == waiting {
			return true
		}
	}
	return false
}

func texts(errs []error) string {
	lines := make([]string, len(errs))
	for i, err := range errs {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}
