package memstore_test

import (
	"encoding/json"
	"errors"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memstore"
	"eventsv2/eventqueue/worker"
)

var (
	canvas   = eventqueue.CanvasID{1}
	key      = eventqueue.HandlerKey{Module: "WORKER", Name: "greet", Modifier: "_"}
	handlers = eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{key}}

	errBroken = errors.New("broken on purpose")
)

func event(value string) eventqueue.NewEvent {
	return eventqueue.NewEvent{Canvas: canvas, Module: key.Module, Name: key.Name, Modifier: key.Modifier, Value: json.RawMessage(value)}
}

func insert(t *testing.T, store *memstore.Store, in eventqueue.DB, mode eventqueue.NotifyMode) eventqueue.EventID {
	t.Helper()
	inserted, err := store.Insert(t.Context(), in, []eventqueue.NewEvent{event(`1`)}, mode)
	if err != nil {
		t.Fatal(err)
	}
	return inserted[0].ID
}

// claim claims an event, and tells whether it could.
func claim(t *testing.T, store *memstore.Store, id eventqueue.EventID) (worker.Claim, bool) {
	t.Helper()
	found, err := store.Claim(t.Context(), []eventqueue.EventID{id}, handlers, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 || !found[0].Facts.Claimed {
		return worker.Claim{}, false
	}
	return worker.Claim{Event: id, Attempt: found[0].Attempt}, true
}

func mustClaim(t *testing.T, store *memstore.Store, id eventqueue.EventID) worker.Claim {
	t.Helper()
	c, ok := claim(t, store, id)
	if !ok {
		t.Fatalf("event %s could not be claimed", id)
	}
	return c
}
