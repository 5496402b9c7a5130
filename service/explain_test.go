package service_test

import (
	"context"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/operate"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

// TestRelayExplainsDueEvents: whose handler nobody has, which nobody claims, and which needs
// nobody.
func TestRelayExplainsDueEvents(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	s := open(t, service.Config{DatabaseURL: testenv.DatabaseURL(t), NoRelay: true, NoCron: true, NoPruner: true})
	insert := func() (id eventqueue.EventID) { // whose notification was lost an hour ago
		t.Helper()
		if err := s.Pool().QueryRow(ctx, `INSERT INTO events_v2 (canvas_id, module, name, modifier, value, enqueued_at, delay_until, notified_at)
			SELECT $1, 'WORKER', 'greet', '_', '1', t, t, t FROM (SELECT clock_timestamp() - interval '1 hour' AS t) AS t RETURNING id`,
			[16]byte(service.DefaultCanvas)).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	id := insert()
	said := func(want string, free, passes bool) {
		t.Helper()
		if e, err := s.Explain(ctx, id); err != nil || e.Free != free || e.Passes != passes || want != "" && e.Why != want || e.Why == "" || e.Remedy == "" {
			t.Errorf("the event is explained by %+v, %v", e, err)
		}
	}
	said("No worker runs.", false, false)

	if err := s.Register(eventqueue.HandlerKey{Name: "greet"}, eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error { return nil }), eventqueue.Policy{}); err != nil {
		t.Fatal(err)
	}
	run(t, s)
	var e maintenance.Explanation
	testenv.Eventually(t, "a worker with its handler runs", func() bool {
		var err error
		if e, err = s.Explain(ctx, id); err != nil {
			t.Fatal(err)
		}
		return e.Free
	})
	said("", true, false)
	if _, err := s.Pool().Exec(ctx, `UPDATE events_v2 SET notified_at = clock_timestamp()`); err != nil {
		t.Fatal(err)
	}
	said("", true, true)
	rules, err := operate.NewRules(s.Store(), s.Queue)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rules.Add(ctx, operate.PauseRule, eventqueue.Scope{Canvas: service.DefaultCanvas, Module: "WORKER", Name: "greet"}); err != nil {
		t.Fatal(err)
	}
	said("", false, true)
	if _, err := s.Pool().Exec(ctx, `DELETE FROM events_v2`); err != nil {
		t.Fatal(err)
	}
	said("", false, true)
}
