package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/locktimeout"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// TestLocksAreCheckedByTheDatabase (I4): a lock that is valid by the lock timeout of the
// database is taken by no statement of a program that believes in a shorter one; nor,
// after a change, by the new one, until that is finalized.
func TestLocksAreCheckedByTheDatabase(t *testing.T) {
	t.Parallel()
	const own, long, age = 2 * time.Second, time.Hour, 10 * time.Minute
	// Each takes the event of the given id, if it is free.
	for name, taken := range map[string]func(r *rig, id eventqueue.EventID) bool{
		"Claim": func(r *rig, id eventqueue.EventID) bool {
			found, err := r.store.Claim(testenv.Context(r.t), []eventqueue.EventID{id}, handlers, 0)
			if err != nil || len(found) != 1 {
				r.t.Fatalf("%d rows, %v", len(found), err)
			}
			f := found[0].Facts
			// Its answer to the worker is what it decided by: a wait for the wrong
			// time would come again every second.
			if !f.Claimed && (f.Lock != machine.LockHeld || f.LockRemaining < long-2*age || f.LockRemaining > long-age) {
				r.t.Errorf("a lock that is valid for %s more is described as %+v", long-age, f)
			}
			return f.Claimed
		},
		"Requeue": func(r *rig, id eventqueue.EventID) bool {
			results, err := r.store.Requeue(testenv.Context(r.t), []eventqueue.EventID{id})
			if err != nil || len(results) != 1 {
				r.t.Fatalf("%v, %v", results, err)
			}
			if left := results[0].LockRemaining; results[0].Result == operate.ChangeRunning && (left < long-2*age || left > long-age) {
				r.t.Errorf("a lock that is valid for %s more is said to be so for %s", long-age, left)
			}
			return results[0].Result == operate.RequeueDone
		},
		"Sweep": func(r *rig, id eventqueue.EventID) bool {
			swept, err := r.store.Sweep(testenv.Context(r.t), id-1, 1, time.Second)
			if err != nil {
				r.t.Fatal(err)
			}
			return len(swept.Lost) > 0
		},
		"TakeRound": func(r *rig, _ eventqueue.EventID) bool {
			lost, _, err := r.store.TakeRound(testenv.Context(r.t), maintenance.RoundPlace{}, time.Second)
			if err != nil {
				r.t.Fatal(err)
			}
			return len(lost) > 0
		},
		"Runnable": func(r *rig, _ eventqueue.EventID) bool {
			events, _, err := r.store.Runnable(testenv.Context(r.t), eventqueue.Scope{}, nil)
			if err != nil {
				r.t.Fatal(err)
			}
			return len(events) > 0
		},
		"CountWaiting": func(r *rig, _ eventqueue.EventID) bool {
			waiting, err := r.store.CountWaiting(testenv.Context(r.t), eventqueue.Scope{})
			if err != nil || waiting.Pending != 1 {
				r.t.Fatal(waiting, err)
			}
			return waiting.Running == 0
		},
		"OldestDue": func(r *rig, id eventqueue.EventID) bool {
			found, _, err := r.store.OldestDue(testenv.Context(r.t), scope)
			if err != nil {
				r.t.Fatal(err)
			}
			return found == id
		},
		// A turn is taken back from an event that nobody runs and that is paused.
		"Advance": func(r *rig, id eventqueue.EventID) bool {
			if _, err := r.store.Advance(testenv.Context(r.t), []eventqueue.EventID{id}, nil); err != nil {
				r.t.Fatal(err)
			}
			return one[int](r, `SELECT group_state FROM events_v2 WHERE id = $1`, id) != 2
		},
		"Sweep, of groups": func(r *rig, id eventqueue.EventID) bool {
			if _, err := r.store.Sweep(testenv.Context(r.t), id-1, 1, 100*time.Hour); err != nil {
				r.t.Fatal(err)
			}
			return one[int](r, `SELECT group_state FROM events_v2 WHERE id = $1`, id) != 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			ctx := testenv.Context(t)
			advanced := name == "Advance" || name == "Sweep, of groups"
			if advanced {
				if _, err := r.store.SetConcurrencyLimit(ctx, operate.ConcurrencyLimit{Canvas: canvas, Max: 1}); err != nil {
					t.Fatal(err)
				}
			}
			id := r.insert(event())[0]
			if advanced {
				if _, err := r.store.Advance(ctx, nil, []eventqueue.EventID{id}); err != nil {
					t.Fatal(err)
				}
			}
			if found := r.look(id); !found[id].Facts.Claimed {
				t.Fatalf("%+v", found)
			}
			if advanced {
				if _, err := r.store.AddRule(ctx, operate.RuleOf(operate.PauseRule, scope)); err != nil {
					t.Fatal(err)
				}
			}
			r.exec(`UPDATE events_v2 SET locked_at = clock_timestamp() - $1::interval, notified_at = clock_timestamp() - interval '5 hours',
				delay_until = clock_timestamp() - interval '5 hours'`, age)
			if agreed, err := r.store.AgreeOnLockTimeout(ctx, long); err != nil || agreed != long {
				t.Fatal(agreed, err)
			}
			if taken(r, id) {
				t.Fatal("it was taken while its lock was valid by the database's lock timeout")
			}
			if err := r.store.SetLockTimeout(ctx, own); err != nil {
				t.Fatal(err)
			}
			if taken(r, id) {
				t.Fatal("it was taken after a change, while programs with the old lock timeout may run")
			}
			r.exec(`UPDATE events_v2_settings SET lock_timeout_before = NULL`)
			if !taken(r, id) {
				t.Error("it was not taken although its lock had expired")
			}
		})
	}
}

// TestOneLockTimeoutForADatabase: the first to start sets it, whoever says something
// else is refused by name, and who may not write it works with what there is.
func TestOneLockTimeoutForADatabase(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	agree := func(own time.Duration) (time.Duration, error) {
		return locktimeout.Agree(ctx, r.store, own)
	}
	if s, err := r.store.Settings(ctx); err != nil || s.Set || s.LockTimeout != locktimeout.Default {
		t.Errorf("before any program: %+v, %v", s, err)
	}
	role := one[string](r, `SELECT 'locks_' || oid FROM pg_database WHERE datname = current_database()`)
	r.exec(fmt.Sprintf(`CREATE ROLE %s`, role))
	t.Cleanup(func() { // it is the server's, and outlives the database
		if _, err := r.pool.Exec(context.Background(), fmt.Sprintf(`DROP ROLE %s`, role)); err != nil {
			t.Error(err)
		}
	})
	config := r.pool.Config()
	config.ConnConfig.RuntimeParams["role"] = role
	lesser, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	defer lesser.Close()
	if got, err := locktimeout.Agree(ctx, pgstore.New(lesser), 7*time.Second); err != nil || got != 7*time.Second {
		t.Errorf("who may not write the setting gets %s, %v", got, err)
	}
	var longer *locktimeout.Error // than locks are valid for
	if got, err := locktimeout.Agree(ctx, pgstore.New(lesser), time.Hour); !errors.As(err, &longer) {
		t.Errorf("who may not write the setting, and believes in its locks for an hour, gets %s, %v", got, err)
	}
	if got, err := agree(90 * time.Second); err != nil || got != 90*time.Second {
		t.Fatalf("the first gets %s, %v", got, err)
	}
	for _, own := range []time.Duration{0, 90 * time.Second} {
		if got, err := agree(own); err != nil || got != 90*time.Second {
			t.Errorf("one that says %s gets %s, %v", own, got, err)
		}
	}
	var differs *locktimeout.Error
	if _, err := agree(time.Minute); !errors.As(err, &differs) || differs.Own != time.Minute || differs.Database != 90*time.Second {
		t.Errorf("one that says a minute: %v", err)
	}
	if _, err := locktimeout.Agree(ctx, pgstore.New(lesser), time.Minute); !errors.As(err, &differs) {
		t.Errorf("who may not write the setting, and says a minute: %v", err)
	}
}

// TestConcurrentProgramsAgreeOnTheLockTimeout: one of them is the first, and the other knows.
func TestConcurrentProgramsAgreeOnTheLockTimeout(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // an error after the commit
	if _, err := tx.Exec(ctx, `INSERT INTO events_v2_settings (lock_timeout) VALUES ('5 minutes')`); err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() {
		_, err := locktimeout.Agree(ctx, r.store, time.Minute)
		second <- err
	}()
	testenv.Eventually(t, "the second waits for the first", func() bool { return r.waits(1) })
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	var differs *locktimeout.Error
	if err := <-second; !errors.As(err, &differs) || differs.Database != 5*time.Minute {
		t.Errorf("the second hears %v", err)
	}
}

// TestRelayUsesTheLockTimeoutOfTheDatabase: it decides about locks by the lock timeout of the database, also
// where that is set while it runs.
func TestRelayUsesTheLockTimeoutOfTheDatabase(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, stop := context.WithCancel(testenv.Context(t))
	defer stop()
	id := r.insert(event())[0]
	if found := r.look(id); !found[id].Facts.Claimed {
		t.Fatalf("%+v", found)
	}
	// It has died: by the default its lock is valid for a minute more.
	r.exec(`UPDATE events_v2 SET locked_at = clock_timestamp() - interval '3 s', notified_at = clock_timestamp() - interval '4 s'`)
	notifier := memnotify.New(memnotify.Config{})
	relay, err := maintenance.NewRelay(r.store, notifier, maintenance.RelayConfig{Interval: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(ctx) }()
	if err := r.store.SetLockTimeout(ctx, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(ctx, 45*time.Second) // of one or two that it takes, or seven
	defer cancel()
	if deliveries, err := notifier.Pull(soon, 1); err != nil || len(deliveries) != 1 || deliveries[0].Event != id {
		t.Errorf("%v, %v", deliveries, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestLockTimeoutIsFinalizedOnceOldLocksEnd: not while an event is locked by a program that may
// renew in the old time, unless it is forced.
func TestLockTimeoutIsFinalizedOnceOldLocksEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	before := func() time.Duration {
		s, err := r.store.Settings(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return s.LockTimeoutBefore
	}
	finalize := func(force bool) error { return r.store.FinalizeLockTimeout(ctx, force) }
	if err := finalize(false); err != nil {
		t.Errorf("with nothing to finalize: %v", err)
	}
	if err := errors.Join(r.store.SetLockTimeout(ctx, time.Hour), finalize(false), r.store.SetLockTimeout(ctx, time.Minute)); err != nil {
		t.Fatal(err)
	}
	ids := r.insert(event(), event(), event())
	for i, age := range []time.Duration{30 * time.Second, 20 * time.Minute, 2 * time.Hour} { // valid, by the old one only, by none
		r.exec(`UPDATE events_v2 SET locked_at = clock_timestamp() - $2::interval, attempts = 1 WHERE id = $1`, ids[i], age)
	}
	var inUse *pgstore.LockTimeoutInUseError
	if err := finalize(false); !errors.As(err, &inUse) || inUse.Locks != 1 || inUse.Event != ids[1] ||
		inUse.Within > 40*time.Minute || inUse.Within < 30*time.Minute {
		t.Errorf("beside a lock that is valid by the old time: %v", err)
	}
	r.exec(`UPDATE events_v2 SET locked_at = NULL WHERE id = $1`, ids[0])
	if err := finalize(false); !errors.As(err, &inUse) || inUse.Locks != 1 {
		t.Errorf("beside no other lock than one that is valid by the old time: %v", err)
	}
	if got := before(); got != time.Hour {
		t.Errorf("it is forgotten that the lock timeout was an hour: %s", got)
	}
	if err := finalize(true); err != nil || before() != 0 {
		t.Errorf("by force: %v, %s", err, before())
	}
	if err := r.store.SetLockTimeout(ctx, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	r.exec(`UPDATE events_v2 SET locked_at = NULL`)
	if err := finalize(false); err != nil || before() != 0 {
		t.Errorf("when nobody needs it: %v, %s", err, before())
	}
	// From a short time to a long one, which nobody's locks depend on.
	r.exec(`UPDATE events_v2 SET locked_at = clock_timestamp() - interval '40 s'`)
	if err := errors.Join(r.store.SetLockTimeout(ctx, time.Hour), finalize(false)); err != nil || before() != 0 {
		t.Errorf("to a longer one: %v, %s", err, before())
	}
}

// TestLockTimeoutIsNotFinalizedBesideOldPrograms (I4): a live program that goes by the old time,
// and renews its locks every quarter of it, has just renewed one, which does not differ from that of
// a program with the new time until it is older than that.
func TestLockTimeoutIsNotFinalizedBesideOldPrograms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		to, age   time.Duration
		unlocked  bool // the event ends meanwhile
		finalized bool
	}{
		"a lock becomes too old":        {5 * time.Second, 0, false, false},
		"the run of a lock is complete": {30 * time.Second, 0, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			ctx := testenv.Context(t)
			if err := errors.Join(r.store.SetLockTimeout(ctx, time.Hour), r.store.FinalizeLockTimeout(ctx, false), r.store.SetLockTimeout(ctx, c.to)); err != nil {
				t.Fatal(err)
			}
			id := r.insert(event())[0]
			r.exec(`UPDATE events_v2 SET locked_at = clock_timestamp() - $2::interval, attempts = 1 WHERE id = $1`, id, c.age)
			finalized := make(chan error, 1)
			go func() { finalized <- r.store.FinalizeLockTimeout(ctx, false) }()
			if c.unlocked {
				r.exec(`UPDATE events_v2 SET locked_at = NULL`)
			}
			err := <-finalized
			var inUse *pgstore.LockTimeoutInUseError
			if c.finalized && err != nil || !c.finalized && (!errors.As(err, &inUse) || inUse.Event != id) {
				t.Errorf("FinalizeLockTimeout = %v", err)
			}
		})
	}
}
