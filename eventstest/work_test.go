package eventstest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/eventstest"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

func TestWorkRunsOneEvent(t *testing.T) {
	t.Parallel()
	var ran []eventqueue.EventID
	q := newQueue(t, "mail", eventqueue.Policy{}, func(_ context.Context, _ *eventstest.Queue, run *eventqueue.Run) error {
		ran = append(ran, run.ID)
		return nil
	})
	later := emit(t, q, eventqueue.NewEvent{Name: "mail", Delay: time.Minute})
	first, second := emit(t, q, eventqueue.NewEvent{Name: "mail"}), emit(t, q, eventqueue.NewEvent{Name: "mail"})
	if a := q.Work(); a.Event != first || a.Err != nil || a.Label != machine.ExecutesToCompletion {
		t.Errorf("the attempt is %+v", a)
	}
	if len(ran) != 1 {
		t.Fatalf("%v have run", ran)
	}
	q.RequireState(first, eventstest.Completed)
	q.RequireState(second, eventstest.Waiting)
	q.Work()
	q.RequireState(later, eventstest.Delayed)
	q.Advance(time.Minute)
	q.RequireState(later, eventstest.Waiting)
	if a := q.Work(); a.Event != later {
		t.Errorf("the last attempt is %+v", a)
	}
	if len(ran) != 3 || ran[1] != second {
		t.Errorf("%v have run", ran)
	}
}

// A handler that fails is run again after its waits, which take no time, and no more often than its policy has it.
func TestRetriesComeDueByAdvance(t *testing.T) {
	t.Parallel()
	q := newQueue(t, "mail", eventqueue.Policy{}, returns(errDown))
	begun := q.Now()
	id := emit(t, q, eventqueue.NewEvent{Name: "mail"})
	for n := 1; n <= 3; n++ {
		if all := q.Drain(); len(all) != 1 || !errors.Is(all[0].Err, errDown) {
			t.Fatalf("attempt %d: %+v", n, all)
		}
		q.RequireAttempts(id, n)
		if all := q.Drain(); len(all) != 0 {
			t.Fatalf("without Advance it has run again: %+v", all)
		}
		q.Advance(time.Hour)
	}
	q.RequireError(id, "mail server")
	q.RequireState(id, eventstest.Failed)
	if got := q.Attempts(id)[2].Label; got != machine.RetryTooMany {
		t.Errorf("the last attempt ended with %s", got)
	}
	if passed := q.Now().Sub(begun); passed.Round(time.Second) != 3*time.Hour {
		t.Errorf("%s have passed", passed)
	}
}

func TestDrainRunsWhatHandlersEmit(t *testing.T) {
	t.Parallel()
	q := newQueue(t, "count", eventqueue.Policy{}, func(ctx context.Context, q *eventstest.Queue, run *eventqueue.Run) error {
		if string(run.Value) == `3` {
			return nil
		}
		_, err := q.Service.Emit(ctx, eventqueue.NewEvent{Name: "count", Value: []byte{run.Value[0] + 1}})
		return err
	})
	id := emit(t, q, eventqueue.NewEvent{Name: "count"})
	emit(t, q, eventqueue.NewEvent{Name: "other"}) // has no handler, and stays
	if all := q.Drain(); len(all) != 3 || all[0].Event != id {
		t.Errorf("%+v", all)
	}
	child := q.RequireEmitted(eventqueue.NewEvent{Name: "count", ParentID: id})
	if string(child.Value) != `2` || !child.Ended {
		t.Errorf("the child is %v", child)
	}
	q.RequireState(q.RequireEmitted(eventqueue.NewEvent{Name: "other"}).ID, eventstest.Waiting)
}

// What the relay finds in production is found: events of plain SQL, and those behind others of an ordering key.
func TestDrainFindsWhatTheRelayFinds(t *testing.T) {
	t.Parallel()
	q := newQueue(t, "mail", eventqueue.Policy{}, returns(nil))
	ctx := testenv.Context(t)
	if _, err := q.Service.Pool().Exec(ctx, `SELECT events_emit($1, 'WORKER', 'mail', '1')`, service.DefaultCanvas.String()); err != nil {
		t.Fatal(err)
	}
	if all := q.Drain(); len(all) != 1 {
		t.Errorf("of SQL: %+v", all)
	}
	first := emit(t, q, eventqueue.NewEvent{Name: "mail", OrderingKey: "k", Delay: time.Hour})
	q.Advance(time.Hour)
	var order []eventqueue.EventID
	second := emit(t, q, eventqueue.NewEvent{Name: "mail", OrderingKey: "k"})
	for _, a := range q.Drain() {
		order = append(order, a.Event)
	}
	if len(order) != 2 || order[0] != first || order[1] != second {
		t.Errorf("of a key %v have run, want %v", order, []eventqueue.EventID{first, second})
	}
	runCtx, run := q.Begin(eventqueue.NewEvent{Name: "mail", OrderingKey: "k", Value: []byte(`1`)})
	last := emit(t, q, eventqueue.NewEvent{Name: "mail", OrderingKey: "k"})
	if all := q.Drain(); len(all) != 0 {
		t.Errorf("behind one that runs: %+v", all)
	}
	if err := run.CompleteTx(runCtx, func(context.Context, *eventqueue.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if all := q.Drain(); len(all) != 1 || all[0].Event != last {
		t.Errorf("behind one that has completed: %+v", all)
	}
}

func TestRequireDrainedWantsNoErrors(t *testing.T) {
	t.Parallel()
	f := &failing{TB: t}
	q := newQueue(f, "mail", eventqueue.Policy{}, func(_ context.Context, _ *eventstest.Queue, run *eventqueue.Run) error {
		if string(run.Value) == `2` {
			panic("no address")
		}
		return nil
	})
	emit(t, q, eventqueue.NewEvent{Name: "mail"})
	if all := q.RequireDrained(); len(all) != 1 {
		t.Errorf("%+v", all)
	}
	emit(t, q, eventqueue.NewEvent{Name: "mail"})
	emit(t, q, eventqueue.NewEvent{Name: "mail", Value: []byte(`2`)})
	wantMessage(t, f.messageOf(func() { q.RequireDrained() }), "of 2 runs 1 have failed:", "event 3 by WORKER/mail/_: RetryAllowed: the handler panicked: no address")
}

func TestDrainOfEventsWithoutAnEndFails(t *testing.T) {
	t.Parallel()
	f := &failing{TB: t}
	q := eventstest.New(f, service.Config{DatabaseURL: testenv.DatabaseURL(t)})
	q.SetMostRuns(3)
	err := q.Service.Register(eventqueue.HandlerKey{Name: "again"}, eventqueue.HandlerFunc(func(ctx context.Context, run *eventqueue.Run) error {
		_, err := q.Service.Emit(ctx, eventqueue.NewEvent{Name: "again", Value: run.Value})
		return err
	}), eventqueue.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	emit(t, q, eventqueue.NewEvent{Name: "again"})
	wantMessage(t, f.messageOf(func() { q.Drain() }), "Drain: 3 events have run, and more are due: does WORKER/again/_ emit an event for itself, or fail without a wait?")
}

func TestRateWindowsComeDueByAdvance(t *testing.T) {
	t.Parallel()
	q := newQueue(t, "mail", eventqueue.Policy{}, returns(nil))
	limits, err := operate.NewRateLimits(q.Service.Store(), q.Service.Queue)
	if err != nil {
		t.Fatal(err)
	}
	scope := eventqueue.Scope{Canvas: service.DefaultCanvas, Module: service.DefaultModule, Name: "mail"}
	if _, err := limits.Set(testenv.Context(t), operate.RateLimit{Scope: scope, PerMinute: 2, Mode: ratelimit.Exact}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		emit(t, q, eventqueue.NewEvent{Name: "mail"})
	}
	ran := 0
	for range 10 { // minutes
		n := len(q.Drain())
		if n > 2 {
			t.Errorf("%d have run in a minute", n)
		}
		ran += n
		q.Advance(time.Minute)
	}
	if ran != 5 {
		t.Errorf("%d of 5 have run", ran)
	}
}

func TestCronSlotsComeDueByAdvance(t *testing.T) {
	t.Parallel()
	var values []string
	q := eventstest.New(t, service.Config{DatabaseURL: testenv.DatabaseURL(t)})
	err := q.Service.Register(eventqueue.HandlerKey{Module: "CRON", Name: "report"}, eventqueue.HandlerFunc(func(_ context.Context, run *eventqueue.Run) error {
		values = append(values, string(run.Value))
		return nil
	}), eventqueue.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = cronchecker.NewDefinitions(q.Service.Pool()).Add(testenv.Context(t), cronchecker.NewDefinition{Canvas: service.DefaultCanvas, Name: "report", Schedule: "every day"}, false)
	if err != nil {
		t.Fatal(err)
	}
	if all := q.Drain(); len(all) != 0 {
		t.Errorf("before its slot: %+v", all)
	}
	for range 2 {
		q.Advance(24 * time.Hour)
		if a := q.Work(); a.Handler.Name != "report" {
			t.Errorf("%+v", a)
		}
	}
	if a := q.RunCron("report"); a.Err != nil || len(values) != 3 || values[0] == values[1] {
		t.Errorf("%+v, with the values %v", a, values)
	}
	f := &failing{TB: t}
	broken := eventstest.New(f, service.Config{DatabaseURL: testenv.DatabaseURL(t)})
	wantMessage(t, f.messageOf(func() { broken.RunCron("reprot") }), `0 cron definitions have the name "reprot"; there are: none`)
}

func TestPauseWithAnEndEndsByAdvance(t *testing.T) {
	t.Parallel()
	f := &failing{TB: t}
	q := newQueue(f, "mail", eventqueue.Policy{}, returns(nil))
	rules, err := operate.NewRules(q.Service.Store(), q.Service.Queue)
	if err != nil {
		t.Fatal(err)
	}
	scope := eventqueue.Scope{Canvas: service.DefaultCanvas, Module: service.DefaultModule, Name: "mail"}
	_, err = rules.AddRule(testenv.Context(t), operate.Rule{Type: operate.PauseRule, RuleScope: operate.RuleScope{Scope: scope}, Until: q.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	id := emit(t, q, eventqueue.NewEvent{Name: "mail"})
	q.RequireState(id, eventstest.Paused)
	wantMessage(t, f.messageOf(func() { q.Work() }), "Work: nothing can run", "event 1 for WORKER/mail/_", "paused")
	q.Advance(time.Hour + time.Minute)
	if a := q.Work(); a.Event != id {
		t.Errorf("%+v", a)
	}
}
