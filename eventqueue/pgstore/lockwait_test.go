package pgstore_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// inPlans runs a test with the plan that Postgres makes for a small table, which
// reads it, and with that for a large one, which fetches row versions by their
// place: what a statement does after it has waited may depend on that.
func inPlans(t *testing.T, test func(r *rig)) {
	t.Helper()
	for _, seqscan := range []string{"on", "off"} {
		t.Run("enable_seqscan "+seqscan, func(t *testing.T) {
			t.Parallel()
			test(newRigWith(t, map[string]string{
				"enable_seqscan":     seqscan,
				"jit":                "off", // whose limits are costs
				"eventsv2.lock_wait": "1min",
			}))
		})
	}
}

// newRigWith is newRig with settings of its sessions.
func newRigWith(t *testing.T, settings map[string]string) *rig {
	t.Helper()
	config, err := pgxpool.ParseConfig(testenv.DatabaseURL(t))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(config.ConnConfig.RuntimeParams, settings)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &rig{t, pool, pgstore.New(pool)}
}

// TestClaimThatWaitedChecksAgain (I4): the row that it is about to claim is
// being claimed by another claim, which commits before the maximum wait is over.
func TestClaimThatWaitedChecksAgain(t *testing.T) {
	t.Parallel()
	inPlans(t, func(r *rig) {
		for _, c := range []struct {
			name, end         string
			stale             bool
			claimed           bool
			attempts, retries int
		}{
			{"of a free event, in vain", `COMMIT`, false, false, 1, 0},
			{"of a free event", `ROLLBACK`, false, true, 1, 0},
			{"of an expired lock, in vain", `COMMIT`, true, false, 2, 1},
			{"of an expired lock", `ROLLBACK`, true, true, 2, 1},
		} {
			r.t.Run(c.name, func(t *testing.T) {
				r := &rig{t, r.pool, r.store}
				id := r.insert(event())[0]
				if c.stale {
					r.claim(id)
					r.exec(`UPDATE events_v2 SET suspect = 1 WHERE id = $1`, id)
					r.expire(id)
				}
				first := r.begin()
				first.claim(id)
				second := beside(r, func(ctx context.Context) ([]worker.ClaimResult, error) {
					return r.store.Claim(ctx, []eventqueue.EventID{id}, handlers, 0)
				})
				first.endWhenWaitedFor(c.end)
				if found := <-second; len(found) != 1 || found[0].Facts.Claimed != c.claimed {
					t.Errorf("the second claim: %+v, want claimed %v", found, c.claimed)
				}
				if got := r.mustRow(id); got.Attempts != c.attempts || got.Retries != c.retries {
					t.Errorf("after both claims: %+v, want %d attempts and %d retries", got, c.attempts, c.retries)
				}
			})
		}
	})
}

// TestCompletionThatWaitedChecksAgain (I5): another worker is taking the event over,
// and commits before the maximum wait of the completion is over.
func TestCompletionThatWaitedChecksAgain(t *testing.T) {
	t.Parallel()
	inPlans(t, func(r *rig) {
		own := forms[0]
		for _, w := range writes(own) {
			for _, end := range []string{`COMMIT`, `ROLLBACK`} {
				r.t.Run(w.name+" "+end, func(t *testing.T) {
					r := &rig{t, r.pool, r.store}
					c := r.claim(r.insert(event())[0])
					r.expire(c.Event)
					workers := r.begin()
					workers.claim(c.Event)
					taken, _ := r.rowIn(workers.conn, c.Event)
					result := beside(r, func(ctx context.Context) (worker.WriteResult, error) { return w.do(ctx, r, own, c) })
					workers.endWhenWaitedFor(end)
					written := <-result
					if end == `COMMIT` {
						if len(written.Done) != 0 {
							t.Error("the stale claim was believed")
						}
						r.unchanged(c.Event, taken)
						return
					}
					if diff := cmp.Diff(worker.WriteResult{Done: []eventqueue.EventID{c.Event}}, written); diff != "" {
						t.Errorf("nobody took the event over, but: %s", diff)
					}
				})
			}
		}
	})
}

// TestLockedRowDelaysNoOther (I15): one row of many is being written, for longer
// than anybody waits.
func TestLockedRowDelaysNoOther(t *testing.T) {
	t.Parallel()
	newRig(t).inForms(func(r *rig, f form) {
		events := make([]eventqueue.NewEvent, 1+4*7)
		for i := range events {
			events[i] = event()
		}
		ids := r.insert(events...)
		busy, others := ids[len(ids)/2], slices.Delete(slices.Clone(ids), len(ids)/2, len(ids)/2+1)

		operator := r.begin()
		operator.lock(busy)
		r.returns("the claim", func(ctx context.Context) {
			found, err := f.claim(ctx, r, ids...)
			if err != nil || len(found) != len(ids) {
				r.t.Errorf("found %d of %d events, %v", len(found), len(ids), err)
			}
			for _, f := range found {
				if f.Facts.Claimed == (f.Event.ID == busy) {
					r.t.Errorf("event %s of which %s is busy: %+v", f.Event.ID, busy, f.Facts)
				}
			}
		})
		operator.end(`ROLLBACK`)
		r.claim(busy)

		handler := r.begin()
		handler.lock(busy)
		claim := func(id eventqueue.EventID) worker.Claim { return worker.Claim{Event: id, Attempt: 1} }
		expect := func(what string, want []eventqueue.EventID, write func(ctx context.Context) (worker.WriteResult, error)) {
			r.t.Helper()
			r.returns(what, func(ctx context.Context) {
				written, err := write(ctx)
				slices.Sort(written.Done)
				if diff := cmp.Diff(worker.WriteResult{Done: want}, written); err != nil || diff != "" {
					r.t.Errorf("%s: %v %s", what, err, diff)
				}
			})
		}
		expect("Renew", others, func(ctx context.Context) (worker.WriteResult, error) {
			claims := make([]worker.Claim, len(ids))
			for i, id := range ids {
				claims[i] = claim(id)
			}
			return r.store.Renew(ctx, claims)
		})
		for i, labels := range [][2]machine.Label{
			{machine.ExecutesToCompletion, machine.ExecutesToCompletion},
			{machine.FailedForGood, machine.FailedForGood},
			{machine.RetryAllowed, machine.RetryAllowed},
			{machine.ExecutesToCompletion, machine.RetryAllowed},
		} {
			completions := []worker.Completion{{Claim: claim(busy), Label: labels[0]}}
			batch := others[7*i : 7*i+7]
			for _, id := range batch {
				completions = append(completions, worker.Completion{Claim: claim(id), Label: labels[1]})
			}
			expect("Finish with "+string(labels[1]), batch, func(ctx context.Context) (worker.WriteResult, error) {
				return f.complete(ctx, r, false, completions...)
			})
		}
		handler.end(`ROLLBACK`)
		if got := r.mustRow(busy); got.LockedAt == nil {
			r.t.Error("the busy event lost its lock")
		}
	})
}

// TestClaimYieldsToATransactionThatWaitsForIt (I15): the transaction that it waits for comes to wait for it.
func TestClaimYieldsToATransactionThatWaitsForIt(t *testing.T) {
	t.Parallel()
	// Long enough for the other to notice on a slow machine, and not as long as
	// Postgres waits before it looks for a deadlock (1 s).
	r := newRigWith(t, map[string]string{"eventsv2.lock_wait": "700ms"})
	ids := r.insert(event(), event())
	operator := r.begin()
	operator.lock(ids[1])
	result := beside(r, func(ctx context.Context) ([]worker.ClaimResult, error) {
		return r.store.Claim(ctx, ids, handlers, 0)
	})
	operator.whenWaitedFor(`SELECT FROM events_v2 WHERE id = ` + ids[0].String() + ` FOR UPDATE`)
	operator.end(`COMMIT`)
	if found := <-result; len(found) != len(ids) {
		t.Errorf("found %+v", found)
	}
}

// TestLockWaitEndsWithItsStatement: what it does to lock_timeout is over with it,
// and a transaction of the caller keeps its own.
func TestLockWaitEndsWithItsStatement(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	config := r.pool.Config()
	config.MaxConns = 1
	config.ConnConfig.RuntimeParams["lock_timeout"] = "7s"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store := pgstore.New(pool)
	for _, busy := range []bool{false, true} {
		t.Run(fmt.Sprintf("busy %v", busy), func(t *testing.T) {
			r := &rig{t, r.pool, r.store}
			ids := r.insert(event(), event(), event())
			claims := []worker.Claim{r.claim(ids[1]), r.claim(ids[2])}
			completions := []worker.Completion{{Claim: claims[0], Label: machine.FailedForGood}, {Claim: claims[1], Label: machine.RetryAllowed}}
			if busy {
				operator := r.begin()
				for _, id := range ids {
					operator.lock(id)
				}
			}
			check := func(what string, db eventqueue.DB, err error) {
				t.Helper()
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				var limit string
				if err := db.QueryRow(ctx, `SHOW lock_timeout`).Scan(&limit); err != nil || limit != "7s" {
					t.Errorf("after %s lock_timeout is %q, want 7s, %v", what, limit, err)
				}
			}
			tx, err := pool.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(ctx) }()
			_, err = pgstore.ClaimIn(ctx, tx, ids, handlers, 0)
			check("ClaimIn", tx, err)
			_, err = store.Complete(ctx, tx, completions, false)
			check("Finish in a transaction", tx, err)
			if err := tx.Rollback(ctx); err != nil {
				t.Fatal(err)
			}
			_, err = store.Claim(ctx, ids, handlers, 0)
			check("Claim", pool, err)
			_, err = store.Renew(ctx, claims)
			check("Renew", pool, err)
			_, err = store.Complete(ctx, nil, completions, false)
			check("Finish", pool, err)
		})
	}
}

// TestCallersTransactionKeepsItsSettings (I12): what is set for the plans of
// this library's statements is not left to those of the caller.
func TestCallersTransactionKeepsItsSettings(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	settings := func(db eventqueue.DB) (all [3]string) {
		t.Helper()
		const sql = `SELECT current_setting('enable_seqscan'), current_setting('jit'), current_setting('lock_timeout')`
		if err := db.QueryRow(ctx, sql).Scan(&all[0], &all[1], &all[2]); err != nil {
			t.Fatal(err)
		}
		return all
	}
	statements := []struct {
		name string
		do   func(db eventqueue.DB, ids []eventqueue.EventID) error
	}{
		{"ClaimIn", func(db eventqueue.DB, ids []eventqueue.EventID) error {
			_, err := pgstore.ClaimIn(ctx, db, ids, handlers, 0)
			return err
		}},
		{"Finish", func(db eventqueue.DB, ids []eventqueue.EventID) error {
			_, err := r.store.Complete(ctx, db, []worker.Completion{
				{Claim: worker.Claim{Event: ids[0], Attempt: 1}, Label: machine.FailedForGood},
				{Claim: worker.Claim{Event: ids[1], Attempt: 1}, Label: machine.RetryAllowed},
			}, false)
			return err
		}},
	}
	for _, value := range []string{"on", "off"} { // of the caller's
		ids := r.insert(event(), event())
		err := r.store.InTx(ctx, func(ctx context.Context, db eventqueue.DB) error {
			if _, err := db.Exec(ctx, `SELECT set_config('enable_seqscan', $1, true), set_config('jit', $1, true)`, value); err != nil {
				return err
			}
			before := settings(db)
			for _, statement := range statements {
				if err := statement.do(db, ids); err != nil {
					return err
				}
				if after := settings(db); after != before {
					t.Errorf("after %s enable_seqscan, jit and lock_timeout are %q, and were %q", statement.name, after, before)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
