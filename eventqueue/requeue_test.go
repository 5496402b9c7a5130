package eventqueue_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

var known = eventqueue.Known{Everywhere: []eventqueue.HandlerKey{key}}

func (r *rig) requeuer() *eventqueue.Requeuer {
	r.t.Helper()
	requeuer, err := eventqueue.NewRequeuer(r.store, r.queue, time.Minute)
	if err != nil {
		r.t.Fatal(err)
	}
	return requeuer
}

func (r *rig) requeue(ids ...eventqueue.EventID) []eventqueue.Requeued {
	r.t.Helper()
	results, err := r.requeuer().Requeue(testenv.Context(r.t), ids...)
	if err != nil {
		r.t.Fatal(err)
	}
	return results
}

// claims claims events as a worker that is then never heard of again.
func (r *rig) claims(ids ...eventqueue.EventID) []eventqueue.End {
	r.t.Helper()
	found, err := r.store.Claim(testenv.Context(r.t), ids, known, time.Minute)
	if err != nil {
		r.t.Fatal(err)
	}
	var ends []eventqueue.End
	for _, f := range found {
		if f.Facts.Claimed {
			ends = append(ends, eventqueue.End{Claim: eventqueue.Claim{Event: f.Event.ID, Attempt: f.Attempt}, Label: machine.ExecutesToCompletion})
		}
	}
	return ends
}

// row is what a requeue may change of an event.
func (r *rig) row(id eventqueue.EventID) string {
	r.t.Helper()
	return one[string](r, `SELECT concat_ws(' ', CASE WHEN locked_at IS NULL THEN 'free' ELSE 'locked' END,
		CASE WHEN delay_until <= clock_timestamp() THEN 'due' ELSE 'delayed' END, 'retries', retries, 'attempts', attempts,
		CASE WHEN notified_at IS NULL THEN 'owed' ELSE 'notified' END) FROM events_v2 WHERE id = $1`, id)
}

const expireSQL = `UPDATE events_v2 SET locked_at = clock_timestamp() - interval '2 minutes' WHERE locked_at IS NOT NULL`

func TestRequeueTriesADelayedEventNow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	far := r.event(`1`)
	far.Delay = time.Hour
	id := r.emit(far)[0]
	for range 2 { // I14
		if got := r.requeue(id); got[0] != (eventqueue.Requeued{ID: id, Result: eventqueue.RequeueDone}) {
			t.Errorf("the result is %+v", got[0])
		}
		if got, want := r.row(id), "free due retries 0 attempts 0 notified"; got != want {
			t.Errorf("the event is %s, want %s", got, want)
		}
	}
	var runs atomic.Int64
	r.handle(func(context.Context, *eventqueue.Run) error { runs.Add(1); return nil }, quick())
	r.start(eventqueue.WorkerConfig{})
	r.outcomes.await(t, machine.ExecutesToCompletion, 1)
	if n := runs.Load(); n != 1 {
		t.Errorf("%d runs after two requeues, want 1", n)
	}
}

func TestRequeueRefusesALiveEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.emit(r.event(`1`))[0]
	ends := r.claims(id)
	before := one[string](r, `SELECT concat(ctid, events_v2) FROM events_v2`)
	got := r.requeue(id, id)
	if len(got) != 1 || got[0].Result != eventqueue.RequeueRunning || got[0].LockRemaining <= 0 || got[0].LockRemaining > time.Minute {
		t.Errorf("the results are %+v", got)
	}
	if after := one[string](r, `SELECT concat(ctid, events_v2) FROM events_v2`); after != before {
		t.Errorf("a refused requeue has changed the event from %s to %s", before, after)
	}
	if written, err := r.store.Finish(testenv.Context(t), nil, ends, false); err != nil || len(written.Done) != 1 {
		t.Errorf("the holder's end: %+v, %v", written, err)
	}
}

// TestRequeueFencesWhoHeldAnExpiredLock: the worker that was frozen past its lock
// can neither write nor renew, before the next claim and after it (I5).
func TestRequeueFencesWhoHeldAnExpiredLock(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	id := r.emit(r.event(`1`))[0]
	stale := r.claims(id)
	r.exec(expireSQL)
	if got := r.requeue(id); got[0] != (eventqueue.Requeued{ID: id, Result: eventqueue.RequeueDone, TakenOver: true}) {
		t.Errorf("the result is %+v", got[0])
	}
	if got, want := r.row(id), "free due retries 1 attempts 1 notified"; got != want {
		t.Errorf("the event is %s, want %s", got, want)
	}
	fenced := func() {
		t.Helper()
		if written, err := r.store.Finish(ctx, nil, stale, false); err != nil || len(written.Lost) != 1 {
			t.Errorf("a stale end: %+v, %v", written, err)
		}
		if written, err := r.store.Renew(ctx, []eventqueue.Claim{stale[0].Claim}); err != nil || len(written.Lost) != 1 {
			t.Errorf("a stale heartbeat: %+v, %v", written, err)
		}
	}
	fenced()
	if got := r.requeue(id); got[0] != (eventqueue.Requeued{ID: id, Result: eventqueue.RequeueDone}) {
		t.Errorf("the second result is %+v", got[0])
	}
	fenced()
	ends := r.claims(id)
	if len(ends) != 1 || ends[0].Attempt != 2 {
		t.Fatalf("the next claim is %+v", ends)
	}
	fenced()
	if written, err := r.store.Finish(ctx, nil, ends, false); err != nil || len(written.Done) != 1 {
		t.Errorf("the end of the next claim: %+v, %v", written, err)
	}
}

func TestRequeueRefusesWhatHasEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.emit(r.event(`1`), r.event(`2`))
	ends := r.claims(ids...)
	ends[1].Label = machine.FailedForGood
	if _, err := r.store.Finish(testenv.Context(t), nil, ends, true); err != nil {
		t.Fatal(err)
	}
	want := []eventqueue.RequeueResult{eventqueue.RequeueCompleted, eventqueue.RequeueFailed, eventqueue.RequeueUnknown}
	for i, got := range r.requeue(ids[0], ids[1], 1<<62) {
		if got.Result != want[i] {
			t.Errorf("event %s: %+v, want %s", got.ID, got, want[i])
		}
	}
	if r.waiting() != 0 || r.logged("FAILED") != 1 || r.logged("COMPLETED") != 1 {
		t.Error("a refused requeue has moved an event")
	}
}

func TestRequeueLeavesARuleInForce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	for _, rule := range []eventqueue.RuleType{eventqueue.PauseRule, eventqueue.BlockRule} {
		if _, err := r.rules().Add(ctx, rule, scope); err != nil {
			t.Fatal(err)
		}
	}
	id := r.emit(r.event(`1`))[0]
	if got := r.requeue(id); got[0] != (eventqueue.Requeued{ID: id, Result: eventqueue.RequeueDone, Rule: eventqueue.BlockRule}) {
		t.Errorf("the result is %+v", got[0])
	}
	if ends := r.claims(id); len(ends) != 0 {
		t.Error("a blocked event was claimed")
	}
}

// TestRequeueWaitsForNobody: a row that somebody is writing is left, and the others
// are requeued.
func TestRequeueWaitsForNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	ids := r.emit(r.event(`1`), r.event(`2`))
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(ctx, `SELECT FROM events_v2 WHERE id = $1 FOR UPDATE`, ids[0]); err != nil {
		t.Fatal(err)
	}
	got := r.requeue(ids...)
	if got[0].Result != eventqueue.RequeueBusy || got[1].Result != eventqueue.RequeueDone {
		t.Errorf("the results are %+v", got)
	}
}

// TestRequeueRacesClaims has events in every state claimed and requeued by many at
// once. The locks that are taken outlast the test, so each event has one holder
// and no more, whose token is good.
func TestRequeueRacesClaims(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	const total = 600
	events := make([]eventqueue.NewEvent, total)
	for i := range events {
		events[i] = r.event(fmt.Sprint(i))
	}
	ids := r.emit(events...)
	r.claims(ids[:total/3]...)
	r.exec(expireSQL)
	r.exec(`UPDATE events_v2 SET delay_until = clock_timestamp() + interval '1 hour' WHERE id > $1`, ids[2*total/3])
	r.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'attempts went down'; END $$`)
	r.exec(`CREATE TRIGGER refuse BEFORE UPDATE ON events_v2 FOR EACH ROW WHEN (NEW.attempts < OLD.attempts) EXECUTE FUNCTION refuse()`)
	var (
		group   sync.WaitGroup
		mu      sync.Mutex
		holders []eventqueue.End
		held    atomic.Int64
	)
	for start := range 4 {
		mine := append(append([]eventqueue.EventID(nil), ids[start*total/4:]...), ids[:start*total/4]...)
		group.Go(func() {
			for rest := mine; held.Load() < total; rest = rest[50:] {
				if len(rest) < 50 {
					rest = mine
				}
				found, err := r.store.Claim(ctx, rest[:50], known, time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				for _, f := range found {
					if f.Facts.Claimed {
						mu.Lock()
						holders = append(holders, eventqueue.End{Claim: eventqueue.Claim{Event: f.Event.ID, Attempt: f.Attempt}, Label: machine.ExecutesToCompletion})
						mu.Unlock()
						held.Add(1)
					}
				}
			}
		})
		requeuer, err := eventqueue.NewRequeuer(r.store, r.queue, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			for rest := mine; held.Load() < total; rest = rest[40:] {
				if len(rest) < 40 {
					rest = mine
				}
				if _, err := requeuer.Requeue(ctx, rest[:40]...); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	for _, got := range r.requeue(ids...) {
		if got.Result != eventqueue.RequeueRunning {
			t.Errorf("an event that is held was requeued: %+v", got)
		}
	}
	if len(holders) != total {
		t.Errorf("%d events have had %d holders", total, len(holders))
	}
	written, err := r.store.Finish(ctx, nil, holders, true)
	if err != nil || len(written.Done) != total {
		t.Errorf("%d of %d holders could end their events, %v", len(written.Done), total, err)
	}
}

// TestRequeueRacesEnds requeues events while they end: none comes back.
func TestRequeueRacesEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	events := make([]eventqueue.NewEvent, 400)
	for i := range events {
		events[i] = r.event(`1`)
	}
	ids := r.emit(events...)
	ends := r.claims(ids...)
	var group sync.WaitGroup
	var ended atomic.Bool
	group.Go(func() {
		defer ended.Store(true)
		for rest := ends; len(rest) > 0; rest = rest[min(len(rest), 20):] {
			batch := rest[:min(len(rest), 20)]
			for done := 0; done < len(batch); { // a row that somebody writes is left for another try
				written, err := r.store.Finish(ctx, nil, batch, true)
				if err != nil || len(written.Lost)+len(written.Done) == 0 && ctx.Err() != nil {
					t.Errorf("end: %+v, %v", written, err)
					return
				}
				done += len(written.Done)
			}
		}
	})
	for !ended.Load() {
		for _, got := range r.requeue(ids...) {
			switch got.Result {
			case eventqueue.RequeueRunning, eventqueue.RequeueBusy, eventqueue.RequeueCompleted:
			case eventqueue.RequeueDone, eventqueue.RequeueFailed, eventqueue.RequeueUnknown:
				t.Fatalf("while it ends: %+v", got)
			}
		}
	}
	group.Wait()
	for _, got := range r.requeue(ids...) {
		if got.Result != eventqueue.RequeueCompleted {
			t.Errorf("after its end: %+v", got)
		}
	}
}

func TestRequeueRefusesBadInput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, ids := range [][]eventqueue.EventID{nil, make([]eventqueue.EventID, eventqueue.MaxRequeueEvents+1)} {
		if _, err := r.requeuer().Requeue(testenv.Context(t), ids...); err == nil {
			t.Errorf("%d ids were accepted", len(ids))
		}
	}
	if _, err := eventqueue.NewRequeuer(nil, r.queue, time.Minute); err == nil {
		t.Error("a requeuer without a store was made")
	}
	if _, err := eventqueue.NewRequeuer(r.store, nil, time.Minute); err == nil {
		t.Error("a requeuer without a queue was made")
	}
	if _, err := eventqueue.NewRequeuer(pgstore.New(r.pool), r.queue, 0); err == nil {
		t.Error("a requeuer without a lock timeout was made")
	}
}
