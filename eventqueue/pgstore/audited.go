package pgstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgsession"
)

// As returns a store on the same database that attributes changes to an actor: each of Remove, Edit,
// Requeue, Retry, DeleteLogged, AddRule, LiftRule, the last Release of a rule, SetConcurrencyLimit, SetRateLimit, RemoveRateLimit, NameCanvas, UnnameCanvas, SetLockTimeout and FinalizeLockTimeout that changes
// something writes a row of the audit log in its transaction. The last Release is in the name of whoever has lifted the rule. That costs some round trips, which a store
// without an actor does not have. Everything else is as in the store itself, which stays as it is.
func (s *Store) As(by audit.Actor) *Store {
	return &Store{pool: s.pool, share: s.share, woken: s.woken, by: &by}
}

// Operating implements operate.Store; it is As.
func (s *Store) Operating(by audit.Actor) operate.Store { return s.As(by) }

// audited is the audit entry of a change of events.
type audited struct {
	action string
	ids    []eventqueue.EventID
	// changed returns those that the change has changed, once it was made, and asked those whose runs it has asked to end.
	changed, asked func() []eventqueue.EventID
}

// auditedChange is the audit entry of a change whose results are read into results.
func auditedChange(action string, ids []eventqueue.EventID, results *[]operate.Changed) audited {
	return audited{action, ids, func() []eventqueue.EventID { return operate.DoneIDs(*results) }, func() (asked []eventqueue.EventID) {
		for _, r := range *results {
			if r.Result == operate.ChangeEnding && !r.Repeated {
				asked = append(asked, r.ID)
			}
		}
		return asked
	}}
}

// changeEvents is waitThenSkip for a change of events; with an actor, it is audited. The first of the
// queries locks the events.
func (s *Store) changeEvents(ctx context.Context, what audited, queries []query) error {
	if s.by == nil {
		return s.share.wait(ctx, func() error { return s.waitThenSkip(ctx, queries) })
	}
	return s.waitingThenSkipping(func(form func(forms) string) error {
		return s.changing(ctx, func(tx pgsession.DB) error {
			if err := send(ctx, tx, queries[:1], form, []string{planSQL}, nil); err != nil {
				return err
			}
			before, err := readStates(ctx, tx, what.ids)
			if err != nil {
				return err
			}
			if err := send(ctx, tx, queries[1:], form, nil, nil); err != nil {
				return err
			}
			return s.auditEvents(ctx, tx, what, before)
		})
	})
}

const lockLoggedSQL = `SELECT FROM event_log WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE`

// changeLogged changes events of event_log by a statement that returns their ids and results, or around the rows that
// the database refuses (I15); with an actor, it is audited. Its first argument is the ids.
func (s *Store) changeLogged(ctx context.Context, action string, ids []eventqueue.EventID, sql string, arguments ...any) ([]operate.Changed, error) {
	return changeAround(ids, func(ids []eventqueue.EventID) (results []operate.Changed, err error) {
		arguments := append([]any{int64s(ids)}, arguments...)
		change := func(db eventqueue.DB) error {
			rows, err := db.Query(ctx, sql, arguments...)
			if err != nil {
				return err
			}
			results, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r operate.Changed, err error) {
				err = row.Scan(&r.ID, &r.Result)
				return r, err
			})
			return err
		}
		if s.by == nil {
			err = s.share.wait(ctx, func() error { return change(s.pool) })
			return results, err
		}
		err = s.changing(ctx, func(tx pgsession.DB) error {
			if _, err := tx.Exec(ctx, lockLoggedSQL, int64s(ids)); err != nil {
				return err
			}
			before, err := readStates(ctx, tx, ids)
			if err != nil {
				return err
			}
			if err := change(tx); err != nil {
				return err
			}
			return s.auditEvents(ctx, tx, auditedChange(action, ids, &results), before)
		})
		return results, err
	})
}

// auditEvents writes the row of a change of events that has been made, and one of the runs that it has asked to end.
func (s *Store) auditEvents(ctx context.Context, tx pgsession.DB, what audited, before eventStates) error {
	if err := s.auditSome(ctx, tx, what.action, what.changed(), before); err != nil {
		return err
	}
	return s.auditSome(ctx, tx, audit.CancelRun, what.asked(), before)
}

func (s *Store) auditSome(ctx context.Context, tx pgsession.DB, action string, changed []eventqueue.EventID, before eventStates) error {
	if len(changed) == 0 {
		return nil
	}
	target := struct {
		Events []eventqueue.EventID `json:"events"`
	}{changed}
	change := audit.Change{Action: action, Canvas: before.canvasOf(changed), Target: target}
	if len(changed) <= audit.MaxDetailed {
		after, err := readStates(ctx, tx, changed)
		if err != nil {
			return err
		}
		change.Before, change.After = before.document(changed), after.document(changed)
	}
	return audit.Write(ctx, tx, *s.by, change)
}

// A value is in the log where few events are changed, and it is short.
const eventStatesSQL = `
SELECT id, canvas_id, jsonb_strip_nulls(state || jsonb_build_object(
        'value', CASE WHEN $2 AND octet_length(value) <= $3 THEN value END,
        'value_sha256', CASE WHEN $2 THEN encode(sha256(convert_to(value, 'UTF8')), 'hex') END))::text
FROM (
    SELECT id, canvas_id, value, jsonb_build_object('state', 'queued', 'module', module, 'name', name, 'modifier', modifier, 'attributes', attributes,
        'delay_until', delay_until, 'retries', retries, 'attempts', attempts, 'locked_at', locked_at) AS state
    FROM events_v2 WHERE id = ANY ($1::bigint[])
    UNION ALL
    SELECT id, canvas_id, value, jsonb_build_object('state', lower(status::text), 'module', module, 'name', name, 'modifier', modifier, 'attributes', attributes,
        'retries', retries, 'attempts', attempts)
    FROM event_log WHERE id = ANY ($1::bigint[])
) AS events`

// eventState is an event as the audit log has it.
type eventState struct {
	canvas eventqueue.CanvasID
	text   json.RawMessage
}

type eventStates map[eventqueue.EventID]eventState

func readStates(ctx context.Context, tx pgsession.DB, ids []eventqueue.EventID) (eventStates, error) {
	rows, err := tx.Query(ctx, eventStatesSQL, int64s(ids), len(ids) <= audit.MaxDetailed, audit.MaxValueBytes)
	if err != nil {
		return nil, err
	}
	states := eventStates{}
	var id eventqueue.EventID
	var state eventState
	_, err = pgx.ForEachRow(rows, []any{&id, (*[16]byte)(&state.canvas), (*[]byte)(&state.text)}, func() error {
		states[id] = eventState{state.canvas, bytes.Clone(state.text)}
		return nil
	})
	return states, err
}

// canvasOf returns the canvas that all of the events are on, or nil.
func (s eventStates) canvasOf(ids []eventqueue.EventID) *eventqueue.CanvasID {
	canvas := s[ids[0]].canvas
	for _, id := range ids {
		if s[id].canvas != canvas {
			return nil
		}
	}
	return &canvas
}

// document returns the events as an object by their ids, or nil if there is none.
func (s eventStates) document(ids []eventqueue.EventID) json.RawMessage {
	var b bytes.Buffer
	for _, id := range ids {
		state, there := s[id]
		if !there {
			continue
		}
		separator := byte(',')
		if b.Len() == 0 {
			separator = '{'
		}
		b.WriteByte(separator)
		fmt.Fprintf(&b, "%q:%s", id.String(), state.text)
	}
	if b.Len() == 0 {
		return nil
	}
	b.WriteByte('}')
	return b.Bytes()
}

// auditedRow is an object that operators set, one row each: a rule, a limit, a cron definition.
type auditedRow struct {
	action string
	canvas eventqueue.CanvasID // zero: it is on none
	target any                 // what names it on its canvas; becomes JSON
	read   string              // a statement that returns the row as JSON, or NULL
	args   []any
}

// change runs f, which changes the row, in a transaction; with an actor, that is audited if the row is
// not as it was.
func (s *Store) change(ctx context.Context, row auditedRow, f func(tx pgsession.DB) error) error {
	return s.changing(ctx, func(tx pgsession.DB) error { return s.changeIn(ctx, tx, row, f) })
}

func (s *Store) changeIn(ctx context.Context, tx pgsession.DB, row auditedRow, f func(tx pgsession.DB) error) error {
	if s.by == nil {
		return f(tx)
	}
	var before, after []byte
	if err := tx.QueryRow(ctx, row.read, row.args...).Scan(&before); err != nil {
		return fmt.Errorf("read what is changed: %w", err)
	}
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, row.read, row.args...).Scan(&after); err != nil {
		return fmt.Errorf("read what was changed: %w", err)
	}
	if bytes.Equal(before, after) {
		return nil
	}
	change := audit.Change{Action: row.action, Target: row.target, Before: before, After: after}
	if row.canvas != (eventqueue.CanvasID{}) {
		change.Canvas = &row.canvas
	}
	return audit.Write(ctx, tx, *s.by, change)
}

const (
	concurrencyLimitAsJSONSQL = `SELECT (SELECT to_jsonb(l)::text FROM concurrency_limits l WHERE l.canvas_id = $1 AND l.group_key = $2)`
	rateLimitAsJSONSQL        = `SELECT (SELECT to_jsonb(l)::text FROM rate_limits l WHERE l.canvas_id = $1 AND l.module = $2 AND l.name = $3)`
	settingsAsJSONSQL         = `SELECT (SELECT to_jsonb(s)::text FROM events_v2_settings s)`
	cronAsJSONSQL             = `SELECT (SELECT to_jsonb(d)::text FROM cron_definitions d WHERE d.canvas_id = $1 AND d.name = $2)`
)

// handlerTarget names a handler.
type handlerTarget struct {
	Module string `json:"module"`
	Name   string `json:"name"`
	// Modifier and Prefix are set for rules.
	Modifier string `json:"modifier,omitempty"`
	Prefix   bool   `json:"prefix,omitempty"`
}

// ChangeCron runs f, which changes a cron definition with what it is given, in a transaction; with an
// actor, that is audited. f gets a transaction whose statements are sent as they are.
func (s *Store) ChangeCron(ctx context.Context, action string, canvas eventqueue.CanvasID, name string, f func(tx eventqueue.DB) error) error {
	row := auditedRow{action: action, canvas: canvas, target: map[string]string{"cron": name}, read: cronAsJSONSQL, args: []any{[16]byte(canvas), name}}
	return s.share.wait(ctx, func() error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			return s.changeIn(ctx, s.pool.In(tx), row, func(pgsession.DB) error { return f(tx) })
		})
	})
}
