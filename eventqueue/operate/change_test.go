package operate_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/minutes"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// cancel cancels events, and requires the results.
func cancel(r *rig.Rig, ids []eventqueue.EventID, want ...operate.ChangeResult) []operate.Changed {
	r.T.Helper()
	results, err := r.Changer().Cancel(testenv.Context(r.T), operate.Cancellation{}, ids...)
	if err != nil || len(results) != len(want) {
		r.T.Fatalf("cancel: %+v, %v", results, err)
	}
	for i, result := range results {
		if result.Result != want[i] {
			r.T.Errorf("event %s: the result is %+v, want %s", result.ID, result, want[i])
		}
	}
	return results
}

func TestRunningEventIsNotChanged(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	id := r.Emit(r.Event(`1`))[0]
	ends := r.Claims(id)
	before := rig.One[string](r, `SELECT concat(ctid, events_v2) FROM events_v2`)
	if got, err := r.Changer().Delete(testenv.Context(t), id, id); err != nil || len(got) != 1 || got[0].Result != operate.ChangeRunning || got[0].LockRemaining <= 0 || got[0].LockRemaining > time.Minute {
		t.Errorf("delete: %+v, %v", got, err)
	}
	if after := rig.One[string](r, `SELECT concat(ctid, events_v2) FROM events_v2`); after != before {
		t.Errorf("a refused change has changed the event from %s to %s", before, after)
	}
	if written, err := r.Store.Complete(testenv.Context(t), nil, ends, true); err != nil || len(written.Done) != 1 {
		t.Errorf("the holder's end: %+v, %v", written, err)
	}
	cancel(r, []eventqueue.EventID{id}, operate.ChangeCompleted)
}

// TestCancelOfARunningEventIsLogged: with who has cancelled it, and why, once its worker ends it. What its run did before is not changed.
func TestCancelOfARunningEventIsLogged(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	id := r.Emit(r.Event(`1`))[0]
	ends := r.Claims(id)
	for _, why := range []operate.Cancellation{{Reason: "twice", Actor: "ada"}, {Reason: "again", Actor: "bob"}} { // I14
		if got, err := r.Changer().Cancel(ctx, why, id, id); err != nil || len(got) != 1 || got[0].Result != operate.ChangeEnding || got[0].LockRemaining <= 0 || got[0].Scope.Name == "" {
			t.Fatalf("cancel: %+v, %v", got, err)
		}
	}
	if r.Logged("CANCELLED") != 0 || r.Waiting() != 1 {
		t.Fatal("the event has ended before its run")
	}
	ends[0].Label, ends[0].LastError = machine.Cancelled, "it was told"
	if written, err := r.Store.Complete(ctx, nil, ends, true); err != nil || len(written.Done) != 1 {
		t.Fatalf("the holder's end: %+v, %v", written, err)
	}
	if got := rig.One[string](r, `SELECT concat_ws(' ', status, reason, actor, retries, attempts, value, last_error) FROM event_log`); got != "CANCELLED twice ada 0 1 1" {
		t.Errorf("event_log has %s", got)
	}
	cancel(r, []eventqueue.EventID{id}, operate.ChangeCancelled)
}

// TestCancelFencesTheHolderOfAnExpiredLock: the worker that was frozen past its lock can neither write
// nor renew, also after the event was moved back (I5).
func TestCancelFencesTheHolderOfAnExpiredLock(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	id := r.Emit(r.Event(`1`))[0]
	stale := r.Claims(id)
	r.Exec(expireSQL)
	cancel(r, []eventqueue.EventID{id}, operate.ChangeDone)
	cancel(r, []eventqueue.EventID{id}, operate.ChangeCancelled) // I14
	fenced := func() {
		t.Helper()
		if written, err := r.Store.Complete(ctx, nil, stale, true); err != nil || len(written.Lost) != 1 {
			t.Errorf("a stale end: %+v, %v", written, err)
		}
		if written, err := r.Store.Renew(ctx, []worker.Claim{stale[0].Claim}); err != nil || len(written.Lost) != 1 {
			t.Errorf("a stale heartbeat: %+v, %v", written, err)
		}
	}
	fenced()
	if r.Logged("CANCELLED") != 1 || r.Waiting() != 0 {
		t.Fatal("the event is not cancelled")
	}
	retried, err := r.Store.Retry(ctx, operate.Edit{}, []eventqueue.EventID{id})
	if err != nil || retried[0].Result != operate.RetryMoved {
		t.Fatalf("retry: %+v, %v", retried, err)
	}
	fenced()
	if ends := r.Claims(id); len(ends) != 1 || ends[0].Attempt != 2 {
		t.Errorf("the next claim is %+v", ends)
	}
}

// TestCancelAdvancesItsGroup: the next event of an ordering key runs when the one before it is gone,
// and one from the middle leaves no gap.
func TestCancelAdvancesItsGroup(t *testing.T) {
	t.Parallel()
	for _, retain := range []bool{true, false} {
		r := rig.New(t)
		ids := r.Emit(r.InOrder("order", `1`), r.InOrder("order", `2`), r.InOrder("order", `3`), r.InOrder("order", `4`))
		r.Claims(ids[1]) // has the group join
		remove := r.Changer().Delete
		if retain {
			remove = func(ctx context.Context, ids ...eventqueue.EventID) ([]operate.Changed, error) {
				return r.Changer().Cancel(ctx, operate.Cancellation{}, ids...)
			}
		}
		for _, id := range []eventqueue.EventID{ids[2], ids[0]} {
			if got, err := remove(testenv.Context(t), id); err != nil || got[0].Result != operate.ChangeDone {
				t.Fatalf("event %s: %+v, %v", id, got, err)
			}
		}
		if n := rig.One[int](r, `SELECT count(*) FROM event_groups WHERE event_id IN ($1, $2)`, ids[0], ids[2]); n != 0 {
			t.Errorf("%d places of removed events are left", n)
		}
		if got := r.Row(ids[1]); got != "free due retries 0 attempts 0 notified" {
			t.Errorf("the next event is %s", got)
		}
		ends := r.Claims(ids[1], ids[3])
		if len(ends) != 1 || ends[0].Event != ids[1] {
			t.Errorf("the claims are %+v, want that of event %s alone", ends, ids[1])
		}
	}
}

// TestCancelNotifiesTheNextEventOfItsGroup: nobody else notifies that event.
func TestCancelNotifiesTheNextEventOfItsGroup(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	inserted, err := r.Store.Insert(testenv.Context(t), nil, []eventqueue.NewEvent{r.InOrder("order", `1`), r.InOrder("order", `2`)}, eventqueue.NotifyModeLater)
	if err != nil {
		t.Fatal(err)
	}
	r.Claims(inserted[1].ID) // has the group join
	before := r.Notifier.Stats().Published
	cancel(r, []eventqueue.EventID{inserted[0].ID}, operate.ChangeDone)
	if published := r.Notifier.Stats().Published - before; published != 1 {
		t.Errorf("%d notifications were published, want that of the next event", published)
	}
}

// TestCancelReleasesAUniqueKey as a completion does: at once, or after the time for which it is
// reserved.
func TestCancelReleasesAUniqueKey(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	for reserved, wantNew := range map[time.Duration]bool{0: true, time.Hour: false} {
		event := r.Event(`1`)
		event.UniqueKey, event.UniqueFor = reserved.String(), reserved
		id := r.Emit(event)[0]
		cancel(r, []eventqueue.EventID{id}, operate.ChangeDone)
		if again := r.Emit(event)[0]; (again != id) != wantNew {
			t.Errorf("reserved for %s: event %s has the key after event %s", reserved, again, id)
		}
	}
}

// TestCancelRecordsReasonAndActor, and is counted.
func TestCancelRecordsReasonAndActor(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	ids := r.Emit(r.Copies(3)...)
	why := operate.Cancellation{Reason: "emitted twice,\nby import 7", Actor: "ada"}
	for range 2 { // I14
		if got, err := r.Changer().Cancel(ctx, why, ids[0]); err != nil || got[0].Result != operate.ChangeDone && got[0].Result != operate.ChangeCancelled {
			t.Fatalf("%+v, %v", got, err)
		}
		why.Actor = "grace"
	}
	cancel(r, ids[1:2], operate.ChangeDone)
	if got, err := r.Changer().Delete(ctx, ids[2]); err != nil || got[0].Result != operate.ChangeDone {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, want := range []string{"emitted twice,\nby import 7/ada", "-/-"} {
		if got := rig.One[string](r, `SELECT coalesce(reason, '-') || '/' || coalesce(actor, '-') FROM event_log WHERE id = $1`, ids[i]); got != want {
			t.Errorf("event %s was cancelled for %q, want %q", ids[i], got, want)
		}
	}
	if err := minutes.Of(r.Queue).HandIn(ctx); err != nil {
		t.Fatal(err)
	}
	if got := rig.One[string](r, `SELECT concat_ws(' ', sum(emitted), sum(cancelled), max(name)) FROM event_minutes`); got != "3 2 "+rig.Scope.Name {
		t.Errorf("counted are %s, want 3 emitted and 2 cancelled", got)
	}
	// Its next end is another one.
	if got, err := r.Changer().Retry(ctx, ids[0]); err != nil || got[0].Result != operate.RetryMoved {
		t.Fatalf("%+v, %v", got, err)
	}
	r.Exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at, reason, actor)
		SELECT id, canvas_id, module, name, modifier, value, 'CANCELLED', 0, 0, enqueued_at, 'old', 'old' FROM events_v2`)
	if written, err := r.Store.Complete(ctx, nil, r.Claims(ids[0]), true); err != nil || len(written.Done) != 1 {
		t.Fatalf("%+v, %v", written, err)
	}
	if n := rig.One[int](r, `SELECT count(*) FROM event_log WHERE status = 'COMPLETED' AND reason IS NULL AND actor IS NULL`); n != 1 {
		t.Error("an event that has completed has the reason of a cancel")
	}
}

// TestInvalidReasonCancelsNothing.
func TestInvalidReasonCancelsNothing(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ids := r.Emit(r.Event(`1`))
	for _, why := range []operate.Cancellation{{Reason: strings.Repeat("x", operate.MaxReasonBytes+1)}, {Actor: "a\x00"}, {Reason: "\xff"}} {
		_, oneErr := r.Changer().Cancel(testenv.Context(t), why, ids...)
		change := operate.Change{Verb: operate.VerbCancel, Filter: operate.EventFilter{Module: rig.Scope.Module}, Reason: why.Reason, Actor: why.Actor}
		if _, _, err := many(testenv.Context(t), r, change); err == nil || oneErr == nil {
			t.Errorf("%.20q was accepted: %v, %v", why, err, oneErr)
		}
	}
	if r.Waiting() != 1 {
		t.Error("the event is gone")
	}
}

// TestChangesSkipLockedRows: locked rows are left, and the others are changed.
func TestChangesSkipLockedRows(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ids := r.Emit(r.Event(`1`), r.Event(`2`))
	holdRow(r, ids[0])
	cancel(r, ids, operate.ChangeBusy, operate.ChangeDone)
}

// TestEachEventIsCancelledOrCompletes: workers drain what is being cancelled, and each event ends
// once, in one of the two ways.
func TestEachEventIsCancelledOrCompletes(t *testing.T) {
	t.Parallel()
	const workers, total = 4, 10_000
	r := rig.New(t)
	ids := r.Emit(r.Copies(total)...)
	var mu sync.Mutex
	ran := map[eventqueue.EventID]int{}
	r.Handle(func(_ context.Context, run *eventqueue.Run) error {
		mu.Lock()
		defer mu.Unlock()
		ran[run.ID]++
		return nil
	}, rig.Quick())
	for range workers {
		r.Start(worker.Config{RetainHistory: true})
	}
	cancelled := map[eventqueue.EventID]bool{}
	for end := total; end > 0; end -= operate.MaxChangeEvents { // from the end that is drained last
		results, err := r.Changer().Cancel(testenv.Context(t), operate.Cancellation{}, ids[end-operate.MaxChangeEvents:end]...)
		if err != nil {
			t.Fatal(err)
		}
		for _, result := range results {
			cancelled[result.ID] = result.Result == operate.ChangeDone
		}
	}
	testenv.Eventually(t, "all events have ended", func() bool { return r.Waiting() == 0 })
	if c, f := r.Logged("CANCELLED"), r.Logged("COMPLETED"); c+f != total || c == 0 || f == 0 {
		t.Errorf("%d events are cancelled and %d completed, want %d in all", c, f, total)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, id := range ids {
		if cancelled[id] && ran[id] != 0 || !cancelled[id] && ran[id] != 1 {
			t.Errorf("event %s: cancelled is %t, and it ran %d times", id, cancelled[id], ran[id])
		}
	}
}
