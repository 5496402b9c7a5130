package pgstore_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// registration registers a worker on one host with others.
func registration(number eventqueue.WorkerNumber) worker.Registration {
	return worker.Registration{Number: number, Host: "host", PID: 12, Version: "v1.2.3", Handlers: eventqueue.HandlerSet{
		Everywhere: handlers.Everywhere, OnCanvas: []eventqueue.CanvasHandler{{Canvas: canvas, Key: key}}}}
}

// holds opens the connection of a worker and keeps it open, again when it breaks, until stop.
// awaitConnected waits until it was opened the next time.
func (r *rig) holds(number eventqueue.WorkerNumber) (reserve worker.Reserve, awaitConnected, stop func()) {
	r.t.Helper()
	return r.holdsAs(registration(number))
}

func (r *rig) holdsAs(as worker.Registration) (reserve worker.Reserve, awaitConnected, stop func()) {
	r.t.Helper()
	reserve = r.store.Reserve(as, zap.NewNop())
	ctx, cancel := context.WithCancel(testenv.Context(r.t))
	connected := make(chan struct{})
	var holding sync.WaitGroup
	holding.Go(func() {
		for ctx.Err() == nil {
			_ = pgstore.Listen(ctx, reserve, func(bool) { // it breaks because the test wants it to
				select {
				case connected <- struct{}{}:
				case <-ctx.Done():
				}
			})
		}
	})
	awaitConnected = func() {
		r.t.Helper()
		select {
		case <-connected:
		case <-ctx.Done():
			r.t.Fatal("the worker does not connect")
		}
	}
	awaitConnected()
	return reserve, awaitConnected, func() { cancel(); holding.Wait() }
}

// workers are the workers of the database with their states, by number.
func (r *rig) workers() map[eventqueue.WorkerNumber]inspect.WorkerState {
	r.t.Helper()
	found, err := inspect.New(r.pool).Workers(testenv.Context(r.t))
	if err != nil {
		r.t.Fatal(err)
	}
	states := map[eventqueue.WorkerNumber]inspect.WorkerState{}
	for _, w := range found {
		states[w.Number] = w.State
	}
	return states
}

func (r *rig) mustBeLive(what string, number eventqueue.WorkerNumber) {
	r.t.Helper()
	if got := r.workers()[number]; got != inspect.WorkerLive {
		r.t.Fatalf("%s: worker %d is %q", what, number, got)
	}
}

// TestWorkerIsLiveWhileItIsConnected, also after its connection was cut, and when its row was
// deleted meanwhile; then it has stopped.
func TestWorkerIsLiveWhileItIsConnected(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	reserve, connected, stop := r.holds(2147483647)
	defer stop()
	other, _, stopOther := r.holds(2)
	defer other.Close()
	defer stopOther()
	const cut = `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = 1163284567 AND objid = 2147483647
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	r.mustBeLive("when it has connected", 2147483647)
	r.exec(cut)
	connected()
	r.mustBeLive("when it has connected again", 2147483647)
	r.exec(`DELETE FROM event_workers WHERE number = 2147483647`)
	r.exec(cut)
	connected()
	r.mustBeLive("when its row was deleted meanwhile", 2147483647)
	r.mustBeLive("the other of its host", 2)

	found, err := inspect.New(r.pool).Workers(testenv.Context(t))
	if err != nil || len(found) != 2 {
		t.Fatalf("%+v, %v", found, err)
	}
	for _, w := range found {
		if w.Host != "host" || w.PID != 12 || w.Version != "v1.2.3" || w.StoppedAt != nil || w.StartedAt.After(w.AsOf) ||
			len(w.Handlers.Everywhere) != 1 || w.Handlers.Everywhere[0] != key || len(w.Handlers.OnCanvas) != 1 || w.Handlers.OnCanvas[0].Canvas != canvas {
			t.Errorf("a worker is shown as %+v", w)
		}
	}
	stop()
	reserve.Close()
	if got := r.workers(); got[2147483647] != inspect.WorkerStopped || got[2] != inspect.WorkerLive {
		t.Errorf("after the stop the workers are %v", got)
	}
}

// TestWorkersThatEndedAreDeleted a day after they stopped, or were found missing; one that is
// connected is not, whatever its row says, and the last one of its handlers is a month later.
func TestWorkersThatEndedAreDeleted(t *testing.T) {
	t.Parallel()
	ctx, r := testenv.Context(t), newRig(t)
	reserve, connected, stop := r.holds(1)
	defer reserve.Close()
	defer stop()
	r.mustBeLive("when it has connected", 1)
	r.exec(`INSERT INTO event_workers (number, host, pid, version, handlers, stopped_at, missed_at)
		SELECT n, 'h', 1, 'v', '[]', clock_timestamp() - stopped::interval, clock_timestamp() - missed::interval
		FROM (VALUES (2, '25 h', NULL), (3, '23 h', NULL), (4, NULL, '25 h'), (5, NULL, '23 h'), (6, NULL, NULL)) AS v (n, stopped, missed)`)
	r.exec(`INSERT INTO event_workers (number, host, pid, version, handlers, started_at, stopped_at)
		SELECT n, 'h', 1, 'v', jsonb_build_array(jsonb_build_object('module', handlers, 'name', handlers, 'modifier', '_')), clock_timestamp() - started::interval, clock_timestamp() - stopped::interval
		FROM (VALUES (7, 'a', '40 d', '29 d'), (8, 'b', '40 d', '31 d'), (9, 'a', '41 d', '25 h')) AS v (n, handlers, started, stopped)`)
	r.exec(`UPDATE event_workers SET missed_at = clock_timestamp() - interval '31 d' WHERE number = 1`)
	deleted, err := r.store.DeleteWorkers(ctx, 24*time.Hour)
	if err != nil || deleted != 4 {
		t.Errorf("%d workers were deleted, %v; want 4", deleted, err)
	}
	got := r.workers()
	if len(got) != 5 || got[7] != inspect.WorkerStopped || got[1] != inspect.WorkerLive || got[3] != inspect.WorkerStopped || got[5] != inspect.WorkerDead || got[6] != inspect.WorkerDead {
		t.Errorf("the workers are %v", got)
	}
	if !one[bool](r, `SELECT missed_at IS NOT NULL FROM event_workers WHERE number = 6`) {
		t.Error("a worker that is gone was not recorded as missed, and would stay for ever")
	}
	r.exec(`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = 1163284567 AND objid = 1
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	connected()
	if !one[bool](r, `SELECT missed_at IS NULL FROM event_workers WHERE number = 1`) {
		t.Error("a worker that has connected again counts as missed")
	}
}

// TestUnlistableWorkerRenewsItsClaims (I4): the heartbeat does not depend on what is shown.
func TestUnlistableWorkerRenewsItsClaims(t *testing.T) {
	t.Parallel()
	ctx, r := testenv.Context(t), newRig(t)
	r.exec(`ALTER TABLE event_workers ADD CHECK (number <> 7)`)
	core, logs := observer.New(zap.WarnLevel)
	reserve := r.store.Reserve(registration(7), zap.New(core))
	defer reserve.Close()
	claim := r.claim(r.insert(event())[0])
	written, err := reserve.Renew(ctx, []worker.Claim{claim})
	if err != nil || len(written.Done) != 1 {
		t.Fatalf("%+v, %v", written, err)
	}
	if all := logs.All(); len(all) != 1 || !strings.Contains(all[0].Message, "not shown as live") {
		t.Errorf("the log has %v", all)
	}
}

// TestWorkerWithUnreadableHandlersIsListed beside the others, and other shapes than a list are refused.
func TestWorkerWithUnreadableHandlersIsListed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, list := range []string{`[1]`, `[{"module": 1}]`, `[[], {"module": "WORKER", "name": "greet", "modifier": "_"}]`} {
		r.exec(`INSERT INTO event_workers (number, host, pid, version, handlers) VALUES ($1, 'host', 1, '', $2)`, i+1, list)
	}
	found, err := inspect.New(r.pool).Workers(testenv.Context(t))
	if err != nil || len(found) != 3 || len(found[2].Handlers.Everywhere) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	for _, w := range found {
		if !w.Unreadable {
			t.Errorf("worker %d is not shown as unreadable", w.Number)
		}
	}
	if _, err := r.store.Peers(testenv.Context(t)); err != nil {
		t.Error(err)
	}
	for _, list := range []string{`{}`, `1`, `"x"`, `null`} {
		if _, err := r.pool.Exec(testenv.Context(t), `INSERT INTO event_workers (number, host, pid, version, handlers) VALUES (9, 'host', 1, '', $1)`, list); err == nil {
			t.Errorf("handlers %s are taken", list)
		}
	}
}
