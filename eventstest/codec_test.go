package eventstest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
	"eventsv2/eventstest"
	"eventsv2/service"
	"eventsv2/test/testenv"
	"eventsv2/valuecodec"
)

const canary = "canary-in-a-cage"

func newCodec(t *testing.T) *valuecodec.Codec {
	t.Helper()
	keys, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		t.Fatal(err)
	}
	codec, err := valuecodec.New(keys)
	if err != nil {
		t.Fatal(err)
	}
	return codec
}

// secret is a typed event.
type secret struct{ Letter string }

func (secret) EventType() string   { return "SECRET" }
func (secret) EventAction() string { return "SENT" }

// TestEncryptedValuesReachHandlersOnly: emitted in every form, retried, passed on to children, and completed in a transaction.
func TestEncryptedValuesReachHandlersOnly(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	config := service.Config{DatabaseURL: testenv.DatabaseURL(t), Codec: newCodec(t)}
	var failures []worker.FailedRun
	config.Worker.OnError = func(_ context.Context, f worker.FailedRun) { failures = append(failures, f) }
	inMiddleware := 0
	config.Worker.Middleware = []func(eventqueue.Handler) eventqueue.Handler{func(next eventqueue.Handler) eventqueue.Handler {
		return eventqueue.HandlerFunc(func(ctx context.Context, run *eventqueue.Run) error {
			if strings.Contains(string(run.Value), canary) && run.Encrypted {
				inMiddleware++
			}
			return next.Handle(ctx, run)
		})
	}}
	config.Queue.EmitMiddleware = []eventqueue.EmitMiddleware{func(ctx context.Context, events []eventqueue.NewEvent, next eventqueue.EmitFunc) ([]eventqueue.Emitted, error) {
		for _, e := range events {
			if !strings.Contains(string(e.Value), canary) {
				t.Errorf("the middleware of the program sees %s", e.Value)
			}
		}
		return next(ctx, events)
	}}
	q := eventstest.New(t, config)
	value := func(form string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"form": %q, "secret": %q}`, form, canary))
	}
	var ran []string
	register := func(name string, handle func(ctx context.Context, run *eventqueue.Run) error) {
		t.Helper()
		h := eventqueue.HandlerFunc(func(ctx context.Context, run *eventqueue.Run) error {
			ran = append(ran, name+" "+string(run.Value))
			return handle(ctx, run)
		})
		if err := q.Service.Register(eventqueue.HandlerKey{Name: name}, h, eventqueue.Policy{}); err != nil {
			t.Fatal(err)
		}
	}
	register("mail", func(ctx context.Context, run *eventqueue.Run) error {
		if run.Retries == 0 {
			return errors.New("not yet")
		}
		if err := run.SetResult(run.Value); err != nil {
			return err
		}
		return run.CompleteTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
			_, err := tx.Emit(ctx, eventqueue.NewEvent{Name: "child", Value: run.Value})
			return err
		})
	})
	register("child", func(context.Context, *eventqueue.Run) error { return nil })
	letters := 0
	if err := service.On(q.Service, "post", func(_ context.Context, e secret, _ *eventqueue.Run) error {
		if e.Letter == canary {
			letters++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}

	mail := func(form string) eventqueue.NewEvent { return eventqueue.NewEvent{Name: "mail", Value: value(form)} }
	first, one := q.Service.Emit(ctx, mail("one"))
	_, many := q.Service.EmitMany(ctx, []eventqueue.NewEvent{mail("many"), mail("more")})
	within := q.Service.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		_, err := tx.Emit(ctx, mail("within"))
		return err
	})
	own := pgx.BeginFunc(ctx, q.Service.Pool(), func(tx pgx.Tx) error {
		_, err := q.Service.EmitTx(ctx, tx, mail("own"))
		return err
	})
	_, typed := q.Service.EmitTyped(ctx, secret{canary})
	if err := errors.Join(one, many, within, own, typed); err != nil {
		t.Fatal(err)
	}
	q.RequireEmitted(mail("many")) // the test kit opens what it shows
	for range 2 {
		q.Drain()
		q.Advance(20 * time.Minute)
	}
	q.RequireDrained()

	var want []string
	for _, form := range []string{"one", "many", "more", "within", "own"} {
		v := string(value(form))
		want = append(want, "mail "+v, "mail "+v, "child "+v)
	}
	slices.Sort(ran)
	slices.Sort(want)
	if !slices.Equal(ran, want) {
		t.Errorf("ran\n%s\nwant\n%s", strings.Join(ran, "\n"), strings.Join(want, "\n"))
	}
	if letters != 1 || inMiddleware != len(want)+2 {
		t.Errorf("the typed handler has read %d letters, and the middleware %d values, want 1 and %d", letters, inMiddleware, len(want)+2)
	}
	for _, f := range failures {
		if strings.Contains(string(f.Event.Value), canary) || f.Event.Encrypted {
			t.Errorf("OnError gets the value %s", f.Event.Value)
		}
		if opened, err := config.Codec.Open(&f.Event); err != nil || !strings.Contains(string(opened), canary) {
			t.Errorf("OnError opens it as %s, %v", opened, err)
		}
	}
	requireNoCanary(t, q)
	if outcome, err := q.Service.Await(ctx, first); err != nil || string(outcome.Result) != `{"form":"one","secret":"`+canary+`"}` {
		t.Errorf("the result is %s, %v", outcome.Result, err)
	}

	ctx, run := q.Begin(mail("begun"))
	if string(run.Value) != string(value("begun")) || !run.Encrypted {
		t.Errorf("the run that a test begins has %s", run.Value)
	}
	if err := errors.Join(run.SetResult(run.Value), run.CompleteTx(ctx, func(context.Context, *eventqueue.Tx) error { return nil })); err != nil {
		t.Error(err)
	}
	requireNoCanary(t, q)
}

// requireNoCanary reads each row of each table as text.
func requireNoCanary(t *testing.T, q *eventstest.Queue) {
	t.Helper()
	ctx := testenv.Context(t)
	rows, err := q.Service.Pool().Query(ctx, `SELECT quote_ident(table_schema) || '.' || quote_ident(table_name) FROM information_schema.tables
		WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 5 {
		t.Fatal(tables, err)
	}
	for _, table := range tables {
		var found int
		if err := q.Service.Pool().QueryRow(ctx, "SELECT count(*) FROM "+table+" AS r WHERE r::text LIKE '%"+canary+"%'").Scan(&found); err != nil || found != 0 {
			t.Errorf("%d rows of %s have the canary, %v", found, table, err)
		}
	}
}

// TestRunFailsWithoutTheKeyOfItsValue, and its handler is not called.
func TestRunFailsWithoutTheKeyOfItsValue(t *testing.T) {
	t.Parallel()
	other := newCodec(t)
	var sealed []eventqueue.NewEvent
	_, err := other.Emit(t.Context(), []eventqueue.NewEvent{{Canvas: service.DefaultCanvas, Module: "WORKER", Name: "mail", Modifier: "_", Value: json.RawMessage(`"` + canary + `"`), Attributes: map[string]string{}}},
		func(_ context.Context, events []eventqueue.NewEvent) ([]eventqueue.Emitted, error) {
			sealed = events
			return nil, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		codec *valuecodec.Codec
		want  string
	}{"another key set": {newCodec(t), "which is not in the key set of this program"}, "no key set": {nil, "this worker has no key set"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := eventstest.New(t, service.Config{DatabaseURL: testenv.DatabaseURL(t), Codec: test.codec})
			calls := 0
			register(t, q, func() error { calls++; return nil })
			var id eventqueue.EventID
			if err := q.Service.Pool().QueryRow(testenv.Context(t), `SELECT events_emit($1, 'WORKER', 'mail', $2)`, service.DefaultCanvas.String(), string(sealed[0].Value)).Scan(&id); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				a := q.Work()
				key := string(sealed[0].Value[len(`{"$encrypted":{"key":`):strings.Index(string(sealed[0].Value), ",")])
				if a.Event != id || a.Err == nil || !strings.Contains(a.Err.Error(), test.want) || !strings.Contains(a.Err.Error(), "key "+key) {
					t.Errorf("run %d: %+v", i, a)
				}
				q.Advance(3 * time.Hour)
			}
			if calls != 0 {
				t.Error("the handler was called")
			}
			q.RequireState(id, eventstest.Failed)
		})
	}
}

// TestValuesAreOpenedByAServiceThatEncryptsNone, as before all workers have the key set: handler, and what it asks for its event,
// have the value.
func TestValuesAreOpenedByAServiceThatEncryptsNone(t *testing.T) {
	t.Parallel()
	codec, databaseURL := newCodec(t), testenv.DatabaseURL(t)
	encrypts := eventstest.New(t, service.Config{DatabaseURL: databaseURL, Codec: codec})
	if _, err := encrypts.Service.Emit(testenv.Context(t), eventqueue.NewEvent{Name: "mail", Value: json.RawMessage(`"` + canary + `"`)}); err != nil {
		t.Fatal(err)
	}
	config := service.Config{DatabaseURL: databaseURL}
	config.Worker.OpenValue = codec.Open
	q := eventstest.New(t, config)
	h := eventqueue.HandlerFunc(func(ctx context.Context, run *eventqueue.Run) error {
		parent := eventqueue.ParentOf(ctx)
		if string(run.Value) != `"`+canary+`"` || string(parent.Value) != string(run.Value) || !parent.Encrypted {
			t.Errorf("the run has %s, its event %s", run.Value, parent.Value)
		}
		_, err := q.Service.Emit(ctx, eventqueue.NewEvent{Name: "child", Value: json.RawMessage(`"plain"`)})
		return err
	})
	if err := q.Service.Register(eventqueue.HandlerKey{Name: "mail"}, h, eventqueue.Policy{}); err != nil {
		t.Fatal(err)
	}
	if a := q.Work(); a.Err != nil {
		t.Error(a.Err)
	}
	var stored string
	if err := q.Service.Pool().QueryRow(testenv.Context(t), `SELECT value FROM events_v2 WHERE name = 'child'`).Scan(&stored); err != nil || stored != `"plain"` {
		t.Errorf("the child has %s, %v", stored, err)
	}
}

// TestValuesFromBeforeTheCodecAreHandedOver: events wait while it is turned on.
func TestValuesFromBeforeTheCodecAreHandedOver(t *testing.T) {
	t.Parallel()
	q := eventstest.New(t, service.Config{DatabaseURL: testenv.DatabaseURL(t), Codec: newCodec(t)})
	ran := ""
	h := eventqueue.HandlerFunc(func(_ context.Context, run *eventqueue.Run) error {
		ran = fmt.Sprint(string(run.Value), run.Encrypted)
		return nil
	})
	if err := q.Service.Register(eventqueue.HandlerKey{Name: "mail"}, h, eventqueue.Policy{}); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Service.Pool().Exec(testenv.Context(t), `SELECT events_emit($1, 'WORKER', 'mail', '"plain"')`, service.DefaultCanvas.String()); err != nil {
		t.Fatal(err)
	}
	if q.RequireDrained(); ran != `"plain"false` {
		t.Errorf("ran %s", ran)
	}
}

// TestErrorsOfTypedEventsConcealEncryptedValues: what is wrong with a field may be the value itself.
func TestErrorsOfTypedEventsConcealEncryptedValues(t *testing.T) {
	t.Parallel()
	q := eventstest.New(t, service.Config{DatabaseURL: testenv.DatabaseURL(t), Codec: newCodec(t)})
	if err := service.On(q.Service, "post", func(context.Context, secret, *eventqueue.Run) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Service.Emit(testenv.Context(t), eventqueue.NewEvent{Module: "SECRET", Name: "SENT", Value: json.RawMessage(`{"Letter": 4242424242}`)}); err != nil {
		t.Fatal(err)
	}
	fitness, err := q.Service.Fitness(testenv.Context(t))
	if err != nil || len(fitness.Unfit) != 1 || !strings.Contains(fitness.Unfit[0].Problem, "the value is encrypted") {
		t.Errorf("Fitness is %+v, %v", fitness, err)
	}
	if a := q.Work(); a.Err == nil || strings.Contains(a.Err.Error(), "4242424242") || !strings.Contains(a.Err.Error(), "event SECRET.SENT") {
		t.Errorf("the error is %v", a.Err)
	}
}
