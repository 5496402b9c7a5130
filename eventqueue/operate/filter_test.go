package operate_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// TestFilterSelectsByAllOfItsFields, and events of no other canvas (I16).
func TestFilterSelectsByAllOfItsFields(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	plain, other, tagged, failing, old := r.Event(`1`), r.Event(`2`), r.Event(`3`), r.Event(`4`), r.Event(`5`)
	other.Canvas = eventqueue.CanvasID{0xee, 15: 2}
	tagged.Attributes = map[string]string{"source": "import", "user": "7"}
	failing.Name = "failing"
	old.Modifier = "old"
	ids := r.Emit(plain, other, tagged, failing, old)
	r.Exec(`INSERT INTO event_attempts (event_id, attempt, canvas_id, started_at, duration, error)
		SELECT id, n, canvas_id, now(), '1 s', CASE n WHEN 1 THEN 'timeout' ELSE 'refused: 50% off' END FROM events_v2, generate_series(1, 2) AS n WHERE id = $1`, ids[3])
	r.Exec(`UPDATE events_v2 SET enqueued_at = now() - interval '2 hours' WHERE id = $1`, ids[4])
	canvas := plain.Canvas
	for _, c := range []struct {
		filter operate.EventFilter
		want   int
	}{
		{operate.EventFilter{Canvas: &canvas}, 4},
		{operate.EventFilter{Canvas: &other.Canvas}, 1},
		{operate.EventFilter{Module: plain.Module}, 5},
		{operate.EventFilter{Name: "failing"}, 1},
		{operate.EventFilter{Canvas: &other.Canvas, Name: "failing"}, 0},
		{operate.EventFilter{Modifier: "old"}, 1},
		{operate.EventFilter{Attributes: map[string]string{"source": "import"}}, 1},
		{operate.EventFilter{Attributes: map[string]string{"source": "import", "user": "8"}}, 0},
		{operate.EventFilter{Error: "50% off"}, 1},
		{operate.EventFilter{Error: "timeout"}, 0}, // of an attempt before the last
		{operate.EventFilter{OlderThan: time.Hour}, 1},
		{operate.EventFilter{OlderThan: 3 * time.Hour}, 0},
		{operate.EventFilter{NewerThan: time.Hour}, 4},
		{operate.EventFilter{NewerThan: 3 * time.Hour, OlderThan: time.Hour}, 1},
	} {
		if n, err := size(r, operate.VerbRun, c.filter); err != nil || n != c.want {
			t.Errorf("%+v selects %d events, %v; want %d", c.filter, n, err, c.want)
		}
	}
	if n := r.Waiting(); n != 5 {
		t.Fatalf("%d events are left after the counts, want 5", n)
	}
	ends := r.Claims(ids[0])
	done, _, err := many(ctx, r, operate.Change{Verb: operate.VerbCancel, Filter: operate.EventFilter{Canvas: &canvas}})
	if err != nil || done.Changed != 3 || done.Running != 1 || len(ends) != 1 {
		t.Errorf("%+v, %v; want 3 and the running one", done, err)
	}
	if n := r.Waiting(); n != 2 {
		t.Errorf("%d events are left, want the running one and that of the other canvas", n)
	}
	if done, _, err := many(ctx, r, operate.Change{Verb: operate.VerbDelete, Filter: operate.EventFilter{Canvas: &other.Canvas}}); err != nil || done.Changed != 1 || r.Logged("CANCELLED") != 3 {
		t.Errorf("delete: %+v, %v", done, err)
	}
}

// TestEmptyFilterIsRefused before anything is read.
func TestEmptyFilterIsRefused(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Emit(r.Event(`1`))
	ctx := testenv.Context(t)
	for _, filter := range []operate.EventFilter{{}, {Attributes: map[string]string{}}, {Canvas: &eventqueue.CanvasID{}}, {OlderThan: -1}, {NewerThan: -1}, {Module: "a\x00"},
		{Module: "_", State: operate.StateFailed}, {Error: "\xff"}} {
		for _, verb := range []operate.Verb{operate.VerbCancel, operate.VerbDelete, operate.VerbEdit, operate.VerbRun} {
			change := operate.Change{Verb: verb, Filter: filter}
			if verb == operate.VerbEdit {
				change.Edit.Value = json.RawMessage(`2`)
			}
			if _, _, err := many(ctx, r, change); !errors.As(err, new(*operate.InvalidError)) {
				t.Errorf("%s %+v: %v", verb, filter, err)
			}
		}
	}
	if r.Waiting() != 1 || rig.One[string](r, `SELECT value FROM events_v2`) != "1" {
		t.Error("the event has changed")
	}
}

// TestEmptyFilterOfTheHistoryIsRefused: a state alone is empty, too.
func TestEmptyFilterOfTheHistoryIsRefused(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	fail(r, r.Emit(r.Event(`1`))...)
	ctx := testenv.Context(t)
	for _, filter := range []operate.EventFilter{{}, {State: operate.StateFailed}, {Canvas: &eventqueue.CanvasID{}}, {NewerThan: -1}, {Module: "_", State: operate.StateWaiting}} {
		for _, verb := range []operate.Verb{operate.VerbRetry, operate.VerbDeleteEnded, operate.VerbReplay} {
			if _, _, err := many(ctx, r, operate.Change{Verb: verb, Filter: filter}); !errors.As(err, new(*operate.InvalidError)) {
				t.Errorf("%s %+v: %v", verb, filter, err)
			}
		}
	}
	if r.Logged("FAILED") != 1 {
		t.Error("the event has changed")
	}
}

// TestFilterSelectsByState, of which each event has one.
func TestFilterSelectsByState(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	later, paused, blocked := r.Event(`2`), r.Event(`3`), r.Event(`4`)
	later.Delay, paused.Name, blocked.Name = time.Hour, "paused", "blocked"
	ids := r.Emit(r.Event(`1`), later, paused, blocked, r.InOrder("order", `5`), r.InOrder("order", `6`), r.Event(`7`), r.Event(`8`))
	if _, err := r.Store.Advance(ctx, nil, ids[4:6]); err != nil {
		t.Fatal(err)
	}
	r.Claims(ids[4])
	r.Claims(ids[6])
	r.Exec(expireSQL+` AND id = $1`, ids[6])
	r.Claims(ids[7])
	for t, name := range map[operate.RuleType]string{operate.PauseRule: "paused", operate.BlockRule: "blocked"} {
		scope := rig.Scope
		scope.Name = name
		if _, err := r.Rules().Add(ctx, t, scope); err != nil {
			r.T.Fatal(err)
		}
	}
	for state, want := range map[operate.EventState]int{operate.StateWaiting: 1, operate.StateDelayed: 1, operate.StatePaused: 1, operate.StateBlocked: 1,
		operate.StateBehind: 1, operate.StateExpired: 1, operate.StateRunning: 2} {
		if n, err := size(r, operate.VerbRun, operate.EventFilter{State: state}); err != nil || n != want {
			t.Errorf("%d events are %s, %v; want %d", n, state, err, want)
		}
	}
	if done, _, err := many(ctx, r, operate.Change{Verb: operate.VerbCancel, Filter: operate.EventFilter{State: operate.StatePaused}}); err != nil || done.Changed != 1 || r.Logged("CANCELLED") != 1 {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestFilterOfTheHistorySelectsEndedEvents selects what failed, and what was cancelled only when it is asked for.
func TestFilterOfTheHistorySelectsEndedEvents(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	tagged := r.Event(`2`)
	tagged.Attributes = map[string]string{"source": "import"}
	ids := r.Emit(r.Event(`1`), tagged, r.Event(`3`), r.Event(`4`))
	fail(r, ids[0], ids[1], ids[2], ids[3])
	r.Exec(`UPDATE event_log SET created_at = now() - interval '2 hours' WHERE id = $1`, ids[0])
	r.Exec(`UPDATE event_log SET last_error = 'refused: 50% off' WHERE id = $1`, ids[1])
	r.Exec(`UPDATE event_log SET status = 'CANCELLED', last_error = NULL WHERE id = $1`, ids[2])
	r.Exec(`UPDATE event_log SET status = 'COMPLETED', last_error = NULL WHERE id = $1`, ids[3])
	canvas := rig.Scope.Canvas
	for _, c := range []struct {
		filter operate.EventFilter
		want   int
	}{
		{operate.EventFilter{Canvas: &canvas}, 2},
		{operate.EventFilter{Canvas: &canvas, State: operate.StateCancelled}, 1},
		{operate.EventFilter{Canvas: &eventqueue.CanvasID{0xee}}, 0},
		{operate.EventFilter{OlderThan: time.Hour}, 1},
		{operate.EventFilter{NewerThan: time.Hour}, 1},
		{operate.EventFilter{Error: "50% off"}, 1},
		{operate.EventFilter{Attributes: map[string]string{"source": "import"}}, 1},
		{operate.EventFilter{Name: "other"}, 0},
	} {
		if n, err := size(r, operate.VerbRetry, c.filter); err != nil || n != c.want {
			t.Errorf("%+v selects %d events, %v; want %d", c.filter, n, err, c.want)
		}
	}
	for _, want := range []int{1, 0} { // I14
		done, _, err := many(ctx, r, operate.Change{Verb: operate.VerbRetry, Filter: operate.EventFilter{Error: "50% off"}, Edit: operate.Edit{Value: json.RawMessage(`"again"`)}})
		if err != nil || done.Changed != want {
			t.Errorf("retry: %+v, %v; want %d", done, err, want)
		}
		if got := rig.One[string](r, `SELECT string_agg(id || value, ' ') FROM events_v2`); got != ids[1].String()+`"again"` {
			t.Errorf("the queue has %s", got)
		}
		if done, _, err := many(ctx, r, operate.Change{Verb: operate.VerbDeleteEnded, Filter: operate.EventFilter{Module: tagged.Module}}); err != nil || done.Changed != want {
			t.Errorf("delete: %+v, %v; want %d", done, err, want)
		}
	}
	if r.Logged("FAILED") != 0 || r.Logged("CANCELLED") != 1 || r.Logged("COMPLETED") != 1 {
		t.Error("the history lacks an event that was not selected")
	}
}

// TestFilteredEventsAreEditedAndRequeued: what is selected is changed, what runs is left, and who is due is
// notified.
func TestFilteredEventsAreEditedAndRequeued(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	later := r.Copies(600)
	for i := range later {
		later[i].Delay = time.Hour
	}
	ids := r.Emit(append(later, r.Event(`"runs"`))...)
	r.Claims(ids[600])
	filter := operate.EventFilter{Module: rig.Scope.Module}
	edit := operate.Edit{Value: json.RawMessage(`"new"`), Attributes: map[string]string{"by": "hand"}}
	if done, _, err := many(ctx, r, operate.Change{Verb: operate.VerbEdit, Filter: filter, Edit: edit}); err != nil || done.Changed != 600 || done.Running != 1 {
		t.Errorf("edit: %+v, %v", done, err)
	}
	const countSQL = `SELECT count(*) FROM events_v2 WHERE value = '"new"' AND attributes = '{"by": "hand"}' AND (delay_until <= clock_timestamp()) = $1`
	if n := rig.One[int](r, countSQL, false); n != 600 {
		t.Errorf("%d events are edited, want 600", n)
	}
	before := r.Notifier.Stats().Published
	if done, _, err := many(ctx, r, operate.Change{Verb: operate.VerbRun, Filter: operate.EventFilter{State: operate.StateDelayed}}); err != nil || done.Changed != 600 || done.Running != 0 {
		t.Errorf("requeue: %+v, %v", done, err)
	}
	if n, published := rig.One[int](r, countSQL, true), r.Notifier.Stats().Published-before; n != 600 || published != 600 {
		t.Errorf("%d events are due and %d notifications were published, want 600", n, published)
	}
	if done, _, err := many(ctx, r, operate.Change{Verb: operate.VerbRun, Filter: filter}); err != nil || done.Changed != 600 || done.Running != 1 { // I14
		t.Errorf("requeue: %+v, %v", done, err)
	}
}

// TestFilterSelectsAllPages: of more events than a statement reads or changes.
func TestFilterSelectsAllPages(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value) SELECT $1, 'WORKER', CASE WHEN n % 3 = 0 THEN 'other' ELSE 'greet' END, '_', n::text
		FROM generate_series(1, 12000) AS n`, [16]byte(rig.Scope.Canvas))
	filter := operate.EventFilter{Name: "greet"}
	ctx := testenv.Context(t)
	if n, err := size(r, operate.VerbRun, filter); err != nil || n != 8000 {
		t.Errorf("%d events, %v; want 8000", n, err)
	}
	for _, want := range []int{8000, 0} { // I14
		if done, _, err := many(ctx, r, operate.Change{Verb: operate.VerbCancel, Filter: filter}); err != nil || done.Changed != want || done.Running+done.Busy+done.Refused != 0 {
			t.Errorf("%+v, %v; want %d", done, err, want)
		}
	}
	if r.Waiting() != 4000 || r.Logged("CANCELLED") != 8000 {
		t.Errorf("%d events are left and %d cancelled", r.Waiting(), r.Logged("CANCELLED"))
	}
}

// TestInterruptCompletesThePiece: what has begun when the caller gives up is done, counted, and not done again by whoever
// goes on.
func TestInterruptCompletesThePiece(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Emit(r.Copies(1000)...)
	ctx, cancel := context.WithCancel(testenv.Context(t))
	defer cancel()
	o, err := operate.NewOperations(&interrupted{Store: r.Store, cancel: cancel}, r.Queue, nil)
	if err != nil {
		t.Fatal(err)
	}
	op, err := o.Count(ctx, ada, adasKey, operate.Change{Verb: operate.VerbCancel, Filter: operate.EventFilter{Module: rig.Scope.Module}})
	if err == nil {
		op, err = o.Confirm(ctx, ada, adasKey, op.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	ignore := func(operate.Operation) {}
	if _, err := o.Await(ctx, op.ID, ignore, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("await: %v", err)
	}
	if op, err = o.Get(testenv.Context(t), op.ID); err != nil || op.Changed != operate.MaxChangeEvents || r.Logged("CANCELLED") != op.Changed {
		t.Errorf("%+v, %v; %d are cancelled", op, err, r.Logged("CANCELLED"))
	}
	if op, err = o.Await(testenv.Context(t), op.ID, ignore, nil); err != nil || op.State != operate.OperationDone || op.Changed != 1000 {
		t.Errorf("%+v, %v", op, err)
	}
}

// interrupted is a store whose caller gives up during the first removal.
type interrupted struct {
	operate.Store
	cancel context.CancelFunc
}

func (s *interrupted) Operating(by audit.Actor) operate.Store {
	return &interrupted{s.Store.Operating(by), s.cancel}
}

func (s *interrupted) Remove(ctx context.Context, ids []eventqueue.EventID, cancellation *operate.Cancellation) ([]operate.Changed, []eventqueue.Event, error) {
	s.cancel()
	return s.Store.Remove(ctx, ids, cancellation)
}
