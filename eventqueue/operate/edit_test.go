package operate_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// edited edits an event, and requires the result.
func edited(r *rig.Rig, id eventqueue.EventID, edit operate.Edit, want operate.ChangeResult) {
	r.T.Helper()
	results, err := r.Changer().Edit(testenv.Context(r.T), edit, id)
	if err != nil || len(results) != 1 || results[0].Result != want {
		r.T.Fatalf("the results are %+v, %v; want %s", results, err, want)
	}
}

const editedSQL = `SELECT concat_ws(' ', value, attributes, CASE WHEN delay_until > now() THEN 'later' END, CASE WHEN notified_at IS NULL THEN 'pending' END) FROM events_v2`

func TestEditChangesNamedFieldsOnly(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	event := r.Event(`{"b": 1,  "a": 2}`)
	event.Attributes = map[string]string{"source": "import"}
	id := r.Emit(event)[0]
	now, hour := time.Duration(0), time.Hour
	for _, c := range []struct {
		edit operate.Edit
		want string
	}{
		{operate.Edit{Value: json.RawMessage(`{"z": 1,  "y":2}`)}, `{"z": 1,  "y":2} {"source": "import"}`},
		{operate.Edit{Attributes: map[string]string{"user": "7"}}, `{"z": 1,  "y":2} {"user": "7"}`},
		{operate.Edit{Attributes: map[string]string{}}, `{"z": 1,  "y":2}`},
		{operate.Edit{Delay: &hour}, `{"z": 1,  "y":2} later pending`},
		{operate.Edit{Value: json.RawMessage(`3`), Delay: &now}, `3`},
		{operate.Edit{DelayUntil: time.Now().Add(time.Hour)}, `3 later pending`},
		{operate.Edit{DelayUntil: time.Now().Add(-time.Hour)}, `3`},
	} {
		for range 2 { // I14
			edited(r, id, c.edit, operate.ChangeDone)
			if got := rig.One[string](r, editedSQL); got != c.want {
				t.Errorf("after %+v the event is %s, want %s", c.edit, got, c.want)
			}
		}
	}
	if ends := r.Claims(id); len(ends) != 1 || ends[0].Attempt != 1 {
		t.Errorf("the claim is %+v", ends)
	}
}

// TestRunningEventIsNotEdited: the run has the value that it began with (I8), and completes.
func TestRunningEventIsNotEdited(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	id := r.Emit(r.Event(`1`))[0]
	ends := r.Claims(id)
	edited(r, id, operate.Edit{Value: json.RawMessage(`2`)}, operate.ChangeRunning)
	if got := rig.One[string](r, `SELECT value FROM events_v2`); got != "1" {
		t.Errorf("the value is %s", got)
	}
	if written, err := r.Store.Complete(testenv.Context(t), nil, ends, false); err != nil || len(written.Done) != 1 {
		t.Errorf("the holder's end: %+v, %v", written, err)
	}
	edited(r, id, operate.Edit{Value: json.RawMessage(`2`)}, operate.ChangeUnknown)
}

// TestEditFencesTheHolderOfAnExpiredLock: it has the old value, and cannot complete the event (I5).
func TestEditFencesTheHolderOfAnExpiredLock(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	id := r.Emit(r.Event(`1`))[0]
	stale := r.Claims(id)
	r.Exec(expireSQL)
	edited(r, id, operate.Edit{Value: json.RawMessage(`2`)}, operate.ChangeDone)
	if written, err := r.Store.Complete(ctx, nil, stale, false); err != nil || len(written.Lost) != 1 {
		t.Errorf("a stale end: %+v, %v", written, err)
	}
	if written, err := r.Store.Renew(ctx, []worker.Claim{stale[0].Claim}); err != nil || len(written.Lost) != 1 {
		t.Errorf("a stale heartbeat: %+v, %v", written, err)
	}
	if got := r.Row(id); !strings.HasPrefix(got, "free due retries 1 attempts 1") {
		t.Errorf("the event is %s", got)
	}
}

func TestInvalidEditWritesNothing(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	id := r.Emit(r.Event(`1`))[0]
	before := rig.One[string](r, `SELECT concat(ctid, events_v2) FROM events_v2`)
	far, negative, now := 400*24*time.Hour, -time.Second, time.Duration(0)
	for problem, edit := range map[string]operate.Edit{
		"the edit changes nothing":     {},
		"value: ":                      {Value: json.RawMessage(`{"a":`)},
		"limit":                        {Value: json.RawMessage(`"` + strings.Repeat("x", 256<<10) + `"`)},
		"attributes":                   {Attributes: map[string]string{"BAD KEY": "1"}},
		"delay_until: a delay":         {Delay: &far},
		"is negative":                  {Delay: &negative},
		"are both set: set one of":     {Delay: &now, DelayUntil: time.Now()},
		"is more than the limit of 87": {DelayUntil: time.Now().Add(far)},
	} {
		if _, err := r.Changer().Edit(testenv.Context(t), edit, id); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%v; want %q", err, problem)
		}
	}
	if after := rig.One[string](r, `SELECT concat(ctid, events_v2) FROM events_v2`); after != before {
		t.Errorf("a refused edit has changed the event from %s to %s", before, after)
	}
}

// TestEditIsAtomicForARun: workers drain what is being edited. A run that begins after an edit
// has the new value and the new attributes, byte for byte, and one that is refused has the old ones
// (I8); no event runs twice (I4), and none is lost.
func TestEditIsAtomicForARun(t *testing.T) {
	t.Parallel()
	const workers, total = 4, 3_000
	r := rig.New(t)
	ctx := t.Context()
	events := r.Copies(total)
	for i := range events {
		events[i].Value, events[i].Attributes = json.RawMessage(`{"v":  "old"}`), map[string]string{"v": "old"}
	}
	events[total-1].Delay = time.Hour // so that one of them is certain to be edited
	ids := r.Emit(events...)
	var mu sync.Mutex
	seen := map[eventqueue.EventID][]string{}
	r.Handle(func(_ context.Context, run *eventqueue.Run) error {
		mu.Lock()
		defer mu.Unlock()
		seen[run.ID] = append(seen[run.ID], string(run.Value)+run.Attributes["v"])
		return nil
	}, rig.Quick())
	for range workers {
		r.Start(worker.Config{})
	}
	testenv.Eventually(t, "a run has begun", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(seen) > 0
	})
	now := time.Duration(0)
	edit := operate.Edit{Value: json.RawMessage(`{"v":  "new"}`), Attributes: map[string]string{"v": "new"}, Delay: &now}
	changed := map[eventqueue.EventID]bool{}
	for end := total; end > 0; end -= operate.MaxChangeEvents { // from the end that is drained last
		results, err := r.Changer().Edit(ctx, edit, ids[end-operate.MaxChangeEvents:end]...)
		if err != nil {
			t.Fatal(err)
		}
		for _, result := range results {
			changed[result.ID] = result.Result == operate.ChangeDone
		}
	}
	testenv.Eventually(t, "all events have ended", func() bool { return r.Waiting() == 0 })
	mu.Lock()
	defer mu.Unlock()
	edits := 0
	for _, id := range ids {
		want := `{"v":  "old"}old`
		if changed[id] {
			want = `{"v":  "new"}new`
			edits++
		}
		if got := seen[id]; len(got) != 1 || got[0] != want {
			t.Errorf("the runs of event %s have %q, want once %q", id, got, want)
		}
	}
	if edits == 0 || edits == total {
		t.Errorf("%d of %d events were edited before they ran: no race", edits, total)
	}
}
