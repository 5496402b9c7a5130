package emit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
)

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

// Run emits until ctx ends.
func (e *Emitters) Run(ctx context.Context) {
	var running sync.WaitGroup
	for n := range Count {
		running.Go(func() { e.emitLoop(ctx, n) })
	}
	running.Wait()
}

func (e *Emitters) emitLoop(ctx context.Context, n int) {
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
