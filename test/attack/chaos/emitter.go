package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/time/rate"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/typed"
	"eventsv2/internal/backoff"
	"eventsv2/test/attack/chaos/task"
)

// acknowledgement is what an emitter knows of an event.
type acknowledgement int

const (
	unknown  acknowledgement = iota // the call failed: it may exist or not
	accepted                        // it must exist
	undone                          // its transaction was rolled back: it must not exist
	repeated                        // another event had its unique key: it must not exist
)

// errUndo makes a transaction roll back on purpose.
var errUndo = errors.New("rolled back on purpose")

// emitters emit until their context ends.
type emitters struct {
	queue  *eventqueue.Queue
	bus    *typed.Bus
	own    *emitters // with a pool that the queue did not make
	pool   *pgxpool.Pool
	db     *sql.DB
	limit  *rate.Limiter
	seed   int64
	scopes []eventqueue.CanvasID

	mu               sync.Mutex
	acknowledgements map[string]acknowledgement // by tag
	forms            map[string]int             // accepted events, by the way of emitting
	repeats          map[string]repeat          // by tag
	ordered          map[string]emission        // by tag
	failures         int

	// waiting is how many events are due and have not ended; backpressure counts them.
	waiting     atomic.Int64
	mostWaiting int
}

// How many emit at once, and how long one emit may take.
const (
	emitterCount = 4
	emitTimeout  = 5 * time.Second
)

// form is one way of emitting.
type form struct {
	name  string
	share int // of 100 calls
	most  int // events per call
	// unique: its events have unique keys; keyless: they have no keys; odd: somebody writes their
	// rows by hand; typed: their completion emits others.
	unique, keyless, odd, typed bool
	emit                        emitFunc
}

func forms() []form {
	return []form{
		{name: "Emit", share: 27, most: 1, emit: emitOne},
		{name: "EmitMany", share: 20, most: 40, emit: emitMany},
		{name: "EmitUnique", share: 4, most: 5, unique: true, emit: emitUnique},
		{name: "EmitUnique in a transaction", share: 2, most: 5, unique: true, emit: emitUniqueInTx},
		{name: "InTx", share: 10, most: 5, emit: emitInTx(nil)},
		{name: "InTx, rolled back", share: 5, most: 5, emit: emitInTx(errUndo)},
		{name: "EmitTx and Notify", share: 8, most: 5, emit: emitTx(nil, true)},
		{name: "EmitMany, own pool", share: 2, most: 40, emit: onOwnPool(emitMany)},
		{name: "EmitTx without Notify", share: 4, most: 5, emit: emitTx(nil, false)},
		{name: "EmitTx and Notify, own pool", share: 3, most: 5, emit: onOwnPool(emitTx(nil, true))},
		{name: "EmitTx, rolled back", share: 3, most: 5, emit: emitTx(errUndo, false)},
		{name: "EmitSQL", share: 4, most: 5, emit: emitSQL},
		{name: "INSERT", share: 3, most: 5, keyless: true, emit: insert},
		{name: "INSERT of an odd row", share: 1, most: 1, keyless: true, odd: true, emit: insertOdd},
		{name: "typed", share: 4, most: 4, keyless: true, typed: true, emit: emitTyped},
	}
}

// run emits until ctx ends.
func (e *emitters) run(ctx context.Context) {
	var running sync.WaitGroup
	for n := range emitterCount {
		running.Go(func() { e.emitLoop(ctx, n) })
	}
	running.Wait()
}

func (e *emitters) emitLoop(ctx context.Context, n int) {
	random := rand.New(rand.NewPCG(uint64(e.seed), uint64(n)))
	for serial := 0; ctx.Err() == nil; {
		if e.waiting.Load() >= int64(e.mostWaiting) {
			backoff.Sleep(ctx, backpressureEvery/2)
			continue
		}
		f := pickForm(random)
		events := make([]eventqueue.NewEvent, 1+random.IntN(f.most))
		for i := range events {
			serial++
			events[i] = f.drawEvent(random, e.scopes, fmt.Sprintf("%d-%d", n, serial))
		}
		if e.limit.WaitN(ctx, len(events)) != nil {
			return
		}
		// Not ctx: the end of the load is no reason for an unknown outcome.
		emitCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), emitTimeout)
		began := time.Now()
		err := f.emit(emitCtx, e, events)
		cancel()
		e.record(f, events, err)
		if err == nil {
			e.recordOrdered(n, began, events)
		}
		if err != nil && !errors.Is(err, errUndo) {
			backoff.Sleep(ctx, 50*time.Millisecond)
		}
	}
}

func pickForm(random *rand.Rand) form {
	n := random.IntN(100)
	for _, f := range forms() {
		if n -= f.share; n < 0 {
			return f
		}
	}
	panic("chaos: the shares of the forms do not make 100")
}

// record records the outcome of a call.
func (e *emitters) record(f form, events []eventqueue.NewEvent, err error) {
	got := unknown
	switch {
	case err == nil:
		got = accepted
	case errors.Is(err, errUndo):
		got = undone
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range events {
		tag := taskOf(events[i]).Tag
		e.acknowledgements[tag] = got
		if _, is := e.repeats[tag]; is {
			e.acknowledgements[tag] = repeated
		}
	}
	if got == unknown {
		e.failures++
	} else {
		e.forms[f.name] += len(events)
	}
}

// drawEvent draws an event: most are quick and end well.
func (f form) drawEvent(random *rand.Rand, canvases []eventqueue.CanvasID, tag string) eventqueue.NewEvent {
	t := task.Task{Tag: tag, Do: task.Succeed, WorkMillis: random.IntN(30), Filler: strings.Repeat("ä€", random.IntN(40))}
	name := "quick"
	if random.IntN(3) == 0 {
		name = "busy"
	}
	switch n := random.IntN(1000); {
	case n < 50:
		t.Do, t.Times = task.Fail, 1+random.IntN(2)
	case n < 70:
		t.Do, t.Times = task.Panic, 1
	case n < 80:
		t.Do = task.Permanent
	case n < 83: // never succeeds
		t.Do, t.Times = task.Fail, 1000
	case n < 110:
		t.Do, t.Times = task.Snooze, 1
	case n < 115:
		name, t.Do, t.Times = "stubborn", task.Hang, 1
	case n < 118:
		name, t.Do, t.Times = "stubborn", task.Deaf, 1
	case n < 133: // a worker that is stopped should have some of these
		name, t.WorkMillis = "slow", int(lockTimeout.Milliseconds())*(100+random.IntN(100))/100
	case n < 200:
		t.Do = task.Complete
	case n < 210:
		t.Do, t.Times = task.Undo, 1
	}
	f.adapt(random, &t)
	canvas := f.features(random, &t, canvases)
	if t.Odd > 0 && oddRows()[t.Odd-1].fate == fateStays {
		canvas = canvases[canvasCount]
	}
	event := eventqueue.NewEvent{
		Canvas: canvas, Module: task.Module, Name: name, Modifier: "_", Value: t.Value(),
		OrderingKey: t.OrderingKey, UniqueKey: t.UniqueKey, UniqueFor: time.Duration(t.UniqueSeconds) * time.Second,
	}
	switch n := random.IntN(1000); {
	case n < 60:
		event.Delay = time.Duration(random.Int64N(int64(6 * time.Second)))
	case n < 70: // beyond what a notification can wait for
		event.Delay = farOff + time.Duration(random.Int64N(int64(time.Hour)))
	case n < 80:
		event.DelayUntil = time.Now().Add(time.Duration(random.Int64N(int64(3 * time.Second))))
	}
	return event
}

// adapt has a task ask for no more than its form can do.
func (f form) adapt(random *rand.Rand, t *task.Task) {
	if f.odd {
		t.Odd = 1 + random.IntN(len(oddRows()))
	}
	if !f.typed {
		return
	}
	// A typed event has handlers of its own, and its completion is in a transaction anyway.
	t.WorkMillis %= 30
	switch t.Do {
	case task.Hang, task.Deaf, task.Complete, task.Undo:
		t.Do, t.Times = task.Succeed, 0
	default:
	}
}

func emitOne(ctx context.Context, e *emitters, events []eventqueue.NewEvent) error {
	_, err := e.queue.Emit(ctx, events[0])
	return err
}

func emitMany(ctx context.Context, e *emitters, events []eventqueue.NewEvent) error {
	_, err := e.queue.EmitMany(ctx, events)
	return err
}

// emitFunc emits events in one way.
type emitFunc func(ctx context.Context, e *emitters, events []eventqueue.NewEvent) error

// emitInTx emits in a transaction of the queue's, which ends with an error.
func emitInTx(last error) emitFunc {
	return func(ctx context.Context, e *emitters, events []eventqueue.NewEvent) error {
		return e.queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
			if _, err := tx.Emit(ctx, events...); err != nil {
				return err
			}
			return last
		})
	}
}

// emitTx emits in a transaction of the caller's, which ends with an error.
func emitTx(last error, notify bool) emitFunc {
	return func(ctx context.Context, e *emitters, events []eventqueue.NewEvent) error {
		var pending *eventqueue.Pending
		err := pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) (err error) {
			if pending, err = e.queue.EmitTx(ctx, tx, events...); err != nil {
				return err
			}
			return last
		})
		if err == nil && notify {
			_ = pending.Notify(ctx) // its failure is a delay, and the relay's business
		}
		return err
	}
}

func emitSQL(ctx context.Context, e *emitters, events []eventqueue.NewEvent) error {
	tx, err := e.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := e.queue.EmitSQL(ctx, tx, events...); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

const insertSQL = `
INSERT INTO events_v2 (canvas_id, module, name, modifier, value)
VALUES ($1, $2, $3, $4, $5)`

// insert is what a program does that knows the table only.
func insert(ctx context.Context, e *emitters, events []eventqueue.NewEvent) error {
	return pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error {
		for _, event := range events {
			if _, err := tx.Exec(ctx, insertSQL, [16]byte(event.Canvas), event.Module, event.Name, event.Modifier, string(event.Value)); err != nil {
				return err
			}
		}
		return nil
	})
}
