package model_test

import (
	"fmt"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
)

// TestManyEvents compares what sequences are too short for: emits of several
// statements, and searches of several pages for runnable events, with scopes so
// full that the events in their middle are left out.
func TestManyEvents(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	w := newWorld(t, d)
	defer w.close()
	events := manyEvents()

	pg, pgErr := w.store.Insert(w.ctx, nil, events, eventqueue.NotifyModeSelf)
	mem, memErr := w.mem.Insert(w.ctx, nil, events, eventqueue.NotifyModeSelf)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "Insert", pg, mem)
	pg, pgErr = w.insertInSQL(events, eventqueue.NotifyModeRelay)
	mem, memErr = w.mem.Insert(w.ctx, nil, events, eventqueue.NotifyModeRelay)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "InsertSQL", pg, mem)
	events[1500].Value = []byte(refusedText)
	_, pgErr = w.store.Insert(w.ctx, nil, events, eventqueue.NotifyModeLater)
	_, memErr = w.mem.Insert(w.ctx, nil, events, eventqueue.NotifyModeLater)
	w.sameErrors(t, pgErr, memErr, false)
	if pgErr == nil {
		t.Error("a text with NUL was taken")
	}
	w.compare(t)

	for _, except := range [][]eventqueue.CanvasID{nil, {{2}}, {{1}, {3}}} {
		if pages := w.walkRunnable(t, except); pages < 2 {
			t.Errorf("without %v there were %d pages, want several", except, pages)
		}
	}
}

// manyEvents are on three canvases, of 100 handlers each; every tenth has many.
func manyEvents() []eventqueue.NewEvent {
	var events []eventqueue.NewEvent
	for canvas := range 3 {
		for handler := range 100 {
			n := 1
			if handler%10 == 0 {
				n = 70 + handler
			}
			for i := range n {
				events = append(events, eventqueue.NewEvent{
					Canvas: eventqueue.CanvasID{byte(canvas + 1)}, Module: "WORKER", Name: fmt.Sprintf("handler_%d", handler),
					Modifier: "_", Value: []byte("1"), Delay: time.Duration(i%3) * time.Minute,
				})
			}
		}
	}
	return events
}

// walkRunnable compares page after page, and returns how many there were.
func (w *world) walkRunnable(t *testing.T, except []eventqueue.CanvasID) (pages int) {
	t.Helper()
	runnable := func(store worker.Store, after eventqueue.Scope) ([]eventqueue.Event, eventqueue.Scope, error) {
		return store.Runnable(w.ctx, after, except)
	}
	var after eventqueue.Scope
	for {
		pg, pgNext, pgErr := runnable(w.store, after)
		mem, memNext, memErr := runnable(w.mem, after)
		w.sameErrors(t, pgErr, memErr, false)
		same(t, "Runnable", pg, mem)
		same(t, "Runnable: next", pgNext, memNext)
		pages++
		if after = pgNext; after == (eventqueue.Scope{}) {
			return pages
		}
	}
}
