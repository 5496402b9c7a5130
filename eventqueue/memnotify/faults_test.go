package memnotify_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
)

var errDown = errors.New("down")

func fails() error { return errDown }

func TestInjectedFaultsFailTheirCalls(t *testing.T) {
	t.Parallel()
	n := memnotify.New(memnotify.Config{})
	publish(t, n, 1)
	held := []eventqueue.Delivery{pullOne(t, n)}
	calls := map[string]func() error{
		"Publish": func() error { return n.Publish(t.Context(), notifications(2)) },
		"Pull":    func() error { _, err := n.Pull(t.Context(), 1); return err },
		"Ack":     func() error { return n.Ack(t.Context(), held) },
		"Requeue": func() error { return n.Requeue(t.Context(), held, 0) },
	}
	n.Inject(memnotify.Faults{Publish: fails, Pull: fails, Ack: fails, Requeue: fails})
	for name, call := range calls {
		if err := call(); !errors.Is(err, errDown) {
			t.Errorf("%s = %v, want the injected error", name, err)
		}
	}
	if left := n.Len(); left != 1 {
		t.Errorf("Len = %d after calls that failed, want 1", left)
	}
	n.Inject(memnotify.Faults{AfterPublish: fails})
	if err := n.Publish(t.Context(), notifications(2)); !errors.Is(err, errDown) {
		t.Errorf("Publish = %v, want the injected error", err)
	}
	n.Inject(memnotify.Faults{})
	if d := pullOne(t, n); d.Event != 2 {
		t.Errorf("pulled event %v, want 2, whose publish failed too late", d.Event)
	}
}

func TestInjectedFaultsReachWaitingPulls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := memnotify.New(memnotify.Config{})
		errs := make([]error, 3)
		var pullers sync.WaitGroup
		for i := range errs {
			pullers.Go(func() { _, errs[i] = n.Pull(t.Context(), 1) })
		}
		synctest.Wait()
		n.Inject(memnotify.Faults{Pull: fails})
		pullers.Wait()
		for i, err := range errs {
			if !errors.Is(err, errDown) {
				t.Errorf("Pull %d = %v, want the injected error", i, err)
			}
		}
	})
}

func TestDropAndDuplicate(t *testing.T) {
	t.Parallel()
	n := memnotify.New(memnotify.Config{})
	n.Drop(2)
	n.Duplicate(1)
	publish(t, n, 1, 2, 3, 4)
	var got []eventqueue.EventID
	for n.Ready() > 0 {
		got = append(got, pullOne(t, n).Event)
	}
	if diff := cmp.Diff([]eventqueue.EventID{3, 3, 4}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	want := memnotify.Stats{Published: 4, Delivered: 3}
	if diff := cmp.Diff(want, n.Stats()); diff != "" {
		t.Errorf("Stats (-want +got):\n%s", diff)
	}
}

func TestRedeliverEndsLeasesAndDelays(t *testing.T) {
	t.Parallel()
	n := memnotify.New(memnotify.Config{})
	publish(t, n, 1, 2, 3)
	leased, delayed := pullOne(t, n), pullOne(t, n)
	requeue(t, n, delayed, eventqueue.MaxRequeue)
	if ended := n.Redeliver(); ended != 2 {
		t.Errorf("Redeliver = %d, want 2", ended)
	}
	ack(t, n, leased, delayed) // void
	if ready := n.Ready(); ready != 3 {
		t.Errorf("Ready = %d after Redeliver and stale acks, want 3", ready)
	}
}

func TestWipeDeletesEverything(t *testing.T) {
	t.Parallel()
	n := memnotify.New(memnotify.Config{})
	publish(t, n, 1, 2, 3)
	leased, delayed := pullOne(t, n), pullOne(t, n)
	requeue(t, n, delayed, eventqueue.MaxRequeue)
	if wiped := n.Wipe(); wiped != 3 {
		t.Errorf("Wipe = %d, want 3", wiped)
	}
	if left := n.Len(); left != 0 {
		t.Errorf("Len = %d after Wipe, want 0", left)
	}
	// The slots are used again, and old ack IDs must not touch what is new.
	publish(t, n, 4, 5, 6)
	ack(t, n, leased, delayed)
	requeue(t, n, leased, eventqueue.MaxRequeue)
	if ready := n.Ready(); ready != 3 {
		t.Errorf("Ready = %d, want 3", ready)
	}
}

func TestForeignAckIDsAreRefused(t *testing.T) {
	t.Parallel()
	n := memnotify.New(memnotify.Config{})
	for _, id := range []string{"", "m1:1", "zzzzzzzzzzzzzzzz"} {
		if err := n.Ack(t.Context(), []eventqueue.Delivery{{AckID: id}}); err == nil {
			t.Errorf("Ack(%q) = nil, want an error", id)
		}
	}
	ack(t, n, eventqueue.Delivery{AckID: "ffffffffffffffff"})
}

func TestNewRefusesNegativeTimes(t *testing.T) {
	t.Parallel()
	for _, config := range []memnotify.Config{{Lease: -1}, {Unit: -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("New(%+v) did not panic", config)
				}
			}()
			memnotify.New(config)
		}()
	}
}

func TestPublishRefusesAnEventWithoutID(t *testing.T) {
	t.Parallel()
	n := memnotify.New(memnotify.Config{})
	if err := n.Publish(t.Context(), notifications(1, 0)); err == nil || n.Len() != 0 {
		t.Errorf("Publish = %v with %d queued, want an error and none", err, n.Len())
	}
}
