package pgstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// TestLockWaitersLeaveConnections (I13, I15): while as many as the pool has connections, and more, want what an
// open transaction holds, plain emits, claims, renewals and completions go on. Those that wait leave
// when their context ends.
func TestLockWaitersLeaveConnections(t *testing.T) {
	t.Parallel()
	const conns, waiters = 6, 18
	limit := operate.ConcurrencyLimit{Canvas: canvas, Max: 1}
	keyed := func(n int) eventqueue.NewEvent {
		e := event()
		e.UniqueKey = fmt.Sprint("key ", n)
		return e
	}
	for name, wait := range map[string]func(ctx context.Context, r *rig, n int){
		"one key": func(ctx context.Context, r *rig, _ int) {
			_, _ = r.store.Insert(ctx, nil, []eventqueue.NewEvent{keyed(0)}, eventqueue.NotifyModeSelf)
		},
		"many keys": func(ctx context.Context, r *rig, n int) {
			_, _ = r.store.Insert(ctx, nil, []eventqueue.NewEvent{keyed(n)}, eventqueue.NotifyModeSelf)
		},
		"units of work": func(ctx context.Context, r *rig, n int) {
			_ = r.store.InTx(ctx, func(ctx context.Context, db eventqueue.DB) error {
				_, err := r.store.Insert(ctx, db, []eventqueue.NewEvent{keyed(n)}, eventqueue.NotifyModeSelf)
				return err
			})
		},
		"operators": func(ctx context.Context, r *rig, n int) {
			other := limit
			other.Max += n
			_, _ = r.store.SetConcurrencyLimit(ctx, other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			ctx := testenv.Context(t)
			if _, err := r.store.SetConcurrencyLimit(ctx, limit); err != nil {
				t.Fatal(err)
			}
			holder, err := r.pool.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = holder.Rollback(ctx) }() // of what nobody needs
			if _, err := holder.Exec(ctx, `UPDATE concurrency_limits SET max_running = max_running`); err != nil {
				t.Fatal(err)
			}
			for n := range waiters {
				if _, err := r.store.Insert(ctx, holder, []eventqueue.NewEvent{keyed(n)}, eventqueue.NotifyModeSelf); err != nil {
					t.Fatal(err)
				}
			}
			small := r.withConns(conns)
			waiting, leave := context.WithCancel(ctx)
			var running sync.WaitGroup
			for n := range waiters {
				running.Go(func() { wait(waiting, small, n) })
			}
			testenv.Eventually(t, "a session waits for a lock", func() bool {
				return one[bool](r, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`)
			})
			for range 3 * conns {
				small.runPlainEvent()
			}
			leave()
			running.Wait()
		})
	}
}

// runPlainEvent emits an event without keys, and claims, renews and completes it.
func (r *rig) runPlainEvent() {
	r.t.Helper()
	ctx := testenv.Context(r.t)
	e := event()
	e.Canvas = another // on which there is no limit
	id := r.insert(e)[0]
	found, err := r.store.Claim(ctx, []eventqueue.EventID{id}, handlers, 1<<40)
	if err != nil || len(found) != 1 || !found[0].Facts.Claimed {
		r.t.Fatalf("claimed are %+v, error %v", found, err)
	}
	claim := worker.Claim{Event: id, Attempt: found[0].Attempt, ID: found[0].ClaimID}
	if written, err := r.store.Renew(ctx, []worker.Claim{claim}); err != nil || len(written.Done) != 1 {
		r.t.Fatalf("renewed are %+v, error %v", written, err)
	}
	completion := worker.Completion{Claim: claim, Label: machine.ExecutesToCompletion}
	if written, err := r.store.Complete(ctx, nil, []worker.Completion{completion}, false); err != nil || len(written.Done) != 1 {
		r.t.Fatalf("completed are %+v, error %v", written, err)
	}
}

// TestBusyKeyDelaysNoOther (I15): few emits of a key wait for it at once, and those of other keys go on.
func TestBusyKeyDelaysNoOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	taken, free := event(), event()
	taken.UniqueKey, free.UniqueKey = "taken", "free"
	holder, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(ctx) }() // of what nobody needs
	if _, err := r.store.Insert(ctx, holder, []eventqueue.NewEvent{taken}, eventqueue.NotifyModeSelf); err != nil {
		t.Fatal(err)
	}
	small := r.withConns(10)
	waiting, leave := context.WithCancel(ctx)
	var running sync.WaitGroup
	for range 18 {
		running.Go(func() {
			_, _ = small.store.Insert(waiting, nil, []eventqueue.NewEvent{taken}, eventqueue.NotifyModeSelf)
		})
	}
	testenv.Eventually(t, "an emit waits for the key", func() bool {
		return one[bool](r, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`)
	})
	for range 10 {
		small.insert(free)
	}
	leave()
	running.Wait()
}
