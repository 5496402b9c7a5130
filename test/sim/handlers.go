package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/oracle"
)

// plan is what a run does; it depends on the seed, the event and the attempt.
type plan struct {
	work   time.Duration
	deaf   bool                            // to its context
	emit   bool                            // an event of its own
	after  time.Duration                   // by its worker's wrong clock; 0: at once
	inTx   bool                            // it completes its event in a transaction
	first  func(ctx context.Context) error // nil: nothing that can fail comes before the end
	then   ending
	snooze time.Duration
}

type ending int

const (
	succeed ending = iota
	fail
	panics
	giveUp
	snooze
	crash
)

func (p *process) plan(run *eventqueue.Run, timeout time.Duration) plan {
	d := newDice(mix(p.w.seed, uint64(run.ID), uint64(run.Attempt)), "plan")
	var pl plan
	switch {
	case p.w.lastRefusals && p.w.healed():
		pl.work = d.between(0, timeout) // so that heartbeats meet
	case d.chance(0.4): // at once
	case d.chance(0.8):
		pl.work = d.between(time.Millisecond, 5*time.Second)
	default:
		pl.work = d.between(time.Second, 2*timeout)
		pl.deaf = d.chance(0.3)
	}
	switch {
	case run.Name == poison:
		pl.then = crash
		return pl
	case d.chance(0.7):
		pl.inTx = d.chance(0.3)
		if pl.emit = d.chance(0.2); pl.emit && d.chance(0.5) {
			pl.after = d.between(-time.Minute, time.Minute)
		}
	default:
		pl.then = ending(1 + d.IntN(4))
		pl.snooze = d.between(0, 20*time.Second)
		if d.chance(0.02) {
			pl.snooze = d.between(eventqueue.MaxRequeue, eventqueue.MaxRequeue+time.Minute)
		}
	}
	return pl
}

var errHandler = errors.New("the handler failed")

// handle is every handler that is not synchronous.
func (p *process) handle(ctx context.Context, run *eventqueue.Run, timeout time.Duration) error {
	return p.follow(ctx, run, timeout, p.plan(run, timeout), func(result oracle.Result) error {
		return p.mark(run, oracle.RunEnded, func() oracle.Result { return result })
	})
}

// follow does what a plan says, and has the end of it marked.
func (p *process) follow(ctx context.Context, run *eventqueue.Run, timeout time.Duration, pl plan, ended func(oracle.Result) error) (err error) {
	p.w.alive.Add(1) // its worker may be gone before it returns
	defer p.w.alive.Done()
	began := time.Now()
	if pl.deaf && pl.work >= timeout {
		defer p.hung(run.ID, began.Add(timeout))()
	}
	if err := p.mark(run, oracle.RunStarted, func() oracle.Result { return p.w.started(pl, timeout) }); err != nil {
		return err
	}
	p.labour(ctx, pl)
	switch {
	case ctx.Err() != nil && !pl.deaf:
		err = ctx.Err()
	default:
		err = p.outcome(ctx, run, pl)
	}
	if dead := ended(resultOf(ctx, err)); dead != nil {
		return dead
	}
	if pl.then == panics && errors.Is(err, errHandler) {
		panic("the handler panics")
	}
	return err
}

// started counts what a handler is about to do to its worker.
func (w *world) started(pl plan, timeout time.Duration) oracle.Result {
	if pl.deaf && pl.work >= timeout {
		w.faults["handler deaf past its timeout"]++
	}
	if pl.then == panics {
		w.faults["handler panics"]++
	}
	return ""
}

// hung records that a handler runs past its timeout, deaf, so that its lock is
// not renewed any more.
func (p *process) hung(id eventqueue.EventID, from time.Time) (end func()) {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	i := len(w.history.Faults)
	w.history.Faults = append(w.history.Faults, oracle.Fault{Kind: oracle.Hung, Actor: p.name, Event: id, From: from})
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.history.Faults[i].To = time.Now()
	}
}

// mark takes the start or the end of a run through the gate.
func (p *process) mark(run *eventqueue.Run, kind oracle.Kind, result func() oracle.Result) error {
	c := call{op: string(kind), key: fmt.Sprintf("%s#%d", run.ID, run.Attempt)}
	return p.do(context.Background(), c, func() (string, error) {
		r := oracle.Record{Kind: kind, Actor: p.name, Event: run.ID, Attempt: run.Attempt, Result: result()}
		if kind == oracle.RunStarted {
			r.Value = string(run.Value)
		}
		p.w.add(r)
		return string(r.Result), nil
	})
}

// markWith takes something that a run does through the gate, as a record of it.
func (p *process) markWith(run *eventqueue.Run, r oracle.Record) error {
	c := call{op: string(r.Kind), key: fmt.Sprintf("%s#%d %v", run.ID, run.Attempt, r.Actions)}
	return p.do(context.Background(), c, func() (string, error) {
		r.Actor, r.Event, r.Attempt = p.name, run.ID, run.Attempt
		p.w.add(r)
		return string(r.Result), nil
	})
}

func (p *process) labour(ctx context.Context, pl plan) {
	if pl.work == 0 {
		return
	}
	timer := time.NewTimer(pl.work)
	defer timer.Stop()
	if pl.deaf {
		<-timer.C
		return
	}
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (p *process) outcome(ctx context.Context, run *eventqueue.Run, pl plan) error {
	if pl.first != nil {
		if err := pl.first(ctx); err != nil {
			return err
		}
	}
	if pl.emit {
		if err := p.emitMore(ctx, run, pl.after); err != nil {
			return err
		}
	}
	switch pl.then {
	case fail, panics:
		return errHandler
	case giveUp:
		return eventqueue.Permanent(errHandler)
	case snooze:
		return eventqueue.Snooze(pl.snooze)
	case crash:
		_ = p.do(context.Background(), call{op: "crash", key: run.ID.String()}, func() (string, error) {
			p.w.faults["handler kills its worker"]++
			nemesis{p.w}.kill(p)
			return "", nil
		})
		return errKilled
	}
	if !pl.inTx {
		return nil
	}
	return run.CompleteTx(ctx, func(context.Context, *eventqueue.Tx) error { return nil })
}

// emitMore emits an event that follows from this one.
func (p *process) emitMore(ctx context.Context, run *eventqueue.Run, after time.Duration) error {
	var from payload
	if err := json.Unmarshal(run.Value, &from); err != nil || from.Depth > 0 || run.Module != "WORKER" {
		return err
	}
	e := eventqueue.NewEvent{Canvas: run.Canvas, Module: "WORKER", Name: jobs[0], Modifier: "_"}
	if after != 0 {
		e.DelayUntil = time.Now().Add(after)
	}
	e.Value = p.payload(&e, payload{Serial: from.Serial, Depth: from.Depth + 1})
	_, err := p.queue.Emit(ctx, e)
	return err
}

// resultOf is what a run is to the oracle, in the order in which the contract of
// eventqueue.Handler counts.
func resultOf(ctx context.Context, err error) oracle.Result {
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		return oracle.OK
	case eventqueue.IsPermanent(err):
		return oracle.Permanent
	case isSnooze(err):
		return oracle.Snoozed
	case errors.Is(cause, eventqueue.ErrStopping):
		return oracle.Stopping
	case errors.Is(err, errHandler):
		return oracle.Failed
	case cause != nil && !errors.Is(cause, eventqueue.ErrTimeout):
		return oracle.Cut
	default:
		return oracle.Failed
	}
}

func isSnooze(err error) bool {
	_, snoozed := eventqueue.SnoozeOf(err)
	return snoozed
}
