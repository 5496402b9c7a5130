package operate_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

const expireSQL = `UPDATE events_v2 SET locked_at = clock_timestamp() - interval '2 minutes', begun = true, suspect = 1 WHERE locked_at IS NOT NULL`

func TestRequeuedDelayedEventRunsNow(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	far := r.Event(`1`)
	far.Delay = time.Hour
	id := r.Emit(far)[0]
	for range 2 { // I14
		if got := r.Requeue(id); got[0] != (operate.Changed{ID: id, Result: operate.RequeueDone}) {
			t.Errorf("the result is %+v", got[0])
		}
		if got, want := r.Row(id), "free due retries 0 attempts 0 notified"; got != want {
			t.Errorf("the event is %s, want %s", got, want)
		}
	}
	var runs atomic.Int64
	r.Handle(func(context.Context, *eventqueue.Run) error { runs.Add(1); return nil }, rig.Quick())
	r.Start(worker.Config{})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
	if n := runs.Load(); n != 1 {
		t.Errorf("%d runs after two requeues, want 1", n)
	}
}

func TestRequeueRefusesALiveEvent(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	id := r.Emit(r.Event(`1`))[0]
	ends := r.Claims(id)
	before := rig.One[string](r, `SELECT concat(ctid, events_v2) FROM events_v2`)
	got := r.Requeue(id, id)
	if len(got) != 1 || got[0].Result != operate.ChangeRunning || got[0].LockRemaining <= 0 || got[0].LockRemaining > time.Minute {
		t.Errorf("the results are %+v", got)
	}
	if after := rig.One[string](r, `SELECT concat(ctid, events_v2) FROM events_v2`); after != before {
		t.Errorf("a refused requeue has changed the event from %s to %s", before, after)
	}
	if written, err := r.Store.Complete(testenv.Context(t), nil, ends, false); err != nil || len(written.Done) != 1 {
		t.Errorf("the holder's end: %+v, %v", written, err)
	}
}

// TestRequeueFencesTheHolderOfAnExpiredLock: the worker that was frozen past its lock
// can neither write nor renew, before the next claim and after it (I5).
func TestRequeueFencesTheHolderOfAnExpiredLock(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	id := r.Emit(r.Event(`1`))[0]
	stale := r.Claims(id)
	r.Exec(expireSQL)
	if got := r.Requeue(id); got[0] != (operate.Changed{ID: id, Result: operate.RequeueDone, TakenOver: true}) {
		t.Errorf("the result is %+v", got[0])
	}
	if got, want := r.Row(id), "free due retries 1 attempts 1 notified"; got != want {
		t.Errorf("the event is %s, want %s", got, want)
	}
	fenced := func() {
		t.Helper()
		if written, err := r.Store.Complete(ctx, nil, stale, false); err != nil || len(written.Lost) != 1 {
			t.Errorf("a stale end: %+v, %v", written, err)
		}
		if written, err := r.Store.Renew(ctx, []worker.Claim{stale[0].Claim}); err != nil || len(written.Lost) != 1 {
			t.Errorf("a stale heartbeat: %+v, %v", written, err)
		}
	}
	fenced()
	if got := r.Requeue(id); got[0] != (operate.Changed{ID: id, Result: operate.RequeueDone}) {
		t.Errorf("the second result is %+v", got[0])
	}
	fenced()
	ends := r.Claims(id)
	if len(ends) != 1 || ends[0].Attempt != 2 {
		t.Fatalf("the next claim is %+v", ends)
	}
	fenced()
	if written, err := r.Store.Complete(ctx, nil, ends, false); err != nil || len(written.Done) != 1 {
		t.Errorf("the end of the next claim: %+v, %v", written, err)
	}
}

// TestRequeueChargesForRunsOnly (I18): what is cleared of a lock counts as a failed run when that is known to have begun, of
// the only suspect in its worker, and as nothing otherwise.
func TestRequeueChargesForRunsOnly(t *testing.T) {
	t.Parallel()
	for begun, want := range map[bool]string{true: "free due retries 1 attempts 1 notified", false: "free due retries 0 attempts 1 notified"} {
		r := rig.New(t)
		id := r.Emit(r.Event(`1`))[0]
		r.Claims(id)
		r.Exec(expireSQL)
		r.Exec(`UPDATE events_v2 SET begun = $1`, begun)
		if got := r.Requeue(id); got[0] != (operate.Changed{ID: id, Result: operate.RequeueDone, TakenOver: true}) {
			t.Errorf("begun = %t: the result is %+v", begun, got[0])
		}
		if got := r.Row(id); got != want {
			t.Errorf("begun = %t: the event is %s, want %s", begun, got, want)
		}
	}
}

func TestRequeueRefusesEndedEvents(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ids := r.Emit(r.Event(`1`), r.Event(`2`))
	ends := r.Claims(ids...)
	ends[1].Label = machine.FailedForGood
	if _, err := r.Store.Complete(testenv.Context(t), nil, ends, true); err != nil {
		t.Fatal(err)
	}
	want := []operate.ChangeResult{operate.ChangeCompleted, operate.ChangeFailed, operate.ChangeUnknown}
	for i, got := range r.Requeue(ids[0], ids[1], 1<<62) {
		if got.Result != want[i] {
			t.Errorf("event %s: %+v, want %s", got.ID, got, want[i])
		}
	}
	if r.Waiting() != 0 || r.Logged("FAILED") != 1 || r.Logged("COMPLETED") != 1 {
		t.Error("a refused requeue has moved an event")
	}
}

func TestRequeueLeavesARuleInForce(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	for _, rule := range []operate.RuleType{operate.PauseRule, operate.BlockRule} {
		if _, err := r.Rules().Add(ctx, rule, rig.Scope); err != nil {
			t.Fatal(err)
		}
	}
	id := r.Emit(r.Event(`1`))[0]
	if got := r.Requeue(id); got[0] != (operate.Changed{ID: id, Result: operate.RequeueDone, Rule: operate.BlockRule}) {
		t.Errorf("the result is %+v", got[0])
	}
	if ends := r.Claims(id); len(ends) != 0 {
		t.Error("a blocked event was claimed")
	}
}

// holdRow keeps the row of an event locked until the test ends.
func holdRow(r *rig.Rig, id eventqueue.EventID) {
	r.T.Helper()
	ctx := testenv.Context(r.T)
	tx, err := r.Pool.Begin(ctx)
	if err != nil {
		r.T.Fatal(err)
	}
	r.T.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	if _, err := tx.Exec(ctx, `SELECT FROM events_v2 WHERE id = $1 FOR UPDATE`, id); err != nil {
		r.T.Fatal(err)
	}
}

// TestRequeueSkipsLockedRows: locked rows are left, and the others
// are requeued.
func TestRequeueSkipsLockedRows(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ids := r.Emit(r.Event(`1`), r.Event(`2`))
	holdRow(r, ids[0])
	got := r.Requeue(ids...)
	if got[0].Result != operate.ChangeBusy || got[1].Result != operate.RequeueDone {
		t.Errorf("the results are %+v", got)
	}
}

// TestRequeueRacesClaims has events in every state claimed and requeued by many at
// once. The locks that are taken outlast the test, so each event has one holder
// and no more, whose token is good.
func TestRequeueRacesClaims(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	const total = 600
	events := make([]eventqueue.NewEvent, total)
	for i := range events {
		events[i] = r.Event(fmt.Sprint(i))
	}
	ids := r.Emit(events...)
	r.Claims(ids[:total/3]...)
	r.Exec(expireSQL)
	r.Exec(`UPDATE events_v2 SET delay_until = clock_timestamp() + interval '1 hour' WHERE id > $1`, ids[2*total/3])
	r.Exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'attempts went down'; END $$`)
	r.Exec(`CREATE TRIGGER refuse BEFORE UPDATE ON events_v2 FOR EACH ROW WHEN (NEW.attempts < OLD.attempts) EXECUTE FUNCTION refuse()`)
	var (
		group   sync.WaitGroup
		mu      sync.Mutex
		holders []worker.Completion
		held    atomic.Int64
	)
	for start := range 4 {
		mine := append(append([]eventqueue.EventID(nil), ids[start*total/4:]...), ids[:start*total/4]...)
		group.Go(func() {
			for rest := mine; held.Load() < total; rest = rest[50:] {
				if len(rest) < 50 {
					rest = mine
				}
				found, err := r.Store.Claim(ctx, rest[:50], rig.Known, 0)
				if err != nil {
					t.Error(err)
					return
				}
				for _, f := range found {
					if f.Facts.Claimed {
						mu.Lock()
						holders = append(holders, worker.Completion{Claim: worker.Claim{Event: f.Event.ID, Attempt: f.Attempt}, Label: machine.ExecutesToCompletion})
						mu.Unlock()
						held.Add(1)
					}
				}
			}
		})
		requeuer, err := operate.NewChanger(r.Store, r.Queue)
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
	for _, got := range r.Requeue(ids...) {
		if got.Result != operate.ChangeRunning {
			t.Errorf("an event that is held was requeued: %+v", got)
		}
	}
	if len(holders) != total {
		t.Errorf("%d events have had %d holders", total, len(holders))
	}
	written, err := r.Store.Complete(ctx, nil, holders, true)
	if err != nil || len(written.Done) != total {
		t.Errorf("%d of %d holders could end their events, %v", len(written.Done), total, err)
	}
}

// TestRequeueRacesEnds requeues events while they end: none comes back.
func TestRequeueRacesEnds(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	events := make([]eventqueue.NewEvent, 400)
	for i := range events {
		events[i] = r.Event(`1`)
	}
	ids := r.Emit(events...)
	ends := r.Claims(ids...)
	var group sync.WaitGroup
	var ended atomic.Bool
	group.Go(func() {
		defer ended.Store(true)
		for rest := ends; len(rest) > 0; rest = rest[min(len(rest), 20):] {
			batch := rest[:min(len(rest), 20)]
			for done := 0; done < len(batch); { // a locked row is left for another try
				written, err := r.Store.Complete(ctx, nil, batch, true)
				if err != nil || len(written.Lost)+len(written.Done) == 0 && ctx.Err() != nil {
					t.Errorf("end: %+v, %v", written, err)
					return
				}
				done += len(written.Done)
			}
		}
	})
	for !ended.Load() {
		for _, got := range r.Requeue(ids...) {
			switch got.Result {
			case operate.ChangeRunning, operate.ChangeBusy, operate.ChangeCompleted:
			default:
				t.Fatalf("while it ends: %+v", got)
			}
		}
	}
	group.Wait()
	for _, got := range r.Requeue(ids...) {
		if got.Result != operate.ChangeCompleted {
			t.Errorf("after its end: %+v", got)
		}
	}
}

func TestRequeueRefusesBadInput(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	for _, ids := range [][]eventqueue.EventID{nil, make([]eventqueue.EventID, operate.MaxRequeueEvents+1)} {
		if _, err := r.Changer().Requeue(testenv.Context(t), ids...); err == nil {
			t.Errorf("%d ids were accepted", len(ids))
		}
	}
	if _, err := operate.NewChanger(nil, r.Queue); err == nil {
		t.Error("a requeuer without a store was made")
	}
	if _, err := operate.NewChanger(r.Store, nil); err == nil {
		t.Error("a requeuer without a queue was made")
	}
}
