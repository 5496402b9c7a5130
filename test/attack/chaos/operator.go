package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/backoff"
	"eventsv2/test/attack/chaos/check"
	"eventsv2/test/attack/chaos/task"
)

// operator cancels, delays and has tried now what waits, by id and by filter, beside the workers. Its
// connections are the emitters'.
type operator struct {
	changer    *operate.Changer
	operations *operate.Operations
	pool       *pgxpool.Pool
	scopes     []eventqueue.Scope
	spared     [16]byte // a canvas
	seed       int64

	mu   sync.Mutex
	left int // running events that it was refused
}

// callTimeout bounds one call of an operator.
const callTimeout = 10 * time.Second

// How often the operator does something, and how many events it names at once.
const (
	operateEvery = 500 * time.Millisecond
	operateMost  = 5
)

func (o *operator) run(ctx context.Context) {
	random := rand.New(rand.NewPCG(uint64(o.seed), 0x09e7))
	for {
		backoff.Sleep(ctx, operateEvery/2+time.Duration(random.Int64N(int64(operateEvery))))
		if ctx.Err() != nil {
			return
		}
		// Not ctx: the end of the load is no reason for an unknown outcome. What fails may have happened,
		// or half of it.
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		o.operate(call, random)
		cancel()
	}
}

// operate does one thing. The order of an ordering key is by when its events are due, so that those with
// a key are not delayed.
func (o *operator) operate(ctx context.Context, random *rand.Rand) {
	scope := o.scopes[random.IntN(len(o.scopes))]
	filter := operate.EventFilter{Canvas: &scope.Canvas, Module: scope.Module, Name: scope.Name}
	why := operate.Cancellation{Reason: "chaos", Actor: check.SlotOperator}
	delay := time.Duration(random.Int64N(int64(3 * time.Second)))
	switch random.IntN(5) {
	case 0:
		if ids := o.some(ctx, random, false); len(ids) > 0 {
			o.refused(o.changer.Cancel(ctx, why, ids...))
		}
	case 1:
		filter.NewerThan = time.Second
		o.changeMany(ctx, operate.Change{Verb: operate.VerbCancel, Filter: filter, Reason: why.Reason, Actor: why.Actor})
	case 2:
		if ids := o.some(ctx, random, true); len(ids) > 0 {
			o.refused(o.changer.Edit(ctx, operate.Edit{Delay: &delay}, ids...))
		}
	case 3:
		if ids := o.some(ctx, random, false); len(ids) > 0 {
			_, _ = o.changer.Requeue(ctx, ids...)
		}
	default:
		o.changeMany(ctx, operate.Change{Verb: operate.VerbRun, Filter: filter})
	}
}

func (o *operator) changeMany(ctx context.Context, change operate.Change) {
	by := audit.Actor{Name: check.SlotOperator, Via: "chaos"}
	op, err := o.operations.Count(ctx, by, check.SlotOperator, change)
	if err == nil {
		op, err = o.operations.Confirm(ctx, by, check.SlotOperator, op.ID)
	}
	if err == nil {
		op, _ = o.operations.Await(ctx, op.ID, func(operate.Operation) {}, func(operate.Changed) {})
		o.count(op.Running)
	}
}

func (o *operator) refused(results []operate.Changed, _ error) {
	for _, r := range results {
		if r.Result == operate.ChangeRunning {
			o.count(1)
		}
	}
}

func (o *operator) count(running int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left += running
}

// refusals is how many running events the operator was refused.
func (o *operator) refusals() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.left
}

const selectSomeSQL = `
SELECT id
  FROM (SELECT id, ordering_key FROM events_v2 WHERE module = ANY($1) AND canvas_id <> $3 ORDER BY id DESC LIMIT 200) AS newest
 WHERE ordering_key IS NULL OR NOT $2
 ORDER BY id`

// some draws some of the newest events.
func (o *operator) some(ctx context.Context, random *rand.Rand, keyless bool) (ids []eventqueue.EventID) {
	rows, _ := o.pool.Query(ctx, selectSomeSQL, []string{task.Module, task.ChainModule}, keyless, o.spared) // CollectRows returns the error
	all, err := pgx.CollectRows(rows, pgx.RowTo[eventqueue.EventID])
	if err != nil || len(all) == 0 {
		return nil
	}
	for range 1 + random.IntN(operateMost) {
		ids = append(ids, all[random.IntN(len(all))])
	}
	return ids
}
