package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/attack/faults/emission"
	"eventsv2/test/attack/record"
	"eventsv2/test/oracle"
)

// settingsSQL makes the record of rules and limits, whoever changes them.
const settingsSQL = `
CREATE TABLE audit.settings (
    seq    bigint      GENERATED ALWAYS AS IDENTITY,
    at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    what   text        NOT NULL,
    gone   boolean     NOT NULL,
    fields jsonb       NOT NULL
);

CREATE FUNCTION audit.sets() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit.settings (what, gone, fields)
    VALUES (TG_TABLE_NAME, TG_OP = 'DELETE', CASE WHEN TG_OP = 'DELETE' THEN to_jsonb(OLD) ELSE to_jsonb(NEW) END);
    RETURN NULL;
END $$;

CREATE TRIGGER audit AFTER INSERT OR DELETE ON scheduling_rules FOR EACH ROW EXECUTE FUNCTION audit.sets();
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON concurrency_limits FOR EACH ROW EXECUTE FUNCTION audit.sets();
CREATE TRIGGER audit AFTER INSERT ON rate_limits FOR EACH ROW EXECUTE FUNCTION audit.sets();`

// audit makes the record of a database that has a queue.
func audit(ctx context.Context, databaseURL string) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("connect to make the record of the database: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // all is committed
	if _, err := conn.Exec(ctx, record.AuditSQL+settingsSQL); err != nil {
		return fmt.Errorf("make the record of the database: %w", err)
	}
	return nil
}

// setting is a rule or a limit that was set or removed.
type setting struct {
	at     time.Time
	what   string
	gone   bool
	fields struct {
		Canvas   eventqueue.CanvasID `json:"canvas_id"`
		Rule     operate.RuleType    `json:"rule_type"`
		Module   string              `json:"event_space"`
		Name     string              `json:"handler_name"`
		Modifier string              `json:"modifier"`
		Prefix   bool                `json:"prefix"`
		Group    string              `json:"group_key"`
		Max      int                 `json:"max_running"`
	}
}

// settles is how long the transaction of a setting may take to its end after it was written.
const settles = 2 * time.Second

func (s *setting) scope() eventqueue.Scope {
	return eventqueue.Scope{Canvas: s.fields.Canvas, Module: s.fields.Module, Name: s.fields.Name}
}

func (s *setting) width() oracle.Width {
	return oracle.Width{Prefix: s.fields.Prefix, Modifier: s.fields.Modifier}
}

// report adds a setting to a history.
func (s *setting) report(h *oracle.History, call int64) error {
	f := &s.fields
	switch s.what {
	case "rate_limits":
		return nil
	case "concurrency_limits":
		limit := operate.ConcurrencyLimit{Canvas: f.Canvas, Max: f.Max}
		if f.Group != "canvas" {
			return fmt.Errorf("a limit of %q was set: only those of canvases are judged", f.Group)
		}
		if s.gone {
			limit.Max = 0
		}
		h.Limits = append(h.Limits, oracle.LimitChange{At: s.at, Limit: limit})
		return nil
	}
	asked := oracle.Record{Kind: oracle.RuleAsked, At: s.at, Rule: f.Rule, Scope: s.scope(), Width: s.width(), Call: call}
	returned := asked
	returned.Kind, returned.At, returned.Changed = oracle.RuleAdded, s.at.Add(settles), true
	if s.gone {
		asked.Kind, returned.Kind = oracle.LiftAsked, oracle.RuleLifted
	}
	h.Add(asked)
	h.Add(returned)
	return nil
}

const readSettingsSQL = `SELECT at, what, gone, fields FROM audit.settings ORDER BY seq`

// readRulesSQL are the rules at the end, as audit.settings has them.
const readRulesSQL = `SELECT clock_timestamp(), 'scheduling_rules', false, to_jsonb(r) FROM scheduling_rules r`

func readSettings(ctx context.Context, pool *pgxpool.Pool, sql string) ([]setting, error) {
	rows, _ := pool.Query(ctx, sql) // CollectRows returns its error
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s setting, err error) {
		var fields []byte
		if err := row.Scan(&s.at, &s.what, &s.gone, &fields); err != nil {
			return s, err
		}
		return s, json.Unmarshal(fields, &s.fields)
	})
}

// evidence is what is known of the events of a scenario when everything has come to rest.
type evidence struct {
	traces   record.Traces
	settings []setting
	rules    []setting // at the end
	// rewritten are the changes of rows that must never change.
	rewritten []string
	at        time.Time
}

// read reads it: of the events of the ledger, and of what their completion emitted.
func read(ctx context.Context, pool *pgxpool.Pool, ids []int64) (e evidence, err error) {
	if e.traces, err = record.Read(ctx, pool, ids); err != nil {
		return e, err
	}
	if e.settings, err = readSettings(ctx, pool, readSettingsSQL); err == nil {
		e.rules, err = readSettings(ctx, pool, readRulesSQL)
	}
	if err == nil {
		e.rewritten, err = record.ReadRewritten(ctx, pool)
	}
	e.at = time.Now()
	return e, err
}

// event is an event that was accepted, or that the completion of one emitted, with its record. One without a
// Trace is lost.
type event struct {
	*entry
	record.Event
}

// events are all of them.
func (j *judge) events(e *evidence) (all []event) {
	parents, rated := map[eventqueue.EventID]*entry{}, map[eventqueue.CanvasID]bool{}
	for _, s := range e.settings {
		rated[s.fields.Canvas] = rated[s.fields.Canvas] || s.what == "rate_limits"
	}
	add := func(trace *record.Trace, one *entry) {
		if trace == nil || trace.Entered == nil {
			all = append(all, event{entry: one})
			return
		}
		copied, entered := *trace, *trace.Entered
		entered.Value, copied.Entered = one.value, &entered // what was emitted, whatever the row has
		all = append(all, event{one, record.Event{Trace: &copied, Runs: j.target.runsOf(one.id), OrderingKey: one.key, UniqueKey: one.unique, UniqueFor: max(one.uniqueFor-time.Second, 0),
			Parent: one.parent, NotBefore: one.due, LockTimeout: j.lockTimeout, Timeout: time.Minute, Rated: rated[entered.Canvas],
			Operator: func(writer string) bool { return j.operators[writer] }}})
	}
	for _, one := range j.ledger {
		if one.typed {
			parents[one.id] = one
		}
		add(e.traces[one.id], one)
	}
	dispatched := map[eventqueue.EventID]bool{}
	for _, id := range slices.Sorted(maps.Keys(e.traces)) {
		if trace := e.traces[id]; trace.Entered != nil && parents[trace.Entered.Parent] != nil {
			parent := parents[trace.Entered.Parent]
			dispatched[parent.id] = true
			add(trace, &entry{id: id, label: parent.label + "_children", value: parent.value, parent: parent.id})
		}
	}
	for i := range all {
		if all[i].typed {
			all[i].Children, all[i].Dispatch = emission.Children(), dispatched[all[i].id]
		}
	}
	return all
}

// history is what the oracle judges.
func (j *judge) history(e *evidence, events []event) (*oracle.History, error) {
	h := &oracle.History{Faults: j.faults, Final: oracle.Final{At: e.at}, Bounds: oracle.Bounds{LockTimeout: j.lockTimeout, RetainHistory: true,
		MaxRetries: func(key eventqueue.HandlerKey) (least, most int) { n := j.maxRetries(key); return n, n }}}
	for i := range e.settings {
		if err := e.settings[i].report(h, int64(i)); err != nil {
			return nil, err
		}
	}
	for _, rule := range e.rules {
		h.Final.Rules = append(h.Final.Rules, oracle.RuleRow{Type: rule.fields.Rule, Scope: rule.scope(), Width: rule.width()})
	}
	for i := range events {
		if one := events[i].entry; events[i].Trace == nil {
			h.Add(oracle.Record{Kind: oracle.Emitted, Event: one.id, At: one.emitted, Due: one.due, Value: one.value})
		} else {
			events[i].Report(h)
		}
	}
	h.Records = append(h.Records, j.repeats...)
	return h, nil
}

// runsOf are the runs of an event as the record has them.
func (t *target) runsOf(id eventqueue.EventID) (runs []record.Run) {
	for _, v := range t.of(id) {
		run := record.Run{Process: v.process, Attempt: int32(-v.nth), Start: v.began, Sum: record.Checksum(v.value), Ended: !v.ended.IsZero(), End: v.ended}
		switch {
		case v.status == completed.status:
			run.Result = oracle.OK
		case v.snoozes:
			run.Result = oracle.Snoozed
		case v.status == 0:
			run.Result = oracle.Cut
		default:
			run.Result = oracle.Failed
		}
		runs = append(runs, run)
	}
	return runs
}

// maxRetries is how often a worker tries an event of a handler again.
func (j *judge) maxRetries(key eventqueue.HandlerKey) int {
	for _, h := range j.handlers {
		if h.Key == key {
			return h.MaxRetries
		}
	}
	return handler(key.Name).MaxRetries
}
