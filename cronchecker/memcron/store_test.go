package memcron_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/cronchecker"
	"eventsv2/cronchecker/memcron"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/memstore"
)

var canvas = eventqueue.CanvasID{1}

// rig is a database with cron tables in it.
type rig struct {
	t      *testing.T
	store  *memstore.Store
	tables *memcron.Tables
}

func newRig(t *testing.T) *rig {
	store := memstore.New(memstore.Config{})
	return &rig{t, store, memcron.NewTables(store)}
}

// connect is a program's Store, with its faults.
func (r *rig) connect(faults memstore.Faults) (*memcron.Store, *memstore.Store) {
	r.t.Helper()
	store := r.store.Connect(faults)
	queue, err := eventqueue.New(store, memnotify.New(memnotify.Config{}), eventqueue.QueueConfig{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { // a commit without an answer is searched for
		if err := queue.Close(context.Background()); err != nil {
			r.t.Error(err)
		}
	})
	return r.tables.Connect(store, queue), store
}

func (r *rig) add(store *memcron.Store, name string) {
	r.t.Helper()
	if _, err := store.Add(r.t.Context(), cronchecker.NewDefinition{
		Canvas: canvas, Name: name, Schedule: "every minute", Missed: cronchecker.MissedAll,
	}, false); err != nil {
		r.t.Fatal(err)
	}
}

// start runs a checker until the returned function is called.
func (r *rig) start(store cronchecker.Store) (stop func()) {
	r.t.Helper()
	checker, err := cronchecker.New(store, cronchecker.Config{})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := checker.Run(ctx); err != nil {
			r.t.Error(err)
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// mustBeWhole checks that every slot has one record and one event.
func (r *rig) mustBeWhole(want int) {
	r.t.Helper()
	records, events := r.tables.Records(), r.store.Events()
	if len(records) != want || len(events) != want {
		r.t.Errorf("%d records and %d events instead of %d", len(records), len(events), want)
	}
	slots := map[string]bool{}
	ids := map[eventqueue.EventID]bool{}
	for _, e := range events {
		ids[e.ID] = true
	}
	for _, record := range records {
		slot := record.Cron.String() + record.Slot.String()
		if slots[slot] || !ids[record.Event] {
			r.t.Errorf("slot %s is recorded twice, or its event is not there: %+v", slot, record)
		}
		slots[slot] = true
	}
}

func TestManyCheckersOneEventPerSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var stops []func()
		for range 3 {
			store, _ := r.connect(memstore.Faults{})
			stops = append(stops, r.start(store))
		}
		operator, _ := r.connect(memstore.Faults{})
		r.add(operator, "a")
		r.add(operator, "b")
		pass(10 * time.Minute)
		for _, stop := range stops {
			stop()
		}
		pass(time.Hour) // after which one checker catches up
		store, _ := r.connect(memstore.Faults{})
		stop := r.start(store)
		pass(time.Second)
		stop()
		r.mustBeWhole(2 * 70)
	})
}

func TestFailuresLoseNoSlot(t *testing.T) {
	t.Parallel()
	for _, op := range []memstore.Op{memcron.OpLoad, memcron.OpLock, memstore.OpInsert, memstore.OpCommit} {
		for _, after := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				asked := 0
				everySecond := func(_ context.Context, o memstore.Op) error {
					if o == op {
						if asked++; asked%2 == 0 {
							return errors.New("broken on purpose")
						}
					}
					return nil
				}
				faults := memstore.Faults{Before: everySecond}
				if after {
					faults = memstore.Faults{After: everySecond}
				}
				store, _ := r.connect(faults)
				r.add(store, "a")
				stop := r.start(store)
				pass(10*time.Minute + 40*time.Second)
				stop()
				r.mustBeWhole(10)
			})
		}
	}
}

func TestDyingCheckerGivesItsDefinitionsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		stuck := make(chan struct{})
		dying, connection := r.connect(memstore.Faults{Before: func(_ context.Context, op memstore.Op) error {
			if op == memstore.OpCommit {
				<-stuck
			}
			return nil
		}})
		r.add(dying, "a")
		stopDying := r.start(dying)
		pass(time.Minute + time.Second)
		other, _ := r.connect(memstore.Faults{})
		check(t, other)
		r.mustBeWhole(0) // the stuck checker holds the definition
		changed := make(chan error, 1)
		go func() { changed <- other.SetEnabled(t.Context(), canvas, "a", true) }()
		synctest.Wait()

		connection.Disconnect()
		if err := <-changed; err != nil {
			t.Errorf("a change that waited: %v", err)
		}
		check(t, other)
		r.mustBeWhole(1)
		close(stuck)
		stopDying()
		r.mustBeWhole(1)
	})
}

func check(t *testing.T, store cronchecker.Store) {
	t.Helper()
	checker, err := cronchecker.New(store, cronchecker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checker.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		store, _ := r.connect(memstore.Faults{})
		r.add(store, "a")
		if _, err := store.Add(t.Context(), cronchecker.NewDefinition{Canvas: canvas, Name: "a", Schedule: "every day"}, false); !errors.Is(err, cronchecker.ErrTaken) {
			t.Errorf("a second one of the name: %v", err)
		}
		if _, err := store.Add(t.Context(), cronchecker.NewDefinition{Canvas: canvas, Name: "b", Schedule: "never"}, false); err == nil {
			t.Error("a schedule that cannot be read was taken")
		}
		if err := store.SetEnabled(t.Context(), canvas, "a", false); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Minute)
		if err := store.SetEnabled(t.Context(), canvas, "a", true); err != nil {
			t.Fatal(err)
		}
		check(t, store)
		r.mustBeWhole(0) // slots that pass while it is off are nobody's
		pass(time.Minute)
		check(t, store)
		r.mustBeWhole(1)
		if err := store.Remove(t.Context(), canvas, "a"); err != nil {
			t.Fatal(err)
		}
		if err := store.Remove(t.Context(), canvas, "a"); !errors.Is(err, cronchecker.ErrNotFound) {
			t.Errorf("removed twice: %v", err)
		}
		if len(r.tables.Records()) != 0 || len(r.tables.Definitions()) != 0 {
			t.Error("something is left of a removed definition")
		}
	})
}

// pass lets time go by, by the bubble's clock, and everything happen that is due
// by then.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
