package pgstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// once is an event with a key.
func once(key string, uniqueFor time.Duration) eventqueue.NewEvent {
	e := event()
	e.UniqueKey, e.UniqueFor = key, uniqueFor
	return e
}

// runToEnd runs an event to its end.
func (r *rig) runToEnd(id eventqueue.EventID, label machine.Label) {
	r.t.Helper()
	f := r.look(id)[id]
	end := worker.Completion{Claim: worker.Claim{Event: id, Attempt: f.Attempt}, Label: label, Unique: f.Unique}
	written, err := r.store.Complete(testenv.Context(r.t), nil, []worker.Completion{end}, false)
	if err != nil || len(written.Done) != 1 {
		r.t.Fatalf("the end of event %s: %+v, %v", id, written, err)
	}
}

// emitters are the ways to emit; each returns ids, and what was new, if it can.
func (r *rig) emitters() map[string]func(events ...eventqueue.NewEvent) (ids []eventqueue.EventID, fresh []bool, err error) {
	ctx := testenv.Context(r.t)
	q := r.queue(memnotify.New(memnotify.Config{}))
	standard := stdlib.OpenDBFromPool(r.pool)
	r.t.Cleanup(func() { _ = standard.Close() })
	split := func(emitted []eventqueue.Emitted, err error) (ids []eventqueue.EventID, fresh []bool, _ error) {
		for _, e := range emitted {
			ids, fresh = append(ids, e.ID), append(fresh, e.New)
		}
		return ids, fresh, err
	}
	return map[string]func(...eventqueue.NewEvent) ([]eventqueue.EventID, []bool, error){
		"Emit": func(events ...eventqueue.NewEvent) (ids []eventqueue.EventID, _ []bool, _ error) {
			for _, e := range events {
				id, err := q.Emit(ctx, e)
				if err != nil {
					return nil, nil, err
				}
				ids = append(ids, id)
			}
			return ids, nil, nil
		},
		"EmitMany": func(events ...eventqueue.NewEvent) ([]eventqueue.EventID, []bool, error) {
			ids, err := q.EmitMany(ctx, events)
			return ids, nil, err
		},
		"EmitUnique": func(events ...eventqueue.NewEvent) ([]eventqueue.EventID, []bool, error) {
			return split(q.EmitUnique(ctx, events...))
		},
		"Tx.EmitUnique": func(events ...eventqueue.NewEvent) (ids []eventqueue.EventID, fresh []bool, err error) {
			err = q.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
				ids, fresh, err = split(tx.EmitUnique(ctx, events...))
				return err
			})
			return ids, fresh, err
		},
		"EmitTx": func(events ...eventqueue.NewEvent) (ids []eventqueue.EventID, fresh []bool, err error) {
			err = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
				pending, err := q.EmitTx(ctx, tx, events...)
				if err == nil {
					ids, fresh = pending.IDs, pending.New
				}
				return err
			})
			return ids, fresh, err
		},
		"EmitSQL": func(events ...eventqueue.NewEvent) (ids []eventqueue.EventID, fresh []bool, err error) {
			tx, err := standard.BeginTx(ctx, &sql.TxOptions{})
			if err != nil {
				return nil, nil, err
			}
			pending, err := q.EmitSQL(ctx, tx, events...)
			if err != nil {
				return nil, nil, errors.Join(err, tx.Rollback())
			}
			return pending.IDs, pending.New, tx.Commit()
		},
	}
}

// TestUniqueKeyIsEmittedOnce by every way to emit, also twice within one batch, and
// beside events without a key.
func TestUniqueKeyIsEmittedOnce(t *testing.T) {
	t.Parallel()
	inPlans(t, func(r *rig) {
		for name, emit := range r.emitters() {
			elsewhere := once(name, 0)
			elsewhere.Canvas = another
			batch := []eventqueue.NewEvent{once(name, 0), event(), once(name, time.Hour), elsewhere, event(), once(name+"'", 0)}
			first, fresh, err := emit(batch...)
			if err != nil {
				r.t.Fatalf("%s: %v", name, err)
			}
			if want := []bool{true, true, false, true, true, true}; fresh != nil && !slices.Equal(fresh, want) {
				r.t.Errorf("%s: new: %v, want %v", name, fresh, want)
			}
			if first[2] != first[0] || len(slices.Compact(slices.Sorted(slices.Values(first)))) != 5 {
				r.t.Errorf("%s: ids %v, want the third to be the first", name, first)
			}
			again, fresh, err := emit(batch...)
			if err != nil {
				r.t.Fatalf("%s: %v", name, err)
			}
			if want := []bool{false, true, false, false, true, false}; fresh != nil && !slices.Equal(fresh, want) {
				r.t.Errorf("%s again: new: %v, want %v", name, fresh, want)
			}
			for i := range first {
				if repeat := batch[i].UniqueKey != ""; repeat != (first[i] == again[i]) {
					r.t.Errorf("%s: event %d is %s, and then %s", name, i, first[i], again[i])
				}
			}
		}
		if n, want := one[int](r, `SELECT count(*) FROM events_v2`), 6*(5+2); n != want {
			r.t.Errorf("%d events are there, want %d", n, want)
		}
	})
}

// TestUniqueKeyHoldsForItsTime: while the event is queued, runs or waits for its
// retry, and for its time after the end, however it ended.
func TestUniqueKeyHoldsForItsTime(t *testing.T) {
	t.Parallel()
	for _, label := range []machine.Label{machine.ExecutesToCompletion, machine.FailedForGood, machine.RetryTooMany} {
		for _, uniqueFor := range []time.Duration{0, time.Microsecond, time.Hour} {
			t.Run(fmt.Sprint(label, " ", uniqueFor), func(t *testing.T) {
				t.Parallel()
				r := newRigWithClock(t, 0)
				first := r.insert(once("k", uniqueFor))[0]
				same := func(when string, want bool) {
					t.Helper()
					// The time of a repeat does not count.
					if got := r.insert(once("k", 99*time.Hour))[0]; (got == first) != want {
						t.Errorf("%s: the first was %s, the repeat is %s", when, first, got)
					}
				}
				same("while it waits", true)
				if !r.complete(r.claim(first), machine.RetryAllowed, time.Hour, false) {
					t.Fatal("the claim did not hold")
				}
				same("before its retry", true)
				r.setClock(2 * time.Hour)
				r.runToEnd(first, label)
				if uniqueFor == time.Hour {
					same("after its end", true)
					r.setClock(3*time.Hour - time.Minute)
					same("before its time is over", true)
				}
				r.setClock(3*time.Hour + time.Minute)
				same("when its time is over", false)
				if n := one[int](r, `SELECT count(*) FROM unique_expiries`); n != 0 {
					t.Errorf("%d ends of events are kept whose keys have gone to others", n)
				}
			})
		}
	}
}

// TestSecondEmitOfAKeyWaitsForTheFirst for the first one's commit, and returns its
// id, or for its rollback, and takes its place.
func TestSecondEmitOfAKeyWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	for _, expired := range []bool{false, true} {
		for end, repeats := range map[string]bool{`COMMIT`: true, `ROLLBACK`: false} {
			t.Run(fmt.Sprint(end, expired), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				if expired {
					r.runToEnd(r.insert(once("k", 0))[0], machine.ExecutesToCompletion)
				}
				first := r.begin()
				rows, err := r.store.Insert(testenv.Context(t), first.conn, []eventqueue.NewEvent{once("k", 0)}, eventqueue.NotifyModeLater)
				if err != nil {
					t.Fatal(err)
				}
				second := beside(r, func(ctx context.Context) ([]eventqueue.Inserted, error) {
					return r.store.Insert(ctx, nil, []eventqueue.NewEvent{once("k", 0)}, eventqueue.NotifyModeLater)
				})
				first.endWhenWaitedFor(end)
				got := <-second
				if len(got) != 1 || got[0].Repeat != repeats || repeats != (got[0].ID == rows[0].ID) {
					t.Errorf("the first was %+v, the second is %+v", rows, got)
				}
				if n := one[int](r, `SELECT count(*) FROM events_v2`); n != 1 {
					t.Errorf("%d events are there", n)
				}
			})
		}
	}
}

// TestExpiredKeyIsTakenOverOnce, also when two find it expired: the first is held
// up where it has decided to take it, and has not done so.
func TestExpiredKeyIsTakenOverOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.runToEnd(r.insert(once("k", 0))[0], machine.ExecutesToCompletion)
	r.exec(`CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN new; END $$`)
	r.exec(`CREATE TRIGGER hold BEFORE INSERT ON events_v2 FOR EACH ROW EXECUTE FUNCTION hold()`)
	holder := r.begin()
	holder.exec(`SELECT pg_advisory_xact_lock(1)`)
	var emits []<-chan []eventqueue.Inserted
	for n := range 2 {
		emits = append(emits, beside(r, func(ctx context.Context) ([]eventqueue.Inserted, error) {
			return r.store.Insert(ctx, nil, []eventqueue.NewEvent{once("k", 0)}, eventqueue.NotifyModeLater)
		}))
		testenv.Eventually(t, "the emits wait", func() bool { return r.waits(n + 1) })
	}
	holder.end(`COMMIT`)
	first, second := <-emits[0], <-emits[1]
	if first[0].Repeat || !second[0].Repeat || first[0].ID != second[0].ID {
		t.Errorf("the first was %+v, the second is %+v", first, second)
	}
}

// TestEmitWithAKeyDelaysNoOther (I15): not those that could share its insert, and
// not the end of the event that has the key.
func TestEmitWithAKeyDelaysNoOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	q := r.queue(memnotify.New(memnotify.Config{}))
	id := r.insert(once("k", time.Hour))[0]
	tx := r.begin()
	if _, err := r.store.Insert(ctx, tx.conn, []eventqueue.NewEvent{once("k", 0)}, eventqueue.NotifyModeLater); err != nil {
		t.Fatal(err)
	}
	waiting := beside(r, func(ctx context.Context) (eventqueue.EventID, error) { return q.Emit(ctx, once("k", 0)) })
	for !r.waits(1) {
		select {
		case got := <-waiting:
			t.Fatalf("the repeat is %s, and waits for nobody: the key's transaction is open", got)
		default:
		}
		if _, err := q.Emit(ctx, event()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.Emit(ctx, event()); err != nil {
		t.Fatal(err)
	}
	r.runToEnd(id, machine.ExecutesToCompletion)
	tx.end(`COMMIT`)
	if got := <-waiting; got != id {
		t.Errorf("the repeat is %s, want %s", got, id)
	}
}

// TestBatchesOfTheSameKeysDoNotDeadlock, in whatever order they name them.
func TestBatchesOfTheSameKeysDoNotDeadlock(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const keys, emitters = 1500, 6 // more than one statement takes
	ids := make([][]eventqueue.EventID, emitters)
	var wait sync.WaitGroup
	for i := range emitters {
		events := make([]eventqueue.NewEvent, keys)
		for n := range events {
			place := (n*7 + i*311) % keys
			if i%2 == 1 {
				place = keys - 1 - place
			}
			events[n] = once(fmt.Sprintf("key %d", place), 0)
		}
		wait.Go(func() {
			rows, err := r.store.Insert(testenv.Context(t), nil, events, eventqueue.NotifyModeLater)
			if err != nil || len(rows) != keys {
				t.Errorf("batch %d: %d rows, %v", i, len(rows), err)
			}
			for _, row := range rows {
				ids[i] = append(ids[i], row.ID)
			}
			slices.Sort(ids[i])
		})
	}
	wait.Wait()
	for i := range ids {
		if !slices.Equal(ids[i], ids[0]) {
			t.Errorf("batch %d got other ids than the first", i)
		}
	}
	if n := one[int](r, `SELECT count(*) FROM events_v2`); n != keys {
		t.Errorf("%d events of %d keys", n, keys)
	}
}

// TestBatchTakesItsKeysInOrder, not in its own: while it waits for the first of them it
// has locked none of the others, so that no two batches wait for each other (I15).
func TestBatchTakesItsKeysInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	batch := []eventqueue.NewEvent{once("c", 0), once("b", 0), once("a", 0)}
	r.insert(batch...)
	first := r.begin()
	first.exec(`SELECT FROM unique_keys WHERE key = 'a' FOR UPDATE`)
	second := beside(r, func(ctx context.Context) ([]eventqueue.Inserted, error) {
		return r.store.Insert(ctx, nil, batch, eventqueue.NotifyModeSelf)
	})
	first.whenWaitedFor(``)
	free := one[int](r, `SELECT count(*) FROM (SELECT FROM unique_keys WHERE key <> 'a' FOR UPDATE SKIP LOCKED) AS free`)
	first.end(`COMMIT`)
	if free != 2 {
		t.Errorf("a batch that waits for its first key has locked %d others", 2-free)
	}
	for i, row := range <-second {
		if !row.Repeat {
			t.Errorf("event %d of the second batch: %+v", i, row)
		}
	}
}

// TestRolledBackKeyIsFree, also when it was free to be taken from another event.
func TestRolledBackKeyIsFree(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue(memnotify.New(memnotify.Config{}))
	boom := errors.New("boom")
	err := q.InTx(testenv.Context(t), func(ctx context.Context, tx *eventqueue.Tx) error {
		_, err := tx.Emit(ctx, once("k", 0))
		return errors.Join(err, boom)
	})
	if !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if n := one[int](r, `SELECT count(*) FROM unique_keys`); n != 0 {
		t.Errorf("%d keys after a rollback", n)
	}
	if rows, err := r.store.Insert(testenv.Context(t), nil, []eventqueue.NewEvent{once("k", 0)}, eventqueue.NotifyModeSelf); err != nil || rows[0].Repeat {
		t.Errorf("after a rollback: %+v, %v", rows, err)
	}
}

// TestRetriedEventHasItsKeyAgain, and for its time from its second end on.
func TestRetriedEventHasItsKeyAgain(t *testing.T) {
	t.Parallel()
	r := newRigWithClock(t, 0)
	id := r.insert(once("k", time.Hour))[0]
	r.runToEnd(id, machine.FailedForGood)
	r.setClock(59 * time.Minute)
	if got, err := r.store.Retry(testenv.Context(t), operate.Edit{}, []eventqueue.EventID{id}); err != nil || got[0].Result != operate.RetryMoved {
		t.Fatalf("retry: %+v, %v", got, err)
	}
	for _, step := range []struct {
		minutes int
		same    bool
	}{{100, true}, {159, true}, {161, false}} {
		r.setClock(time.Duration(step.minutes) * time.Minute)
		if got := r.insert(once("k", 0))[0]; (got == id) != step.same {
			t.Errorf("after %d minutes the repeat of %s is %s", step.minutes, id, got)
		}
		if step.minutes == 100 {
			r.runToEnd(id, machine.ExecutesToCompletion)
		}
	}
}

// TestExpiredKeysAreRemoved, and no others, page by page.
func TestExpiredKeysAreRemoved(t *testing.T) {
	t.Parallel()
	inPlans(t, func(r *rig) {
		ctx := testenv.Context(r.t)
		ids := r.insert(once("a", 0), once("b", time.Hour), once("c", 0), once("d", time.Second), once("e", 0), once("f", 0))
		for i, id := range ids {
			if i != 2 {
				r.runToEnd(id, machine.ExecutesToCompletion)
			}
		}
		r.exec(`UPDATE unique_expiries SET expires_at = clock_timestamp() WHERE event_id = $1`, ids[3])
		tx := r.begin() // which has a key that could go
		if _, err := r.store.Insert(ctx, tx.conn, []eventqueue.NewEvent{once("e", 0)}, eventqueue.NotifyModeLater); err != nil {
			r.t.Fatal(err)
		}
		total, pages := 0, 0
		for after := (eventqueue.UniqueKey{}); ; pages++ {
			n, next, err := r.store.DeleteKeys(ctx, after, 2)
			if err != nil {
				r.t.Fatal(err)
			}
			total += n
			if next == (eventqueue.UniqueKey{}) {
				break
			}
			after = next
		}
		if total != 3 || pages != 3 {
			r.t.Errorf("%d keys removed in %d full pages, want 3 and 3", total, pages)
		}
		tx.end(`COMMIT`)
		if got := one[string](r, `SELECT string_agg(key, '' ORDER BY key) FROM unique_keys`); got != "bce" {
			r.t.Errorf("left are %q", got)
		}
		if n := one[int](r, `SELECT count(*) FROM unique_expiries`); n != 1 {
			r.t.Errorf("%d ends are left, want 1", n)
		}
	})
}
