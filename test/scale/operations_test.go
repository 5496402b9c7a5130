package scale_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// What a change of 100,000 events may take on two busy cores, and its slowest statement. A test that cannot know what else its
// machine does fails at ten times as much.
const (
	mostOperation = time.Minute
	mostStatement = time.Second
	slack         = 10
	most          = 100_000
)

// changes are one after the other about the same events: each verb finds those that it can change.
var changes = []struct {
	change operate.Change
	// piece is how many events a transaction changes.
	piece int
}{
	{operate.Change{Verb: operate.VerbEdit, Edit: operate.Edit{Value: []byte(`"new"`), Delay: new(2 * time.Hour)}}, operate.MaxChangeEvents},
	{operate.Change{Verb: operate.VerbCancel, Reason: "to measure it"}, operate.MaxChangeEvents},
	{operate.Change{Verb: operate.VerbRetry, Filter: operate.EventFilter{State: operate.StateCancelled}, Edit: operate.Edit{Delay: new(time.Hour)}}, operate.MaxRetryEvents},
	{operate.Change{Verb: operate.VerbRun}, operate.MaxRequeueEvents}, // the worker runs them
	{operate.Change{Verb: operate.VerbReplay, Rate: operate.MaxReplayRate}, 1000},
	{operate.Change{Verb: operate.VerbDelete}, operate.MaxChangeEvents}, // what of the replay still waits
	{operate.Change{Verb: operate.VerbDeleteEnded, Filter: operate.EventFilter{State: operate.StateCancelled}}, operate.MaxRetryEvents},
}

const waitingSQL = `
INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until, notified_at)
SELECT $1, $2, $3, '_', '{"order":' || i || '}', now() + interval '3 hours', now() FROM generate_series(1, $4::int) AS i`

// TestOperationsAreFastOnAFullTable makes a change of many events with each verb, beside a worker that runs and an emitter that emits.
func TestOperationsAreFastOnAFullTable(t *testing.T) {
	t.Parallel()
	url := testenv.DatabaseURL(t)
	var others, m measured
	r := rig.NewOn(t, others.pool(t, url))
	var ran atomic.Int64
	r.Handle(func(context.Context, *eventqueue.Run) error { ran.Add(1); return nil }, rig.Quick())
	r.Start(worker.Config{RetainHistory: true})
	emitting, stop := context.WithCancel(testenv.Context(t))
	var emitters sync.WaitGroup
	emitters.Go(func() {
		for every := time.NewTicker(20 * time.Millisecond); emitting.Err() == nil; <-every.C {
			r.Emit(r.Copies(10)...)
		}
	})
	defer func() { stop(); emitters.Wait() }() // before the test's context ends, which an emit under way would fail with
	operations, err := operate.NewOperations(pgstore.New(m.pool(t, url)), r.Queue, testenv.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	n := min(max(*events, few), most)
	many := eventqueue.CanvasID{0xee, 15: 1}
	waiting := func() { r.Exec(waitingSQL, [16]byte(many), rig.Key.Module, rig.Key.Name, n) }
	waiting()
	var table strings.Builder
	for _, c := range changes {
		c.change.Filter.Canvas = &many
		switch c.change.Verb {
		case operate.VerbReplay: // of what has run
			testenv.Eventually(t, "all have run", func() bool {
				return rig.One[int](r, `SELECT count(*) FROM events_v2 WHERE canvas_id = $1`, [16]byte(many)) == 0
			})
		case operate.VerbDelete:
			waiting()
		case operate.VerbDeleteEnded:
			waiting()
			makeChange(t, operations, operate.Change{Verb: operate.VerbCancel, Filter: operate.EventFilter{Canvas: &many, State: operate.StateDelayed}})
		default:
		}
		m.reset()
		began := time.Now()
		op := makeChange(t, operations, c.change)
		took, slowest := time.Since(began), m.slowest
		statements, _ := m.reset()
		if op.Changed < n*9/10 {
			t.Errorf("%s: %+v, want %d changed", c.change.Verb, op, n)
		}
		if bound := 10*(op.Counted/c.piece+1) + 4*(op.Counted/5000+1) + 40; statements > bound {
			t.Errorf("%s: %d statements for %d events, want %d at most", c.change.Verb, statements, op.Counted, bound)
		}
		if *events > 0 && (took > slack*mostOperation || slowest > slack*mostStatement) {
			t.Errorf("%s: %s in all, and %s for a statement", c.change.Verb, took, slowest)
		}
		fmt.Fprintf(&table, "| `%s` | %d | %.1f s | %d | %d ms |\n", c.change.Verb, op.Changed, took.Seconds(), statements, slowest.Milliseconds())
	}
	if *events > 0 {
		fmt.Printf("| change | events | in all | statements | slowest |\n|---|---|---|---|---|\n%s", table.String())
	}
}

// makeChange makes a change to its end.
func makeChange(t *testing.T, operations *operate.Operations, change operate.Change) operate.Operation {
	t.Helper()
	ctx, by := context.WithoutCancel(testenv.Context(t)), audit.Actor{Name: "test", Via: "test"}
	op, err := operations.Count(ctx, by, "test", change)
	if err != nil {
		t.Fatal(err)
	}
	if op, err = operations.Confirm(ctx, by, "test", op.ID); err != nil {
		t.Fatal(err)
	}
	if op, err = operations.Await(ctx, op.ID, func(operate.Operation) {}, nil); err != nil || op.State != operate.OperationDone {
		t.Fatalf("%+v, %v", op, err)
	}
	return op
}
