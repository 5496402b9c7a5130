package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/httptarget"
	"eventsv2/test/attack/harness"
	"eventsv2/test/webtarget"
)

func TestPerform(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	for _, name := range []string{handlerPlain, handlerDelayed, handlerHeld, cronName} {
		if err := perform(ctx, name, 0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := perform(ctx, handlerFlaky, 0); !errors.Is(err, errOnPurpose) {
		t.Errorf("the first run of %s: %v", handlerFlaky, err)
	}
	if err := perform(ctx, handlerFlaky, 1); err != nil {
		t.Errorf("the second run of %s: %v", handlerFlaky, err)
	}
	cancel(eventqueue.ErrLockLost)
	if err := perform(ctx, handlerSlow, 0); !errors.Is(err, eventqueue.ErrLockLost) {
		t.Errorf("%s after its lock was lost: %v", handlerSlow, err)
	}
}

func TestEveryDrawnEventHasAHandler(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "handlers.yaml")
	if err := webtarget.WriteHandlersFile(path, "http://127.0.0.1:1", handlers()); err != nil {
		t.Fatal(err)
	}
	file, err := httptarget.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Entries) != len(handlers()) {
		t.Errorf("the file has %d handlers, want %d", len(file.Entries), len(handlers()))
	}
	known := map[eventqueue.HandlerKey]bool{}
	for _, h := range handlers() {
		known[h.Key] = true
	}
	e := newEmitters(nil, newLedger(), harness.Canvases(0, canvasCount), 100)
	drawn := map[string]int{}
	for serial := range int64(10_000) {
		event := e.draw(serial)
		drawn[event.Name]++
		if !known[event.Handler()] {
			t.Fatalf("nobody handles %s", event.Handler())
		}
		if got, err := serialOf(event.Value); err != nil || got != serial {
			t.Fatalf("the value of %d is that of %d: %v", serial, got, err)
		}
		if delayed := event.Name == handlerDelayed; delayed != (event.Delay > 0) {
			t.Fatalf("an event of %s is due in %s", event.Name, event.Delay)
		}
	}
	for _, name := range []string{handlerPlain, handlerDelayed, handlerFlaky, handlerHeld, handlerSlow} {
		if drawn[name] == 0 {
			t.Errorf("no event of %s was drawn", name)
		}
	}
}

func TestLongLivedProgramsAreFrozenAndNeverKilled(t *testing.T) {
	t.Parallel()
	frozen := map[string]bool{}
	for _, f := range rotation() {
		for _, longLived := range longLived() {
			switch {
			case !strings.HasSuffix(f.what, " "+longLived) && !strings.Contains(f.what, " "+longLived+" "):
			case strings.HasPrefix(f.what, "SIGSTOP"):
				frozen[longLived] = true
			default:
				t.Errorf("%s: a long-lived program has to live", f.what)
			}
		}
	}
	if len(frozen) != len(longLived()) {
		t.Errorf("of the long-lived programs only %v are frozen", frozen)
	}
}
