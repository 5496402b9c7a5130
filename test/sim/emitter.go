package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
)

// startEmitter starts an emitter that has n events to emit.
func (w *world) startEmitter(slot, n int) {
	w.incarnation++
	p := w.newProcess(fmt.Sprintf("e%d.%d", slot+1, w.incarnation))
	w.emitters[slot] = p
	p.restart = func() {
		w.startEmitter(slot, w.left[slot])
		w.note("start %s", w.emitters[slot].name)
	}
	d := newDice(mix(w.seed, hash(p.name)), "emitter")
	p.run(func(ctx context.Context) {
		for n > 0 && backoff.Sleep(ctx, d.between(0, 2*w.attackTime/time.Duration(w.emitsEach))) {
			n -= p.emitSome(ctx, d)
			w.left[slot] = n
		}
	})
}

var errRolledBack = errors.New("the emitter changed its mind")

// emitSome emits one or a few events in one of the ways that there are, and
// returns how many it tried to.
func (p *process) emitSome(ctx context.Context, d dice) int {
	count := 1
	if d.chance(0.2) {
		count = 2 + d.IntN(4)
	}
	events := make([]eventqueue.NewEvent, count)
	for i := range events {
		events[i] = p.draw(d)
		if p.w.priorities {
			p.w.drawPriority(d, &events[i])
		}
	}
	// What fails is not tried again: whether it was committed is the history's to
	// say.
	if p.w.publishes && d.chance(0.5) {
		_, _ = p.queue.EmitMany(ctx, p.drawReports(d))
	}
	switch {
	case p.w.byHand && d.chance(0.2):
		p.insertRows(ctx, d)
	case count > 1:
		_, _ = p.queue.EmitMany(ctx, events)
	case d.chance(0.6):
		_, _ = p.queue.Emit(ctx, events[0])
	case d.chance(0.5):
		rollback := d.chance(0.3)
		_ = p.queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
			if _, err := tx.Emit(ctx, events...); err != nil {
				return err
			}
			linger(ctx, events, d)
			if rollback {
				return errRolledBack
			}
			return nil
		})
	default:
		p.emitTx(ctx, events, d)
	}
	return count
}

// linger keeps a transaction open that may have found an event which waits, for longer than that would have waited.
func linger(ctx context.Context, events []eventqueue.NewEvent, d dice) {
	if events[0].UniqueMode != "" {
		backoff.Sleep(ctx, d.between(0, 5*time.Second))
	}
}

// emitTx emits in a transaction of the emitter's own.
func (p *process) emitTx(ctx context.Context, events []eventqueue.NewEvent, d dice) {
	notify := d.chance(0.5)
	tx, err := p.store().begin(ctx)
	if err != nil {
		return
	}
	defer p.store().end(ctx, tx)
	pending, err := p.queue.EmitTx(ctx, tx, events...)
	linger(ctx, events, d)
	if err != nil || p.store().commit(ctx, tx) != nil || !notify {
		return
	}
	_ = pending.Notify(ctx) // the relay does what it fails to do
}

// groupKeys are the ordering keys of some of the events.
var groupKeys = []string{"first line", "second line"}

func (p *process) draw(d dice) eventqueue.NewEvent {
	w := p.w
	w.mu.Lock()
	w.serial++
	serial := w.serial
	poisoned := w.poisonLeft > 0 && d.chance(0.05)
	if poisoned {
		w.poisonLeft--
	}
	w.mu.Unlock()
	e := eventqueue.NewEvent{Canvas: eventqueue.CanvasID{byte(1 + d.IntN(3))}, Module: "WORKER", Name: jobs[d.IntN(len(jobs))], Modifier: "_"}
	switch {
	case poisoned:
		e.Name = poison
	case w.chains && d.chance(0.25):
		return p.drawTyped(d, e.Canvas, serial)
	case w.grids && d.chance(0.3):
		return p.drawInput(d, e.Canvas, serial)
	}
	if w.modes && e.Name != poison && d.chance(0.4) {
		drawMode(d, &e)
		e.Value = p.payload(&e, payload{Serial: serial})
		return e
	}
	if w.unique && d.chance(0.4) {
		e.UniqueKey = uniqueKeys[d.IntN(len(uniqueKeys))]
		e.UniqueFor = []time.Duration{0, 0, 1500 * time.Millisecond, 20 * time.Second}[d.IntN(4)]
	}
	if d.chance(0.2) {
		e.OrderingKey = groupKeys[d.IntN(len(groupKeys))]
	}
	switch {
	case d.chance(0.7):
	case d.chance(0.03):
		e.Delay = d.between(eventqueue.MaxRequeue-time.Second, eventqueue.MaxRequeue+time.Minute)
	case d.chance(0.5):
		e.Delay = d.between(time.Millisecond, time.Minute)
	default:
		e.DelayUntil = time.Now().Add(d.between(-time.Minute, time.Minute)) // by its wrong clock
	}
	e.Value = p.payload(&e, payload{Serial: serial})
	return e
}
