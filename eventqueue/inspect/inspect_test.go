package inspect_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/locktimeout"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

func inspectedScope() eventqueue.Scope {
	return eventqueue.Scope{Canvas: eventqueue.CanvasID{1, 15: 1}, Module: "WORKER", Name: "greet"}
}

// emit puts n events of inspectedScope into a store.
func emit(t *testing.T, store *pgstore.Store, n int) []eventqueue.EventID {
	t.Helper()
	scope := inspectedScope()
	events := make([]eventqueue.NewEvent, n)
	for i := range events {
		events[i] = eventqueue.NewEvent{Canvas: scope.Canvas, Module: scope.Module, Name: scope.Name, Modifier: "_", Value: []byte(`1`)}
	}
	inserted, err := store.Insert(testenv.Context(t), nil, events, eventqueue.NotifyModeLater)
	if err != nil {
		t.Fatal(err)
	}
	var ids []eventqueue.EventID
	for _, row := range inserted {
		ids = append(ids, row.ID)
	}
	return ids
}

// A page never shows an event twice and never leaves one out.
func TestListEventsByPages(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	want := emit(t, store, 25)
	var got []eventqueue.EventID
	after := eventqueue.EventID(0)
	for {
		page, next, err := inspect.New(store.Pool()).List(ctx, inspect.FilterOf(inspectedScope()), inspect.Waiting, false, after, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			got = append(got, e.ID)
		}
		if after = next; next == 0 {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the pages show %v, want %v", got, want)
	}
}

// The states of an event follow what happens to it.
func TestShowFollowsAnEvent(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	ids := emit(t, store, 1)
	state := func() inspect.State {
		t.Helper()
		shown, err := inspect.New(store.Pool()).Show(ctx, ids[0])
		if err != nil {
			t.Fatal(err)
		}
		if shown.Queued == nil {
			return inspect.State(shown.Logged.Status)
		}
		return shown.Queued.State
	}
	expect := func(want inspect.State) {
		t.Helper()
		if got := state(); got != want {
			t.Errorf("the state is %s, want %s", got, want)
		}
	}
	expect(inspect.Waiting)
	if _, err := store.AddRule(ctx, operate.RuleOf(operate.PauseRule, inspectedScope())); err != nil {
		t.Fatal(err)
	}
	expect(inspect.Paused)
	if _, err := store.LiftRule(ctx, operate.LiftOf(operate.PauseRule, inspectedScope())); err != nil {
		t.Fatal(err)
	}
	known := eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{{Module: "WORKER", Name: "greet", Modifier: "_"}}}
	found, err := store.Claim(ctx, ids, known, 77)
	if err != nil {
		t.Fatal(err)
	}
	expect(inspect.Running)
	if _, err := store.Pool().Exec(ctx, `UPDATE events_v2 SET locked_at = locked_at - $1::interval`, locktimeout.Default); err != nil {
		t.Fatal(err)
	}
	expect(inspect.Expired)
	shown, err := inspect.New(store.Pool()).Show(ctx, ids[0])
	if err != nil || shown.Queued == nil || shown.Queued.ClaimID != 77 || shown.Queued.Begun { // the number that its worker logs
		t.Errorf("%+v, %v", shown.Queued, err)
	}
	end := worker.Completion{Claim: worker.Claim{Event: ids[0], Attempt: found[0].Attempt, ID: 77}, Label: machine.FailedForGood, LastError: "no luck"}
	if _, err := store.Complete(ctx, nil, []worker.Completion{end}, false); err != nil {
		t.Fatal(err)
	}
	expect("FAILED")
	if shown, err = inspect.New(store.Pool()).Show(ctx, ids[0]); err != nil || shown.Logged == nil || !shown.Logged.ForGood || shown.Logged.Reason != "" {
		t.Errorf("it is shown as %+v, %v", shown.Logged, err)
	}
}

func TestHasEventsFindsQueuedAndEndedOnes(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	reader := inspect.New(store.Pool())
	has, err := reader.HasEvents(ctx, inspectedScope(), "")
	if err != nil || has {
		t.Errorf("an empty queue has events: %t, %v", has, err)
	}
	emit(t, store, 1)
	if has, err = reader.HasEvents(ctx, inspectedScope(), ""); err != nil || !has {
		t.Errorf("a queue with an event has none: %t, %v", has, err)
	}
}

// TestAttemptsAndHolders: the failed attempts of an event, the last error in a list, and the worker
// that holds it.
func TestAttemptsAndHolders(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	reader, ids := inspect.New(store.Pool()), emit(t, store, 3)
	known := eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{{Module: "WORKER", Name: "greet", Modifier: "_"}}}
	if _, err := store.Pool().Exec(ctx, `INSERT INTO event_workers (number, host, pid, version, handlers) VALUES (9, 'host', 1, 'v', '[]')`); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids[:2] {
		found, err := store.Claim(ctx, []eventqueue.EventID{id}, known, eventqueue.WorkerNumber(9).Claim(1))
		if err != nil || len(found) != 1 {
			t.Fatalf("%+v, %v", found, err)
		}
		if id == ids[0] {
			continue
		}
		end := worker.Completion{Claim: worker.Claim{Event: id, Attempt: found[0].Attempt, ID: found[0].ClaimID}, Label: machine.RetryAllowed,
			Delay: time.Hour, LastError: "no luck", Duration: time.Second}
		if _, err := store.Complete(ctx, nil, []worker.Completion{end}, false); err != nil {
			t.Fatal(err)
		}
	}
	attempts, err := reader.Attempts(ctx, ids[1])
	if err != nil || len(attempts) != 1 || attempts[0].Attempt != 1 || attempts[0].Worker != 9 || attempts[0].Error != "no luck" || attempts[0].Duration != time.Second {
		t.Errorf("the attempts are %+v, %v", attempts, err)
	}
	listed, _, err := reader.List(ctx, inspect.Filter{}, "", false, 0, 10)
	if err != nil || len(listed) != 3 || listed[0].Holder == nil || listed[0].Holder.Host != "host" || listed[1].Holder != nil || listed[2].Holder != nil ||
		listed[0].LastError != "" || listed[1].LastError != "no luck" {
		t.Errorf("the events are listed as %+v, %v", listed, err)
	}
	shown, err := reader.Show(ctx, ids[1])
	if err != nil || len(shown.Attempts) != 1 || shown.Workers[9].Host != "host" {
		t.Errorf("the event is shown as %+v, %v", shown, err)
	}
}

// TestRunsAreListed: those that failed, with the stack of a panic, and the one that has completed the event, which only
// a history that keeps completed events has.
func TestRunsAreListed(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	reader, ids := inspect.New(store.Pool()), emit(t, store, 2)
	known := eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{{Module: "WORKER", Name: "greet", Modifier: "_"}}}
	run := func(id eventqueue.EventID, retain bool, end worker.Completion) {
		t.Helper()
		found, err := store.Claim(ctx, []eventqueue.EventID{id}, known, eventqueue.WorkerNumber(9).Claim(1))
		if err != nil || len(found) != 1 {
			t.Fatalf("%+v, %v", found, err)
		}
		end.Claim = worker.Claim{Event: id, Attempt: found[0].Attempt, ID: found[0].ClaimID}
		if written, err := store.Complete(ctx, nil, []worker.Completion{end}, retain); err != nil || len(written.Done) != 1 {
			t.Fatalf("%+v, %v", written, err)
		}
	}
	for i, retain := range []bool{true, false} {
		run(ids[i], retain, worker.Completion{Label: machine.RetryAllowed, LastError: "no luck", Stack: "main.handle()", Duration: time.Second})
		exec(t, store, `UPDATE events_v2 SET delay_until = clock_timestamp()`)
		run(ids[i], retain, worker.Completion{Label: machine.ExecutesToCompletion, Duration: 2 * time.Second})
		attempts, err := reader.Attempts(ctx, ids[i])
		for k := range attempts {
			if attempts[k].StartedAt.IsZero() {
				t.Errorf("attempt %d began at no time", k)
			}
			attempts[k].StartedAt = time.Time{}
		}
		want := []inspect.Attempt{{Attempt: 1, Duration: time.Second, Worker: 9, Error: "no luck", Stack: "main.handle()"},
			{Attempt: 2, Duration: 2 * time.Second, Worker: 9, Completed: true}}
		if !retain {
			want = want[:1]
		}
		if err != nil || !slices.Equal(attempts, want) {
			t.Errorf("with a history of completed events (%t) the runs are %+v, %v, want %+v", retain, attempts, err, want)
		}
	}
}

// TestRulesOfAnyYearAreListed (I15): SQL can write times that Go cannot read, or JSON does not have.
func TestRulesOfAnyYearAreListed(t *testing.T) {
	t.Parallel()
	store := pgstore.New(testenv.Pool(t))
	scope := inspectedScope()
	exec(t, store, `ALTER TABLE scheduling_rules DROP CONSTRAINT scheduling_rules_readable`)
	for i, bad := range []string{"infinity", "-infinity", "200000-01-01", "4000-01-01 BC"} {
		exec(t, store, `INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name, created_at, until, rate, released_to, released_at)
			SELECT 'pause', $1, $2, $3, bad::timestamp, bad::timestamptz, 1, 0, bad::timestamptz FROM (SELECT $4::text AS bad) AS of`,
			[16]byte(scope.Canvas), scope.Module, strconv.Itoa(i), bad)
	}
	rules, err := inspect.New(store.Pool()).Rules(testenv.Context(t), inspect.Filter{})
	if err != nil || len(rules) != 4 {
		t.Fatalf("%+v, %v", rules, err)
	}
	for _, rule := range rules {
		for _, at := range []time.Time{rule.CreatedAt, rule.Until, rule.ReleasedAt} {
			if _, err := at.UTC().MarshalJSON(); err != nil {
				t.Errorf("%s: %v", rule.RuleScope, err)
			}
		}
	}
}
