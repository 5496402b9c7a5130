package eventqueue_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

var scope = eventqueue.Scope{Canvas: canvas, Module: key.Module, Name: key.Name}

func (r *rig) rules() *eventqueue.Rules {
	r.t.Helper()
	rules, err := eventqueue.NewRules(r.store, r.queue)
	if err != nil {
		r.t.Fatal(err)
	}
	return rules
}

func TestLiftingARuleNotifiesEveryWaitingEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	rules := r.rules()
	if _, err := rules.Add(ctx, eventqueue.PauseRule, scope); err != nil {
		t.Fatal(err)
	}
	const total = 50_000
	events := make([]eventqueue.NewEvent, total)
	for i := range events {
		events[i] = r.event(`1`)
	}
	other := r.event(`1`)
	other.Canvas[15]++
	r.emit(other)
	r.emit(events...)
	var runs atomic.Int64
	r.handle(func(context.Context, *eventqueue.Run) error { runs.Add(1); return nil }, quick())
	stop := r.start(eventqueue.WorkerConfig{Concurrency: 2000})
	r.outcomes.await(t, machine.Paused, total)
	r.outcomes.await(t, machine.ExecutesToCompletion, 1)
	stop() // a full worker finds some without a notification

	// Lifted four times at once: one of them notifies.
	var lifters sync.WaitGroup
	var removed, notified atomic.Int64
	for range 4 {
		lifters.Go(func() {
			done, n, err := rules.Lift(ctx, eventqueue.PauseRule, scope)
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
	r.start(eventqueue.WorkerConfig{Concurrency: 2000})
	r.outcomes.await(t, machine.ExecutesToCompletion, total+1)
	if n := runs.Load(); n != total+1 {
		t.Errorf("%d runs of %d events", n, total+1)
	}
}

func TestOfPauseAndBlockLiftedAtOnceOneIsTheLast(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	rules := r.rules()
	r.handle(func(context.Context, *eventqueue.Run) error { return nil }, quick())
	r.start(eventqueue.WorkerConfig{})
	const rounds = 10
	for i := range rounds {
		for _, rule := range []eventqueue.RuleType{eventqueue.PauseRule, eventqueue.BlockRule} {
			if _, err := rules.Add(ctx, rule, scope); err != nil {
				t.Fatal(err)
			}
		}
		r.emit(r.event(`1`))
		r.outcomes.await(t, machine.Blocked, i+1)
		var lifters sync.WaitGroup
		for _, rule := range []eventqueue.RuleType{eventqueue.PauseRule, eventqueue.BlockRule} {
			lifters.Go(func() {
				if _, _, err := rules.Lift(ctx, rule, scope); err != nil {
					t.Error(err)
				}
			})
		}
		lifters.Wait()
		r.outcomes.await(t, machine.ExecutesToCompletion, i+1)
	}
}

// TestPauseWaitsForClaimsUnderWay holds a claim open in a transaction, as a slow
// commit would, and shows that Add returns after it only; and that the claim
// holds the table lock that makes it so from its first use on, prepared or not,
// with a generic plan or not.
func TestPauseWaitsForClaimsUnderWay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	for range 8 {
		tx, err := r.pool.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		id := r.emit(r.event(`1`))[0]
		found, err := pgstore.ClaimIn(ctx, tx, []eventqueue.EventID{id}, eventqueue.Known{Everywhere: []eventqueue.HandlerKey{key}}, time.Minute)
		if err != nil || !found[0].Facts.Claimed {
			t.Fatalf("claim: %+v, %v", found, err)
		}
		added := make(chan error, 1)
		go func() {
			_, err := r.rules().Add(ctx, eventqueue.PauseRule, scope)
			added <- err
		}()
		r.awaitBlockedOn("scheduling_rules", "ExclusiveLock")
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
		if _, _, err := r.rules().Lift(ctx, eventqueue.PauseRule, scope); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitBlockedOn waits until some session waits for a lock on a table.
func (r *rig) awaitBlockedOn(table, mode string) {
	r.t.Helper()
	testenv.Eventually(r.t, "somebody waits for "+mode+" on "+table, func() bool {
		return one[bool](r, `SELECT EXISTS (SELECT FROM pg_locks WHERE relation = $1::regclass AND mode = $2 AND NOT granted)`, table, mode)
	})
}

// TestNoClaimCommitsAfterPauseReturned pauses and unpauses under full load: what
// is claimed while the pause is in force is counted by a trigger.
func TestNoClaimCommitsAfterPauseReturned(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	r.handle(func(context.Context, *eventqueue.Run) error { return nil }, quick())
	events := make([]eventqueue.NewEvent, 3000)
	for i := range events {
		events[i] = r.event(`1`)
	}
	r.emit(events...)
	r.exec(`CREATE TABLE claims (id bigint)`)
	r.exec(`CREATE FUNCTION record_claim() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN INSERT INTO claims VALUES (NEW.id); RETURN NULL; END $$`)
	r.exec(`CREATE TRIGGER record_claim AFTER UPDATE ON events_v2 FOR EACH ROW
		WHEN (NEW.attempts > OLD.attempts) EXECUTE FUNCTION record_claim()`)
	r.start(eventqueue.WorkerConfig{Concurrency: 50, ClaimBatch: 10})
	rules := r.rules()
	for range 5 {
		if _, err := rules.Add(ctx, eventqueue.PauseRule, scope); err != nil {
			t.Fatal(err)
		}
		before := one[int](r, `SELECT count(*) FROM claims`)
		// Every statement that could still claim has ended once a later
		// exclusive lock is granted.
		if err := pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `LOCK TABLE scheduling_rules IN EXCLUSIVE MODE`)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if after := one[int](r, `SELECT count(*) FROM claims`); after > before {
			t.Errorf("%d claims committed under the pause", after-before)
		}
		if _, _, err := rules.Lift(ctx, eventqueue.PauseRule, scope); err != nil {
			t.Fatal(err)
		}
	}
	r.outcomes.await(t, machine.ExecutesToCompletion, len(events))
}

func TestCountWhileBlocked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	if _, err := r.rules().Add(ctx, eventqueue.BlockRule, scope); err != nil {
		t.Fatal(err)
	}
	r.handle(func(context.Context, *eventqueue.Run) error { return nil }, quick())
	r.start(eventqueue.WorkerConfig{})
	r.emit(r.event(`1`), r.event(`2`), r.event(`3`))
	r.outcomes.await(t, machine.Blocked, 3)
	if n := one[int](r, `SELECT count(*) FROM events_v2 WHERE canvas_id = $1 AND module = $2 AND name = $3`,
		[16]byte(canvas), key.Module, key.Name); n != 3 {
		t.Errorf("%d events wait, want 3", n)
	}
	if n := r.notifier.Len(); n != 0 {
		t.Logf("%d notifications not yet dropped", n)
	}
}

func TestRulesRefuseBadInput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, bad := range []eventqueue.Scope{
		{Module: "M", Name: "n"},
		{Canvas: canvas, Name: "n"},
		{Canvas: canvas, Module: "M", Name: strings.Repeat("n", 300)},
		{Canvas: canvas, Module: "M\x00", Name: "n"},
	} {
		if _, err := r.rules().Add(testenv.Context(t), eventqueue.PauseRule, bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	if n := one[int](r, `SELECT count(*) FROM scheduling_rules`); n != 0 {
		t.Errorf("%d rules were written", n)
	}
}
