package service_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/typed"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

// fussy panics over some values.
type fussy struct {
	N panicky `json:"n"`
}

type panicky int

func (fussy) EventType() string   { return "FUSSY" }
func (fussy) EventAction() string { return "HELD" }

func (p *panicky) UnmarshalJSON(text []byte) error {
	if string(text) == "13" {
		panic("thirteen")
	}
	*p = 1
	return nil
}

// TestFitnessFindsUnusableEvents: a program that is about to be deployed finds the events that it would not know or could not read.
// They stay as they are, and so does the program, which can run afterwards.
func TestFitnessFindsUnusableEvents(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	config := service.Config{DatabaseURL: testenv.DatabaseURL(t), Notifier: service.Postgres}
	emitter := open(t, config)
	emit := func(module, name, modifier string, values ...string) (ids []eventqueue.EventID) {
		t.Helper()
		for _, value := range values {
			id, err := emitter.Emit(ctx, eventqueue.NewEvent{Module: module, Name: name, Modifier: modifier, Value: []byte(value)})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		return ids
	}
	emit("", "greet", "", `1`, `"any"`)
	unknown := emit("", "gone", "", `1`, `2`)
	emit("ORDER", "PLACED", "_", `{"cart":1}`)
	misfit := emit("ORDER", "PLACED", "_", `{"cart":"x"}`, `{"cart":"y"}`)
	child := emit("ORDER", "mail", "ORDER.PLACED", `{"cart":2}`, `{"cart":[]}`)[1]
	emit("FUSSY", "HELD", "_", `{"n":12}`)
	hopeless := emit("FUSSY", "HELD", "_", `{"n":13}`, `{}`)
	lacks := emit("FUSSY", "hold", "FUSSY.HELD", `{}`, `{"n":12}`)[0]

	s := open(t, config)
	ran := collect(t, s)
	if err := service.On(s, "hold", func(context.Context, fussy, *eventqueue.Run) error { return errors.New("never") }, typed.Strict()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		f, err := s.Fitness(ctx)
		if err != nil || f.Checked != 14 || f.More {
			t.Fatalf("%+v, %v", f, err)
		}
		want := []struct {
			handler string
			unknown bool
			problem string
			events  int
			first   eventqueue.EventID
		}{
			{"FUSSY/HELD/_", false, "panicked: thirteen", 1, hopeless[0]},
			{"FUSSY/HELD/_", false, `handler hold: event FUSSY.HELD as service_test.fussy: field "n" is missing`, 1, hopeless[1]},
			{"FUSSY/hold/FUSSY.HELD", false, `"n" is missing`, 1, lacks},
			{"ORDER/PLACED/_", false, "cart", 2, misfit[0]},
			{"ORDER/mail/ORDER.PLACED", false, "cart", 1, child},
			{"WORKER/gone/_", true, "", 2, unknown[0]},
		}
		if len(f.Unfit) != len(want) {
			t.Fatalf("got %+v", f.Unfit)
		}
		for i, w := range want {
			got := f.Unfit[i]
			if got.Handler.String() != w.handler || got.Unknown != w.unknown || !strings.Contains(got.Problem, w.problem) || got.Events != w.events || got.First != w.first || got.Canvas != service.DefaultCanvas {
				t.Errorf("got %+v, want %+v", got, w)
			}
		}
	}
	run(t, s)
	expect(t, ran, defaultCanvas+" WORKER/greet/_ 1", defaultCanvas+` WORKER/greet/_ "any"`, defaultCanvas+` mail {"cart":1}`, defaultCanvas+` mail {"cart":2}`)
}

// TestFitnessIsBounded: of very many reasons, some are named.
func TestFitnessIsBounded(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	pool := testenv.Pool(t)
	if _, err := pool.Exec(ctx, `INSERT INTO events_v2 (canvas_id, module, name, modifier, value)
		SELECT $1, 'WORKER', 'gone' || i % 1500, '_', '1' FROM generate_series(1, 15000) AS i`, [16]byte(service.DefaultCanvas)); err != nil {
		t.Fatal(err)
	}
	f, err := inspect.New(pool).Fitness(ctx, eventqueue.NewHandlers())
	if err != nil || f.Checked != 15000 || len(f.Unfit) != inspect.MaxUnfit || !f.More {
		t.Errorf("%d events, %d reasons, more: %t, %v", f.Checked, len(f.Unfit), f.More, err)
	}
}
