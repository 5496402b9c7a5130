package eventqueue_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"eventsv2/eventqueue"
	"eventsv2/internal/refusal"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// through makes the queue of a rig anew, with middleware.
func through(r *rig.Rig, middleware ...eventqueue.EmitMiddleware) *eventqueue.Queue {
	r.T.Helper()
	queue, err := eventqueue.New(r.Store, r.Notifier, eventqueue.QueueConfig{Module: "M", EmitMiddleware: middleware})
	if err != nil {
		r.T.Fatal(err)
	}
	return queue
}

// everyForm emits two events in every form there is, and returns the error of each.
func everyForm(r *rig.Rig, queue *eventqueue.Queue, events ...eventqueue.NewEvent) map[string]error {
	ctx := testenv.Context(r.T)
	errs := map[string]error{}
	_, errs["Emit"] = queue.Emit(ctx, events[0])
	_, errs["EmitMany"] = queue.EmitMany(ctx, events)
	_, errs["EmitUnique"] = queue.EmitUnique(ctx, events...)
	errs["Tx.Emit"] = queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error { _, err := tx.Emit(ctx, events...); return err })
	errs["Tx.EmitUnique"] = queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		_, err := tx.EmitUnique(ctx, events...)
		return err
	})
	errs["EmitTx"] = pgx.BeginFunc(ctx, r.Pool, func(tx pgx.Tx) error { _, err := queue.EmitTx(ctx, tx, events...); return err })
	db := stdlib.OpenDBFromPool(r.Pool)
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		r.T.Fatal(err)
	}
	if _, err = queue.EmitSQL(ctx, tx, events...); err == nil {
		err = tx.Commit()
	} else {
		_ = tx.Rollback()
	}
	errs["EmitSQL"] = err
	return errs
}

// TestEmitMiddlewareStandsAroundEveryForm of emit, the first one outermost: it sees where the events go, and changes them;
// those of the caller stay as they are.
func TestEmitMiddlewareStandsAroundEveryForm(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	var calls []string
	note := func(name string) eventqueue.EmitMiddleware {
		return func(ctx context.Context, events []eventqueue.NewEvent, next eventqueue.EmitFunc) ([]eventqueue.Emitted, error) {
			for i := range events {
				if events[i].Module != "M" {
					t.Errorf("%s sees %+v", name, events[i])
				}
				events[i].Attributes["via"] += name
				events[i].Value = json.RawMessage(`"` + name + `"`)
			}
			calls = append(calls, name+" begins")
			emitted, err := next(ctx, events)
			if len(emitted) != len(events) || emitted[0].ID == 0 || !emitted[0].New {
				t.Errorf("%s learns %+v of %d events", name, emitted, len(events))
			}
			calls = append(calls, name+" ends")
			return emitted, err
		}
	}
	queue := through(r, note("a"), note("b"))
	bare := eventqueue.NewEvent{Canvas: rig.Canvas, Name: "n", Modifier: "_", Value: json.RawMessage(`1`)}
	own := bare
	own.Attributes = map[string]string{"own": "x"}
	errs := everyForm(r, queue, own, bare)
	for form, err := range errs {
		if err != nil {
			t.Errorf("%s: %v", form, err)
		}
	}
	if want := slices.Repeat([]string{"a begins", "b begins", "b ends", "a ends"}, len(errs)); !slices.Equal(calls, want) {
		t.Errorf("the calls are %v", calls)
	}
	all := 2*len(errs) - 1 // Emit emits one
	if n := rig.One[int](r, `SELECT count(*) FROM events_v2 WHERE value = '"b"' AND attributes->>'via' = 'ab' AND module = 'M'`); n != all {
		t.Errorf("%d of %d events are as the middleware has made them", n, all)
	}
	if n := rig.One[int](r, `SELECT count(*) FROM events_v2 WHERE attributes->>'own' = 'x'`); n != len(errs) {
		t.Errorf("%d of %d events have their own attribute", n, len(errs))
	}
	if !maps.Equal(own.Attributes, map[string]string{"own": "x"}) || string(own.Value) != `1` || own.Module != "" {
		t.Errorf("the caller's event has become %+v", own)
	}
}

// TestEmitMiddlewareRefusesAnEmit: no form writes a row, and what is within the middleware is not called.
func TestEmitMiddlewareRefusesAnEmit(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	refused := errors.New("over the quota")
	refuse := func(context.Context, []eventqueue.NewEvent, eventqueue.EmitFunc) ([]eventqueue.Emitted, error) {
		return nil, refused
	}
	uncalled := func(context.Context, []eventqueue.NewEvent, eventqueue.EmitFunc) ([]eventqueue.Emitted, error) {
		t.Error("the second middleware is called")
		return nil, nil
	}
	for form, err := range everyForm(r, through(r, refuse, uncalled), r.Event(`1`), r.Event(`2`)) {
		if !errors.Is(err, refused) || !refusal.IsEmit(err) || !strings.HasSuffix(err.Error(), refused.Error()) {
			t.Errorf("%s: %v", form, err)
		}
	}
	if n := r.Waiting(); n != 0 {
		t.Errorf("%d rows were written", n)
	}
}

// TestOnlyARefusalOfTheMiddlewareIsMarked: other errors may be of the database, or of the emitter.
func TestOnlyARefusalOfTheMiddlewareIsMarked(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	later := errors.New("after the emit")
	type call = func(ctx context.Context, events []eventqueue.NewEvent, next eventqueue.EmitFunc) ([]eventqueue.Emitted, error)
	canceled, cancel := context.WithCancel(testenv.Context(t))
	cancel()
	for what, c := range map[string]struct {
		middleware call
		value      string
		ctx        context.Context
		marked     bool
	}{
		"an InvalidError": {func(context.Context, []eventqueue.NewEvent, eventqueue.EmitFunc) ([]eventqueue.Emitted, error) {
			return nil, &eventqueue.InvalidError{Index: 7, Field: "name", Problem: "is retired"}
		}, `1`, testenv.Context(t), true},
		"one of the queue": {func(ctx context.Context, events []eventqueue.NewEvent, next eventqueue.EmitFunc) ([]eventqueue.Emitted, error) {
			return next(ctx, events)
		}, `no JSON`, testenv.Context(t), false},
		"an error after the emit": {func(ctx context.Context, events []eventqueue.NewEvent, next eventqueue.EmitFunc) ([]eventqueue.Emitted, error) {
			_, err := next(ctx, events)
			return nil, errors.Join(later, err)
		}, `1`, testenv.Context(t), false},
		"the end of the emitter": {func(ctx context.Context, _ []eventqueue.NewEvent, _ eventqueue.EmitFunc) ([]eventqueue.Emitted, error) {
			return nil, ctx.Err()
		}, `1`, canceled, false},
	} {
		_, err := through(r, c.middleware).Emit(c.ctx, r.Event(c.value))
		var invalid *eventqueue.InvalidError
		if err == nil || refusal.IsEmit(err) != c.marked || errors.As(err, &invalid) != strings.Contains(err.Error(), "event ") {
			t.Errorf("%s: %v, marked %t", what, err, refusal.IsEmit(err))
		}
	}
}

// TestWrongEmitMiddlewareIsAnError that says what it did, and writes nothing.
func TestWrongEmitMiddlewareIsAnError(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	type (
		events  = []eventqueue.NewEvent
		emitted = []eventqueue.Emitted
	)
	for want, middleware := range map[string]eventqueue.EmitMiddleware{
		"has returned no error and not called next": func(context.Context, events, eventqueue.EmitFunc) (emitted, error) { return nil, nil },
		"has passed on 1 events of 2": func(ctx context.Context, e events, next eventqueue.EmitFunc) (emitted, error) {
			return next(ctx, e[:1])
		},
		"has passed on 4 events of 2": func(ctx context.Context, e events, next eventqueue.EmitFunc) (emitted, error) {
			return next(ctx, slices.Concat(e, e))
		},
		"event 1: canvas_id: is missing": func(ctx context.Context, e events, next eventqueue.EmitFunc) (emitted, error) {
			e[1].Canvas = eventqueue.CanvasID{}
			return next(ctx, e)
		},
	} {
		ofTwo := func(ctx context.Context, e events, next eventqueue.EmitFunc) (emitted, error) {
			if len(e) == 1 {
				return nil, errors.New(want)
			}
			return middleware(ctx, e, next)
		}
		for form, err := range everyForm(r, through(r, ofTwo), r.Event(`1`), r.Event(`2`)) {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got the error %v, want %q", form, err, want)
			}
		}
	}
	if n := r.Waiting(); n != 0 {
		t.Errorf("%d rows were written", n)
	}
	_, err := eventqueue.New(r.Store, r.Notifier, eventqueue.QueueConfig{EmitMiddleware: []eventqueue.EmitMiddleware{
		func(ctx context.Context, e events, next eventqueue.EmitFunc) (emitted, error) { return next(ctx, e) }, nil}})
	if err == nil || !strings.Contains(err.Error(), "EmitMiddleware[1] is nil") {
		t.Errorf("a nil entry: %v", err)
	}
}

// TestEmitMiddlewareMayTryAgain after an error, and not after it has emitted.
func TestEmitMiddlewareMayTryAgain(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	queue := through(r, func(ctx context.Context, events []eventqueue.NewEvent, next eventqueue.EmitFunc) ([]eventqueue.Emitted, error) {
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := next(canceled, events); !errors.Is(err, context.Canceled) {
			t.Errorf("the first try: %v", err)
		}
		emitted, err := next(ctx, events)
		if _, again := next(ctx, events); again == nil || !strings.Contains(again.Error(), "called next again") {
			t.Errorf("after it has emitted: %v", again)
		}
		return emitted, err
	})
	if _, err := queue.Emit(testenv.Context(t), r.Event(`1`)); err != nil {
		t.Fatal(err)
	}
	if n := r.Waiting(); n != 1 {
		t.Errorf("%d rows were written", n)
	}
}

// TestChildrenInheritFromTheContextOfTheMiddleware: what it passes on decides.
func TestChildrenInheritFromTheContextOfTheMiddleware(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	queue := through(r, func(ctx context.Context, events []eventqueue.NewEvent, next eventqueue.EmitFunc) ([]eventqueue.Emitted, error) {
		if parent := eventqueue.ParentOf(ctx); parent == nil || parent.ID != 7 {
			t.Errorf("the parent is %+v", parent)
		}
		return next(eventqueue.WithParent(ctx, &eventqueue.Event{ID: 8, Attributes: map[string]string{"a": "b"}}), events)
	})
	if _, err := queue.Emit(eventqueue.WithParent(testenv.Context(t), &eventqueue.Event{ID: 7}), r.Event(`1`)); err != nil {
		t.Fatal(err)
	}
	if got := rig.One[string](r, `SELECT parent_id || attributes::text FROM events_v2`); got != `8{"a": "b"}` {
		t.Errorf("it has inherited %s", got)
	}
}
