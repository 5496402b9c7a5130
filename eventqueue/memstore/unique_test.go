package memstore_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/memstore"
	"eventsv2/eventqueue/worker"
)

func once(uniqueFor time.Duration) []eventqueue.NewEvent {
	e := event(`1`)
	e.UniqueKey, e.UniqueFor = "k", uniqueFor
	return []eventqueue.NewEvent{e}
}

func TestAKeyHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		emit := func() eventqueue.Inserted {
			t.Helper()
			rows, err := store.Insert(t.Context(), nil, once(time.Hour), eventqueue.NotifyModeSelf)
			if err != nil {
				t.Fatal(err)
			}
			return rows[0]
		}
		first := emit()
		if again := emit(); first.Repeat || !again.Repeat || again.ID != first.ID {
			t.Errorf("first %+v, then %+v", first, again)
		}
		ends := []worker.Completion{{Claim: mustClaim(t, store, first.ID), Label: machine.ExecutesToCompletion, Unique: true}}
		if _, err := store.Complete(t.Context(), nil, ends, false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour - time.Second)
		if again := emit(); again.ID != first.ID {
			t.Errorf("within its time the key has gone to %+v", again)
		}
		if n, _, err := store.DeleteKeys(t.Context(), eventqueue.UniqueKey{}, 10); n != 0 || err != nil {
			t.Errorf("%d keys were removed that hold, %v", n, err)
		}
		time.Sleep(time.Second)
		if n, _, err := store.DeleteKeys(t.Context(), eventqueue.UniqueKey{}, 10); n != 1 || err != nil || len(store.Expiries()) != 0 {
			t.Errorf("%d keys were removed, %v, and %v is left", n, err, store.Expiries())
		}
		if again := emit(); again.Repeat || again.ID == first.ID {
			t.Errorf("after its time the key is still that of %+v", again)
		}
	})
}

// The second of two emits of a key waits for the transaction of the first, or for
// the end of its own context.
func TestAnEmitWaitsForAKey(t *testing.T) {
	t.Parallel()
	for _, commit := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			store := memstore.New(memstore.Config{})
			tx, err := store.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			first, err := store.Insert(t.Context(), tx, once(0), eventqueue.NotifyModeSelf)
			if err != nil {
				t.Fatal(err)
			}
			impatient, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := store.Insert(impatient, nil, once(0), eventqueue.NotifyModeSelf); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("an emit that has no time to wait: %v", err)
			}
			second := make(chan []eventqueue.Inserted, 1)
			go func() {
				rows, err := store.Insert(t.Context(), nil, once(0), eventqueue.NotifyModeSelf)
				if err != nil {
					t.Error(err)
				}
				second <- rows
			}()
			synctest.Wait()
			if len(second) != 0 {
				t.Error("the second did not wait")
			}
			if commit {
				err = tx.Commit(t.Context())
			} else {
				err = tx.Rollback(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
			if rows := <-second; rows[0].Repeat != commit || commit != (rows[0].ID == first[0].ID) {
				t.Errorf("commit %t: the first was %+v, the second is %+v", commit, first, rows)
			}
			if len(store.Events()) != 1 {
				t.Errorf("events: %v", store.Events())
			}
		})
	}
}
