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
	"eventsv2/internal/backoff"
	"eventsv2/test/attack/chaos/task"
)

// acknowledgement is what an emitter was told about an event.
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

	// waiting is how many events are due and have not ended; brake counts them.
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
	// unique says that its events have unique keys, keyless that they have no keys.
	unique, keyless bool
	emit            func(ctx context.Context, e *emitters, events []eventqueue.NewEvent) error
}

func forms() []form {
	return []form{
		{name: "Emit", share: 34, most: 1, emit: emitOne},
		{name: "EmitMany", share: 20, most: 40, emit: emitMany},
		{name: "EmitUnique", share: 4, most: 5, unique: true, emit: emitUnique},
		{name: "EmitUnique in a transaction", share: 2, most: 5, unique: true, emit: emitUniqueInTx},
		{name: "InTx", share: 10, most: 5, emit: emitInTx},
		{name: "InTx, rolled back", share: 5, most: 5, emit: emitInTxUndone},
		{name: "EmitTx and Notify", share: 8, most: 5, emit: emitTxNotify},
		{name: "EmitTx without Notify", share: 7, most: 5, emit: emitTx},
		{name: "EmitTx, rolled back", share: 3, most: 5, emit: emitTxUndone},
		{name: "EmitSQL", share: 4, most: 5, emit: emitSQL},
		{name: "INSERT", share: 3, most: 5, keyless: true, emit: insert},
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
		e.note(f, events, err)
		if err == nil {
			e.noteOrdered(n, began, events)
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

func (e *emitters) note(f form, events []eventqueue.NewEvent, err error) {
	told := unknown
	switch {
	case err == nil:
		told = accepted
	case errors.Is(err, errUndo):
		told = undone
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range events {
		tag := taskOf(events[i]).Tag
		e.acknowledgements[tag] = told
		if _, is := e.repeats[tag]; is {
			e.acknowledgements[tag] = repeated
		}
	}
	switch told {
	case accepted:
		e.forms[f.name] += len(events)
	case undone:
		e.forms[f.name] += len(events)
	default:
		e.failures++
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
	canvas := f.features(random, &t, canvases)
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

func emitOne(ctx context.Context, e *emitters, events []eventqueue.NewEvent) error {
	_, err := e.queue.Emit(ctx, events[0])
	return err
}

func emitMany(ctx context.Context, e *emitters, events []eventqueue.NewEvent) error {
	_, err := e.queue.EmitMany(ctx, events)
	return err
}

func emitInTx(ctx context.Context, e *emitters, events []eventqueue.NewEvent) error {
	return e.queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		_, err := tx.Emit(ctx, events...)
		return err
	})
}

func emitInTxUndone(ctx context.Context, e *emitters, events []eventqueue.NewEvent) error {
	return e.queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		if _, err := tx.Emit(ctx, events...); err != nil {
			return err
		}
		return errUndo
	})
}

// inTx emits in a transaction of the caller's.
func (e *emitters) inTx(ctx context.Context, events []eventqueue.NewEvent, last error) (pending *eventqueue.Pending, err error) {
	err = pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error {
		if pending, err = e.queue.EmitTx(ctx, tx, events...); err != nil {
			return err
		}
		return last
	})
	return pending, err
}

func emitTx(ctx context.Context, e *emitters, events []eventqueue.NewEvent) error {
	_, err := e.inTx(ctx, events, nil)
	return err
}

func emitTxNotify(ctx context.Context, e *emitters, events []eventqueue.NewEvent) error {
	pending, err := e.inTx(ctx, events, nil)
	if err != nil {
		return err
	}
	_ = pending.Notify(ctx) // its failure is a delay, and the relay's business
	return nil
}

func emitTxUndone(ctx context.Context, e *emitters, events []eventqueue.NewEvent) error {
	_, err := e.inTx(ctx, events, errUndo)
	return err
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
