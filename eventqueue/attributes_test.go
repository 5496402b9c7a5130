package eventqueue_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/internal/trace"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

const (
	traceparent      = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	otherTraceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-1111111111111111-01"
)

// pairs returns n attributes whose keys begin with prefix.
func pairs(prefix string, n int) map[string]string {
	of := map[string]string{}
	for i := range n {
		of[fmt.Sprint(prefix, i)] = "x"
	}
	return of
}

func TestInvalidAttributesAreRefused(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	large := map[string]string{}
	for i := range 9 {
		large[fmt.Sprint("k", i)] = strings.Repeat("x", 1<<10)
	}
	for name, c := range map[string]struct {
		attributes map[string]string
		problem    string
	}{
		"17 pairs":          {pairs("k", 17), "has 17 pairs: the limit is 16"},
		"more than 8 KiB":   {large, "has 9234 bytes of keys and values: the limit is 8192"},
		"a value of 2 KiB":  {map[string]string{"k": strings.Repeat("x", 2048)}, `has 2048 bytes at "k": the limit of a value is 1024`},
		"no key":            {map[string]string{"": "x"}, "has a pair whose key is empty"},
		"a long key":        {map[string]string{strings.Repeat("k", 65): "x"}, "has a key of 65 bytes: the limit is 64"},
		"upper case":        {map[string]string{"requestID": "x"}, `has the key "requestID": a key has lower-case letters`},
		"a control key":     {map[string]string{"a\nb": "x"}, `has the key "a\nb"`},
		"a key in umlauts":  {map[string]string{"ü": "x"}, `has the key "ü"`},
		"a NUL":             {map[string]string{"k": "a\x00b"}, `has the control character U+0000 at "k"`},
		"a line break":      {map[string]string{"k": "a\r\nSet-Cookie: b"}, `has the control character U+000D at "k"`},
		"invalid UTF-8":     {map[string]string{"k": "\xff"}, `which is not valid UTF-8`},
		"the first of many": {map[string]string{"b": "\x00", "A": "x", "c": "\xff"}, `has the key "A"`},
	} {
		e := r.Event(`1`)
		e.Attributes = c.attributes
		_, err := r.Queue.EmitMany(testenv.Context(t), []eventqueue.NewEvent{r.Event(`1`), e})
		var invalid *eventqueue.InvalidError
		if !errors.As(err, &invalid) || invalid.Index != 1 || invalid.Field != "attributes" || !strings.Contains(invalid.Problem, c.problem) {
			t.Errorf("%s: %v, want attributes: %s", name, err, c.problem)
		}
	}
	e := r.Event(`1`)
	e.ParentID = -1
	var invalid *eventqueue.InvalidError
	if _, err := r.Queue.Emit(testenv.Context(t), e); !errors.As(err, &invalid) || invalid.Field != "parent_id" {
		t.Errorf("a negative parent: %v", err)
	}
	if n := rig.One[int](r, `SELECT count(*) FROM events_v2`); n != 0 {
		t.Errorf("%d events were written", n)
	}
}

func TestAttributesAtTheirLimitsAreAccepted(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	e := r.Event(`1`)
	e.Attributes = pairs("k", eventqueue.MaxAttributes-1)
	e.Attributes[strings.Repeat("_", 64)] = strings.Repeat("ü", 1<<9)
	r.Emit(e)
	if n := rig.One[int](r, `SELECT count(*) FROM events_v2, jsonb_object_keys(attributes)`); n != eventqueue.MaxAttributes {
		t.Errorf("%d pairs were stored", n)
	}
}

// TestEveryFormOfEmitInherits: the children of an event have its id and its attributes, and
// what they set themselves counts.
func TestEveryFormOfEmitInherits(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	parent := &eventqueue.Event{ID: 77, Attributes: map[string]string{"user": "ada", "zone": "a"}}
	ctx := eventqueue.WithParent(testenv.Context(t), parent)
	child := r.Event(`1`)
	child.Attributes = map[string]string{"zone": "b"}
	for name, emit := range map[string]func(e eventqueue.NewEvent) error{
		"Emit": func(e eventqueue.NewEvent) error { _, err := r.Queue.Emit(ctx, e); return err },
		"Tx.Emit": func(e eventqueue.NewEvent) error {
			return r.Queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error { _, err := tx.Emit(ctx, e); return err })
		},
		"EmitTx": func(e eventqueue.NewEvent) error {
			tx, err := r.Pool.Begin(ctx)
			if err != nil {
				return err
			}
			_, err = r.Queue.EmitTx(ctx, tx, e)
			return errors.Join(err, tx.Commit(ctx))
		},
		"EmitSQL": func(e eventqueue.NewEvent) error {
			db := stdlib.OpenDBFromPool(r.Pool)
			defer func() { _ = db.Close() }()
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			_, err = r.Queue.EmitSQL(ctx, tx, e, r.Event(`2`))
			return errors.Join(err, tx.Commit())
		},
		"with a unique key": func(e eventqueue.NewEvent) error {
			e.UniqueKey = "once"
			_, err := r.Queue.EmitUnique(ctx, e)
			return err
		},
		"delayed": func(e eventqueue.NewEvent) error { e.Delay = 1; _, err := r.Queue.Emit(ctx, e); return err },
	} {
		if err := emit(child); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := rig.One[string](r, `SELECT concat_ws(' ', parent_id, attributes) FROM events_v2 WHERE value = '1'`); got != `77 {"user": "ada", "zone": "b"}` {
			t.Errorf("%s made a child %s", name, got)
		}
		if _, err := r.Pool.Exec(testenv.Context(t), `DELETE FROM events_v2`); err != nil {
			t.Fatal(err)
		}
	}
	if len(child.Attributes) != 1 || len(parent.Attributes) != 2 {
		t.Errorf("the maps of the caller became %q and %q", child.Attributes, parent.Attributes)
	}
	if _, err := r.Queue.Emit(eventqueue.WithParent(ctx, nil), r.Event(`3`)); err != nil {
		t.Fatal(err)
	}
	if got := rig.One[bool](r, `SELECT parent_id IS NULL AND attributes IS NULL FROM events_v2`); !got {
		t.Error("an emit without a parent has inherited")
	}
}

// TestInheritedAttributesBeyondTheLimitAreRefused: a child that has too many attributes together with its parent's is
// refused, and the error names the parent. The trace context alone refuses nothing.
func TestInheritedAttributesBeyondTheLimitAreRefused(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := eventqueue.WithParent(testenv.Context(t), &eventqueue.Event{ID: 77, Attributes: pairs("inherited", 16)})
	child := r.Event(`1`)
	child.Attributes = map[string]string{"own": "x"}
	_, err := r.Queue.Emit(ctx, child)
	want := "event 0: attributes: with those that it inherits from event 77 it has 17 pairs: the limit is 16; leave some out, or emit with WithParent(ctx, nil), which inherits nothing"
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	child.Attributes = map[string]string{"inherited3": "own"}
	if _, err := r.Queue.Emit(trace.With(ctx, traceparent), child); err != nil {
		t.Fatalf("a child that replaces what it inherits: %v", err)
	}
	if _, err := r.Queue.Emit(trace.With(ctx, traceparent), r.Event(`1`)); err != nil {
		t.Fatalf("a child without attributes of its own: %v", err)
	}
	if n := rig.One[int](r, `SELECT count(*) FROM events_v2 WHERE parent_id = 77 AND attributes ? 'inherited15' AND NOT attributes ? 'traceparent'`); n != 2 {
		t.Errorf("%d of 2 children are as they should be", n)
	}
}

// TestTraceIsAnAttribute: that of the context, unless the event has one of its own.
func TestTraceIsAnAttribute(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := trace.With(testenv.Context(t), traceparent)
	own := r.Event(`2`)
	own.Attributes = map[string]string{"traceparent": otherTraceparent}
	inherits := eventqueue.WithParent(ctx, &eventqueue.Event{ID: 77, Attributes: map[string]string{"traceparent": otherTraceparent}})
	for _, c := range []struct {
		ctx   context.Context
		event eventqueue.NewEvent
		want  string
	}{{ctx, r.Event(`1`), traceparent}, {ctx, own, otherTraceparent}, {inherits, r.Event(`3`), traceparent}} {
		id, err := r.Queue.Emit(c.ctx, c.event)
		if err != nil {
			t.Fatal(err)
		}
		if got := rig.One[string](r, `SELECT attributes ->> 'traceparent' FROM events_v2 WHERE id = $1`, id); got != c.want {
			t.Errorf("event %s has the trace context %s, want %s", c.event.Value, got, c.want)
		}
	}
}

// TestHandlerReadsAndInheritsAttributes also when its notification, with the trace context in
// it, was lost, and after a retry.
func TestHandlerReadsAndInheritsAttributes(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	type seen struct {
		run   eventqueue.Run
		trace string
	}
	runs := make(chan seen, 10)
	r.Handle(func(ctx context.Context, run *eventqueue.Run) error {
		runs <- seen{*run, trace.Parent(ctx)}
		switch {
		case string(run.Value) != `1`:
			return nil
		case run.Retries == 0:
			return errors.New("again")
		default:
			child := r.Event(`2`)
			child.Attributes = map[string]string{"step": "2"}
			return run.CompleteTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error { _, err := tx.Emit(ctx, child); return err })
		}
	}, rig.Quick())
	e := r.Event(`1`)
	e.Attributes = map[string]string{"user": "ada"}
	id, err := r.Queue.Emit(trace.With(testenv.Context(t), traceparent), e)
	if err != nil {
		t.Fatal(err)
	}
	deliveries, err := r.Notifier.Pull(testenv.Context(t), 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Notifier.Ack(testenv.Context(t), deliveries); err != nil {
		t.Fatal(err)
	}
	r.Queue.Notify(testenv.Context(t), []eventqueue.Notification{{Event: id, Canvas: rig.Canvas}}) // as the relay does
	r.Start(worker.Config{})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 2)
	want := map[string]string{"user": "ada", "traceparent": traceparent}
	for i := range 3 {
		got := <-runs
		parent := eventqueue.EventID(0)
		if i == 2 {
			parent, want["step"] = id, "2"
		}
		if got.trace != traceparent || got.run.ParentID != parent || !maps.Equal(got.run.Attributes, want) {
			t.Errorf("run %d of event %s has the trace %q, the parent %s and %q", i, got.run.ID, got.trace, got.run.ParentID, got.run.Attributes)
		}
	}
}
