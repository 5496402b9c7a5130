package pgstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// TestEachKindOfChangeIsAudited makes each kind of change as an actor, and finds who, what, and how it was before and
// after. A change that changes nothing, and one of a store without an actor, has no row.
func TestEachKindOfChangeIsAudited(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), testenv.Context(t)
	by := audit.Actor{Name: "token:ada\x00", Source: "10.0.0.7", Via: "api"}
	store, log := r.store.As(by), audit.NewLog("", r.pool)
	ids := r.insert(event(), event(), event())
	running := r.insert(event())[0]
	r.claim(running)
	rule := operate.Rule{Type: operate.PauseRule, RuleScope: operate.RuleScope{Scope: scope}, Reason: "duplicates", Actor: "ada"}
	concurrency := operate.ConcurrencyLimit{Canvas: canvas, Max: 2}
	rate := operate.RateLimit{Scope: scope, PerMinute: 5, Mode: "exact"}
	value := json.RawMessage(`{"secret":1}`)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	entries := func() []audit.Entry {
		t.Helper()
		list, err := log.List(ctx, audit.Filter{}, 0, 100)
		must(err)
		return list
	}
	for _, c := range []struct {
		action, target, before, after string
		change                        func() error
	}{
		{"edit", `{"events": [1]}`, `"value": "1"`, `secret`, func() error {
			_, err := store.Edit(ctx, operate.Edit{Value: value}, []eventqueue.EventID{ids[0], running, 999})
			return err
		}},
		{"run", `{"events": [1, 2]}`, `"state": "queued"`, `"state": "queued"`, func() error { _, err := store.Requeue(ctx, ids[:2]); return err }},
		{"cancel", `{"events": [1, 2]}`, `"state": "queued"`, `"state": "cancelled"`, func() error { _, _, err := store.Remove(ctx, ids[:2], &operate.Cancellation{}); return err }},
		{"", "", "", "", func() error { _, _, err := store.Remove(ctx, ids[:2], &operate.Cancellation{}); return err }},
		{"retry", `{"events": [1]}`, `"state": "cancelled"`, `"state": "queued"`, func() error { _, err := store.Retry(ctx, operate.Edit{}, ids[:1]); return err }},
		{"", "", "", "", func() error { _, err := store.Retry(ctx, operate.Edit{}, ids[:1]); return err }},
		{"cancel", `{"events": [1]}`, `"state": "queued"`, `"state": "cancelled"`, func() error { _, _, err := store.Remove(ctx, ids[:1], &operate.Cancellation{}); return err }},
		{"delete", `{"events": [1]}`, `"state": "cancelled"`, "", func() error { _, err := store.DeleteLogged(ctx, ids[:1]); return err }},
		{"delete", `{"events": [3]}`, `"value": "1"`, "", func() error { _, _, err := store.Remove(ctx, ids[2:], nil); return err }},
		{"pause", `{"handler": {"name": "greet", "module": "WORKER"}}`, "", `duplicates`, func() error { _, err := store.AddRule(ctx, rule); return err }},
		{"", "", "", "", func() error { _, err := store.AddRule(ctx, rule); return err }},
		{"unpause", `{"handler": {"name": "greet", "module": "WORKER"}}`, `duplicates`, "", func() error {
			_, err := store.LiftRule(ctx, operate.Lift{Type: operate.PauseRule, RuleScope: operate.RuleScope{Scope: scope}})
			return err
		}},
		{"", "", "", "", func() error {
			_, err := store.LiftRule(ctx, operate.Lift{Type: operate.PauseRule, RuleScope: operate.RuleScope{Scope: scope}})
			return err
		}},
		{"limit", `{"concurrency_limit": "canvas"}`, "", `"max_running": 2`, func() error { _, err := store.SetConcurrencyLimit(ctx, concurrency); return err }},
		{"", "", "", "", func() error { _, err := store.SetConcurrencyLimit(ctx, concurrency); return err }},
		{"limit", `{"concurrency_limit": "canvas"}`, `"max_running": 2`, "", func() error {
			_, err := store.SetConcurrencyLimit(ctx, operate.ConcurrencyLimit{Canvas: canvas})
			return err
		}},
		{"limit", `{"rate_limit": {"name": "greet", "module": "WORKER"}}`, "", `"per_minute": 5`, func() error { _, err := store.SetRateLimit(ctx, rate); return err }},
		{"limit", `{"rate_limit": {"name": "greet", "module": "WORKER"}}`, `"per_minute": 5`, "", func() error { _, err := store.RemoveRateLimit(ctx, scope); return err }},
		{"", "", "", "", func() error { _, err := r.store.SetRateLimit(ctx, rate); return err }},
		{"add_cron", `{"cron": "report"}`, "", `"schedule": "every day"`, func() error {
			return store.ChangeCron(ctx, "add_cron", canvas, "report", func(tx eventqueue.DB) error {
				_, err := tx.Exec(ctx, `INSERT INTO cron_definitions (canvas_id, name, schedule, time_zone) VALUES ($1, 'report', 'every day', 'UTC')`, [16]byte(canvas))
				return err
			})
		}},
	} {
		had := len(entries())
		must(c.change())
		list := entries()
		if c.action == "" {
			if len(list) != had {
				t.Errorf("nothing was changed, and the log has %+v", list[0])
			}
			continue
		}
		if len(list) != had+1 {
			t.Errorf("%s has %d rows", c.action, len(list)-had)
			continue
		}
		e := list[0]
		if e.Action != c.action || e.Name != "token:ada\uFFFD" || e.Source != by.Source || e.Via != by.Via || e.Canvas == nil || *e.Canvas != canvas || string(e.Target) != c.target {
			t.Errorf("%s is %+v with target %s", c.action, e, e.Target)
		}
		for what, have := range map[string]struct{ text, want string }{"before": {string(e.Before), c.before}, "after": {string(e.After), c.after}} {
			if !strings.Contains(have.text, have.want) || (have.want == "") != (have.text == "") {
				t.Errorf("%s: %s is %s and lacks %s", c.action, what, have.text, have.want)
			}
		}
		if without := e.WithoutValues(); strings.Contains(string(without.Before)+string(without.After), `"value`) || strings.Contains(string(without.After), "secret") {
			t.Errorf("%s without values: %s, %s", c.action, without.Before, without.After)
		}
	}
	byEvent, err := log.List(ctx, audit.Filter{Event: ids[1], Canvases: []eventqueue.CanvasID{canvas}}, 0, 100)
	must(err)
	if len(byEvent) != 2 || byEvent[0].Action != "cancel" || byEvent[1].Action != "run" {
		t.Errorf("event 2 has %+v", byEvent)
	}
	if elsewhere, err := log.List(ctx, audit.Filter{Canvases: []eventqueue.CanvasID{another}}, 0, 100); len(elsewhere) != 0 || err != nil {
		t.Errorf("another canvas has %+v, %v", elsewhere, err)
	}
	if nowhere, err := log.List(ctx, audit.Filter{Canvases: []eventqueue.CanvasID{}}, 0, 100); len(nowhere) != 0 || err != nil {
		t.Errorf("no canvas has %+v, %v", nowhere, err)
	}
}

// TestAuditRollsBackWithItsChange has no change without its row: where the row is refused, nothing is changed, and the
// other way round.
func TestAuditRollsBackWithItsChange(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), testenv.Context(t)
	store := r.store.As(audit.Actor{Name: "ada", Via: "test"})
	id := r.insert(event())
	r.exec(`ALTER TABLE audit_log ADD CHECK (actor <> 'ada')`)
	if results, _, err := store.Remove(ctx, id, nil); err == nil && results[0].Err == nil {
		t.Error("an event was removed without a row")
	}
	if _, err := store.AddRule(ctx, operate.RuleOf(operate.BlockRule, scope)); err == nil {
		t.Error("a rule was added without a row")
	}
	if _, there := r.row(id[0]); !there || one[int](r, `SELECT count(*) FROM scheduling_rules`) != 0 {
		t.Error("what was not audited was changed")
	}
	r.exec(`ALTER TABLE audit_log DROP CONSTRAINT audit_log_actor_check`)
	failing := errors.New("no")
	if err := store.ChangeCron(ctx, "add_cron", canvas, "x", func(eventqueue.DB) error { return failing }); !errors.Is(err, failing) {
		t.Errorf("the error is %v", err)
	}
	if n := one[int](r, `SELECT count(*) FROM audit_log`); n != 0 {
		t.Errorf("%d rows of changes that were not made", n)
	}
}

// TestAuditOfManyEventsIsBounded has their ids, and not each of them.
func TestAuditOfManyEventsIsBounded(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), testenv.Context(t)
	many := make([]eventqueue.NewEvent, audit.MaxDetailed+1)
	for i := range many {
		many[i] = event()
	}
	if _, _, err := r.store.As(audit.Actor{Name: "ada", Via: "test"}).Remove(ctx, r.insert(many...), &operate.Cancellation{}); err != nil {
		t.Fatal(err)
	}
	log := audit.NewLog("", r.pool)
	list, err := log.List(ctx, audit.Filter{}, 0, 2)
	if err != nil || len(list) != 1 || list[0].Before != nil || list[0].After != nil || strings.Count(string(list[0].Target), ",") != audit.MaxDetailed {
		t.Errorf("the log has %+v, %v", list, err)
	}
	prune := func(olderThan time.Duration) int {
		deleted, err := log.Prune(context.WithoutCancel(ctx), olderThan, 10)
		if err != nil {
			t.Fatal(err)
		}
		return deleted
	}
	if prune(time.Hour) != 0 || prune(0) != 1 || prune(0) != 0 {
		t.Error("pruned what is not old, or not what is")
	}
}

// TestEndOfARampIsAudited, in the name of whoever has lifted the rule, and only with its row.
func TestEndOfARampIsAudited(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), testenv.Context(t)
	by := func(name string) *pgstore.Store {
		return r.store.As(audit.Actor{Name: name, Source: "host of " + name, Via: "test"})
	}
	lift := operate.LiftOf(operate.PauseRule, scope)
	lift.Rate = 1
	ramp := func(store *pgstore.Store) {
		t.Helper()
		if _, err := store.AddRule(ctx, operate.RuleOf(operate.PauseRule, scope)); err != nil {
			t.Fatal(err)
		}
		if lifted, err := store.LiftRule(ctx, lift); err != nil || !lifted.Removed {
			t.Fatalf("%+v, %v", lifted, err)
		}
	}
	end := func() (operate.Released, error) { return by("cron").Release(ctx, lift.Type, lift.RuleScope) }
	ramp(by("ada"))
	r.exec(`ALTER TABLE audit_log ADD CONSTRAINT refused CHECK (after IS NOT NULL)`)
	if _, err := end(); err == nil || one[int](r, `SELECT count(*) FROM scheduling_rules`) != 1 {
		t.Errorf("the rule is gone without its row: %v", err)
	}
	r.exec(`ALTER TABLE audit_log DROP CONSTRAINT refused`)
	ended := func(who string) {
		t.Helper()
		if released, err := end(); err != nil || !released.Removed {
			t.Fatalf("%+v, %v", released, err)
		}
		entries, err := audit.NewLog("", r.pool).List(ctx, audit.Filter{}, 0, 1)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%+v, %v", entries, err)
		}
		e := entries[0]
		var before []struct {
			Rate       int   `json:"rate"`
			ReleasedTo int64 `json:"released_to"`
		}
		if err := json.Unmarshal(e.Before, &before); err != nil || len(before) != 1 || before[0].Rate != 1 || before[0].ReleasedTo > 0 {
			t.Errorf("before: %s, %v", e.Before, err)
		}
		if e.Name != who || e.Source != "host of "+who || e.Action != "unpause" || e.After != nil || e.Canvas == nil || *e.Canvas != canvas {
			t.Errorf("the end is %+v; want %s", e, who)
		}
	}
	ended("ada")
	ramp(r.store) // in nobody's name, and it is not what ada has lifted
	ended("cron")
	ramp(by("bob"))
	if released, err := r.store.Release(ctx, lift.Type, lift.RuleScope); err != nil || !released.Removed {
		t.Errorf("%+v, %v", released, err)
	}
	if n := one[int](r, `SELECT count(*) FROM audit_log WHERE actor = 'bob' AND after IS NULL`); n != 0 {
		t.Errorf("a store without an actor has written %d rows", n)
	}
}
