package operate_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

func TestLiftingARuleNotifiesEveryWaitingEvent(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	rules := r.Rules()
	if _, err := rules.Add(ctx, operate.PauseRule, rig.Scope); err != nil {
		t.Fatal(err)
	}
	const total = 10_000
	events := make([]eventqueue.NewEvent, total)
	for i := range events {
		events[i] = r.Event(`1`)
	}
	other := r.Event(`1`)
	other.Canvas[15]++
	r.Emit(other)
	r.Emit(events...)
	var runs atomic.Int64
	r.Handle(func(context.Context, *eventqueue.Run) error { runs.Add(1); return nil }, rig.Quick())
	stop := r.Start(worker.Config{Concurrency: 2000})
	r.Outcomes.Await(t, machine.Paused, total)
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
	stop() // a full worker finds some without a notification

	// Lifted four times at once: one of them notifies.
	var lifters sync.WaitGroup
	var removed, notified atomic.Int64
	for range 4 {
		lifters.Go(func() {
			done, n, err := rules.Lift(testenv.Context(t), operate.PauseRule, rig.Scope)
			if err != nil {
				t.Error(err)
			}
			notified.Add(int64(n))
			if done {
				removed.Add(1)
			}
		})
	}
	lifters.Wait()
	if removed.Load() != 1 || notified.Load() != total {
		t.Errorf("%d lifts removed the rule and %d events were notified, want 1 and %d", removed.Load(), notified.Load(), total)
	}
	r.Start(worker.Config{Concurrency: 2000})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, total+1)
	if n := runs.Load(); n != total+1 {
		t.Errorf("%d runs of %d events", n, total+1)
	}
}

func TestConcurrentLiftsReleaseEventsOnce(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := t.Context()
	rules := r.Rules()
	r.Handle(func(context.Context, *eventqueue.Run) error { return nil }, rig.Quick())
	r.Start(worker.Config{})
	const rounds = 10
	for i := range rounds {
		for _, rule := range []operate.RuleType{operate.PauseRule, operate.BlockRule} {
			if _, err := rules.Add(ctx, rule, rig.Scope); err != nil {
				t.Fatal(err)
			}
		}
		r.Emit(r.Event(`1`))
		r.Outcomes.Await(t, machine.Blocked, i+1)
		var lifters sync.WaitGroup
		for _, rule := range []operate.RuleType{operate.PauseRule, operate.BlockRule} {
			lifters.Go(func() {
				if _, _, err := rules.Lift(ctx, rule, rig.Scope); err != nil {
					t.Error(err)
				}
			})
		}
		lifters.Wait()
		r.Outcomes.Await(t, machine.ExecutesToCompletion, i+1)
	}
}

// TestPauseWaitsForClaimsUnderWay holds a claim open in a transaction, as a slow
// commit would, and shows that Add returns after it only; and that the claim
// holds the table lock that makes it so from its first use on, prepared or not,
// with a generic plan or not.
func TestPauseWaitsForClaimsUnderWay(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	for range 8 {
		tx, err := r.Pool.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		id := r.Emit(r.Event(`1`))[0]
		found, err := pgstore.ClaimIn(ctx, tx, []eventqueue.EventID{id}, eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{rig.Key}}, 0)
		if err != nil || !found[0].Facts.Claimed {
			t.Fatalf("claim: %+v, %v", found, err)
		}
		added := make(chan error, 1)
		go func() {
			_, err := r.Rules().Add(ctx, operate.PauseRule, rig.Scope)
			added <- err
		}()
		r.AwaitBlockedOn("claim_barrier", "ExclusiveLock")
		select {
		case err := <-added:
			t.Fatalf("Add returned before the claim committed: %v", err)
		default:
		}
		if err := tx.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		if err := <-added; err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Rules().Lift(ctx, operate.PauseRule, rig.Scope); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNoClaimCommitsAfterPauseReturned pauses and unpauses under full load: what
// is claimed while the pause is in force is counted by a trigger.
func TestNoClaimCommitsAfterPauseReturned(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Handle(func(context.Context, *eventqueue.Run) error { return nil }, rig.Quick())
	events := make([]eventqueue.NewEvent, 3000)
	for i := range events {
		events[i] = r.Event(`1`)
	}
	r.Emit(events...)
	r.Exec(`CREATE TABLE claims (id bigint)`)
	r.Exec(`CREATE FUNCTION record_claim() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN INSERT INTO claims VALUES (NEW.id); RETURN NULL; END $$`)
	r.Exec(`CREATE TRIGGER record_claim AFTER UPDATE ON events_v2 FOR EACH ROW
		WHEN (NEW.attempts > OLD.attempts) EXECUTE FUNCTION record_claim()`)
	r.Start(worker.Config{Concurrency: 50, ClaimBatch: 10})
	rules := r.Rules()
	for range 5 {
		ctx := testenv.Context(t)
		if _, err := rules.Add(ctx, operate.PauseRule, rig.Scope); err != nil {
			t.Fatal(err)
		}
		before := rig.One[int](r, `SELECT count(*) FROM claims`)
		// Every statement that could still claim has ended once a later
		// exclusive lock is granted.
		if err := pgx.BeginFunc(ctx, r.Pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `LOCK TABLE scheduling_rules IN EXCLUSIVE MODE`)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if after := rig.One[int](r, `SELECT count(*) FROM claims`); after > before {
			t.Errorf("%d claims committed under the pause", after-before)
		}
		if _, _, err := rules.Lift(ctx, operate.PauseRule, rig.Scope); err != nil {
			t.Fatal(err)
		}
	}
	r.Outcomes.Await(t, machine.ExecutesToCompletion, len(events))
}

func TestCountWhileBlocked(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	if _, err := r.Rules().Add(ctx, operate.BlockRule, rig.Scope); err != nil {
		t.Fatal(err)
	}
	r.Handle(func(context.Context, *eventqueue.Run) error { return nil }, rig.Quick())
	r.Start(worker.Config{})
	r.Emit(r.Event(`1`), r.Event(`2`), r.Event(`3`))
	r.Outcomes.Await(t, machine.Blocked, 3)
	if n := rig.One[int](r, `SELECT count(*) FROM events_v2 WHERE canvas_id = $1 AND module = $2 AND name = $3`,
		[16]byte(rig.Canvas), rig.Key.Module, rig.Key.Name); n != 3 {
		t.Errorf("%d events wait, want 3", n)
	}
	if n := r.Notifier.Len(); n != 0 {
		t.Logf("%d notifications not yet dropped", n)
	}
}

func TestInvalidRuleIsRefused(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	for _, bad := range []eventqueue.Scope{
		{Module: "M", Name: "n"},
		{Canvas: rig.Canvas, Name: "n"},
		{Canvas: rig.Canvas, Module: "M", Name: strings.Repeat("n", 300)},
		{Canvas: rig.Canvas, Module: "M\x00", Name: "n"},
	} {
		if _, err := r.Rules().Add(testenv.Context(t), operate.PauseRule, bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	if n := rig.One[int](r, `SELECT count(*) FROM scheduling_rules`); n != 0 {
		t.Errorf("%d rules were written", n)
	}
}
