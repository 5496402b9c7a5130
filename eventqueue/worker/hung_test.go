package worker_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// hanging is a queue in a bubble whose handler "hangs" ignores its context until the test ends, and
// whose handler "good" returns at once.
type hanging struct {
	*rig.Rig
	logs   *observer.ObservedLogs
	logger *zap.Logger
	good   atomic.Int32
	hung   atomic.Int32
	let    chan struct{}
}

func newHanging(r *rig.Rig) *hanging {
	h := &hanging{Rig: r, let: make(chan struct{})}
	core, logs := observer.New(zap.InfoLevel)
	h.logs, h.logger = logs, zap.New(core)
	once := 1
	policy := eventqueue.Policy{Timeout: 2 * time.Second, MaxRetries: &once}
	for name, handler := range map[string]eventqueue.HandlerFunc{
		"hangs": func(context.Context, *eventqueue.Run) error { h.hung.Add(1); hangHere(h.let); return nil },
		"waits": func(context.Context, *eventqueue.Run) error { waitHere(h.let); return nil },
		"good":  func(context.Context, *eventqueue.Run) error { h.good.Add(1); return nil },
	} {
		if err := r.Handlers.Register(eventqueue.HandlerKey{Module: "M", Name: name, Modifier: "_"}, handler, policy); err != nil {
			r.T.Fatal(err)
		}
	}
	return h
}

// hangHere is in the stack of a handler that hangs.
//
//go:noinline
func hangHere(let chan struct{}) { <-let }

// waitHere is in the stack of another one.
//
//go:noinline
func waitHere(let chan struct{}) { <-let }

func (h *hanging) emit(name string, n int) {
	h.T.Helper()
	h.Emit(slices.Repeat([]eventqueue.NewEvent{{Canvas: rig.Canvas, Module: "M", Name: name, Modifier: "_", Value: []byte(`1`)}}, n)...)
}

// start starts a worker; stop ends it, once the handlers that hang were let go.
func (h *hanging) start(config worker.Config) (w *worker.Worker, stop func()) {
	h.T.Helper()
	config.Logger, config.GracePeriod = h.logger, -1
	return h.StartWorker(h.Store, config)
}

// failed counts the events that have ended as FAILED; no other may have a row in the history.
func (h *hanging) failed() int {
	h.T.Helper()
	return rig.One[int](h.Rig, `SELECT CASE WHEN bool_and(status = 'FAILED') THEN count(*) ELSE -1 END FROM event_log`)
}

// warnings are the lines with a text.
func (h *hanging) lines(text string) (found []observer.LoggedEntry) {
	for _, entry := range h.logs.All() {
		if strings.Contains(entry.Message, text) {
			found = append(found, entry)
		}
	}
	return found
}

func TestHungHandlersDoNotKeepGoodEventsFromRunning(t *testing.T) {
	t.Parallel()
	for name, workers := range map[string]int{"one worker": 1, "two workers": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
				h := newHanging(r)
				h.emit("hangs", 2)
				var all []*worker.Worker
				var stops []func()
				for range workers {
					w, stop := h.start(worker.Config{Concurrency: 2})
					all, stops = append(all, w), append(stops, stop)
				}
				time.Sleep(time.Second)
				h.emit("good", 2)
				time.Sleep(10 * time.Second)
				if n := h.good.Load(); n != 2 {
					t.Errorf("%d of 2 good events have run within 11 s", n)
				}
				if n := len(h.lines("does not return")); n == 0 || n > workers {
					t.Errorf("%d warnings of the handler that hangs", n)
				}
				time.Sleep(20 * time.Minute)
				h.emit("good", 3)
				time.Sleep(time.Minute)
				if n := h.good.Load(); n != 5 {
					t.Errorf("%d of 5 good events have run", n)
				}
				for _, w := range all {
					if err := w.Stalled(); err != nil {
						t.Errorf("the worker has free slots, and says: %v", err)
					}
				}
				if n, m := rig.One[int](r, `SELECT count(*) FROM events_v2`), h.failed(); n != 0 || m != 2 {
					t.Errorf("%d events are left and %d have ended as FAILED, want 0 and 2", n, m)
				}
				// Two runs are allowed, and the first one, and one beside the other event, use no attempt.
				if n := h.hung.Load(); n < 6 || n > 8 {
					t.Errorf("the two hanging events were run %d times, want 6 to 8", n)
				}
				close(h.let)
				synctest.Wait()
				if n := h.failed(); n != 2 {
					t.Errorf("what the handlers returned late has changed the log: it has %d events", n)
				}
				for _, w := range all {
					if s := w.Slots(); s.Busy != 0 || s.Hung != 0 || s.Of != 2 {
						t.Errorf("when all have returned, the slots are %+v", s)
					}
				}
				for _, stop := range stops {
					stop()
				}
			})
		})
	}
}

func TestHungHandlerIsWarnedOfWithItsStackOncePerMinute(t *testing.T) {
	t.Parallel()
	rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
		h := newHanging(r)
		h.emit("hangs", 3)
		h.emit("waits", 1)
		_, stop := h.start(worker.Config{Concurrency: 5, LockTimeout: time.Hour})
		time.Sleep(4 * time.Second)
		warned := h.lines("a handler does not return")
		if len(warned) != 2 {
			t.Fatalf("%d warnings 2 s after the time-out, want one of each handler", len(warned))
		}
		for _, line := range warned {
			fields := line.ContextMap()
			stack, _ := fields["stack"].(string)
			hangs, waits := strings.Contains(stack, "hangHere"), strings.Contains(stack, "waitHere")
			if line.Level != zap.WarnLevel || hangs == waits || hangs != (fields["handler"] == "M/hangs/_") {
				t.Errorf("a warning of level %v has the fields %v", line.Level, fields)
			}
		}
		time.Sleep(3 * time.Minute)
		if n := len(h.lines("a handler does not return")); n != 8 {
			t.Errorf("%d warnings in three minutes more, want 8", n)
		}
		minute := h.lines("runs that have ended")
		if len(minute) == 0 || minute[0].ContextMap()["hung"] != int64(4) || minute[0].ContextMap()["slots"] != int64(5) {
			t.Errorf("the line of a minute is %v", minute)
		}
		close(h.let)
		synctest.Wait()
		stop()
	})
}

func TestHungHandlersBeyondTheBoundKeepTheirSlots(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config worker.Config
		fails  bool
	}{
		"the health check fails": {worker.Config{MaxHung: 1, HungLimit: 5 * time.Minute}, true},
		"none may be given up":   {worker.Config{MaxHung: -1}, true},
		"the check is off":       {worker.Config{MaxHung: 1, HungLimit: -1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
				h := newHanging(r)
				h.emit("hangs", 2)
				c.config.Concurrency, c.config.LockTimeout = 2, time.Hour
				w, stop := h.start(c.config)
				time.Sleep(20 * time.Second)
				h.emit("hangs", 1)
				time.Sleep(40 * time.Second)
				h.emit("good", 1)
				beyond := max(c.config.MaxHung, 0)
				if s := w.Slots(); s.Busy != 2 || s.Hung != 2+beyond || time.Since(s.OldestSince) < 39*time.Second {
					t.Errorf("the slots are %+v", s)
				}
				if err := w.Stalled(); err != nil && c.config.HungLimit != 0 {
					t.Errorf("before the limit: %v", err)
				}
				time.Sleep(6 * time.Minute)
				if n := h.good.Load(); n != 0 {
					t.Errorf("%d events have run though no slot was free", n)
				}
				if err := w.Stalled(); (err != nil) != c.fails {
					t.Errorf("got %v, want an error: %t", err, c.fails)
				}
				close(h.let)
				time.Sleep(time.Minute)
				if n, err := h.good.Load(), w.Stalled(); n != 1 || err != nil {
					t.Errorf("when the handlers have returned, %d good events have run, and %v", n, err)
				}
				h.let = make(chan struct{})
				h.emit("hangs", 5)
				time.Sleep(time.Second)
				if s := w.Slots(); s.Busy != 2 {
					t.Errorf("of 2 slots %d are busy", s.Busy)
				}
				close(h.let)
				time.Sleep(time.Minute)
				stop()
			})
		})
	}
}
