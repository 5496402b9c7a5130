package record

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
)

// AuditSQL makes the record of the database, in a schema of its own: a row for each change of each row, written in the
// transaction of the change, so that it is there if and only if the change is. A
// changed row stays locked until its transaction ends, so for one event the order
// of seq is the order of the changes. Times are microseconds since 1970, by the
// clock of the database; 0 is NULL. It works on every schema of the queue.
// A transaction that sets audit.off to on is not recorded: such as one that writes a crowd that is not judged.
const AuditSQL = `
CREATE SCHEMA audit;

CREATE TABLE audit.changes (
    seq        bigint      GENERATED ALWAYS AS IDENTITY,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    writer     text        NOT NULL DEFAULT current_setting('application_name'),
    op         text        NOT NULL,
    id         bigint      NOT NULL,
    old_locked bigint      NOT NULL, old_attempts integer NOT NULL, old_retries integer NOT NULL, old_due bigint NOT NULL,
    new_locked bigint      NOT NULL, new_attempts integer NOT NULL, new_retries integer NOT NULL, new_due bigint NOT NULL,
    new_together integer   NOT NULL DEFAULT 0,
    canvas_id  uuid,
    module     text,
    name       text,
    modifier   text,
    ordering_key text,
    parent_id  bigint,
    value      text
);

CREATE TABLE audit.rewritten (
    at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    writer text        NOT NULL DEFAULT current_setting('application_name'),
    what   text        NOT NULL,
    old    jsonb       NOT NULL
);

CREATE FUNCTION audit.micros(t timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE AS
    'SELECT CASE WHEN t IS NULL THEN 0 ELSE least(greatest(extract(epoch FROM t) * 1000000, -9e18), 9e18)::bigint END';

CREATE FUNCTION audit.events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO audit.changes (op, id, old_locked, old_attempts, old_retries, old_due,
            new_locked, new_attempts, new_retries, new_due, canvas_id, module, name, modifier, ordering_key, parent_id, value)
        VALUES ('I', NEW.id, 0, 0, 0, 0,
            audit.micros(NEW.locked_at), NEW.attempts, NEW.retries, audit.micros(NEW.delay_until),
            NEW.canvas_id, NEW.module, NEW.name, NEW.modifier, NEW.ordering_key, NEW.parent_id, NEW.value);
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO audit.changes (op, id, old_locked, old_attempts, old_retries, old_due,
            new_locked, new_attempts, new_retries, new_due)
        VALUES ('D', OLD.id, audit.micros(OLD.locked_at), OLD.attempts, OLD.retries, audit.micros(OLD.delay_until), 0, 0, 0, 0);
    ELSE
        INSERT INTO audit.changes (op, id, old_locked, old_attempts, old_retries, old_due,
            new_locked, new_attempts, new_retries, new_due, new_together, value)
        VALUES ('U', OLD.id, audit.micros(OLD.locked_at), OLD.attempts, OLD.retries, audit.micros(OLD.delay_until),
            audit.micros(NEW.locked_at), NEW.attempts, NEW.retries, audit.micros(NEW.delay_until),
            CASE WHEN NEW.begun THEN coalesce((to_jsonb(NEW)->>'suspect')::integer, 0) ELSE 0 END,
            CASE WHEN (OLD.id, OLD.canvas_id, OLD.module, OLD.name, OLD.modifier, OLD.value)
                  IS DISTINCT FROM (NEW.id, NEW.canvas_id, NEW.module, NEW.name, NEW.modifier, NEW.value) THEN NEW.value END);
    END IF;
    RETURN NULL;
END $$;

CREATE TABLE audit.grants (
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    window_at timestamptz NOT NULL,
    writer    text        NOT NULL DEFAULT current_setting('application_name'),
    canvas_id uuid        NOT NULL,
    module    text        NOT NULL,
    name      text        NOT NULL,
    runs      bigint      NOT NULL
);

CREATE FUNCTION audit.counts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit.grants (window_at, canvas_id, module, name, runs)
    VALUES (NEW.minute_at, NEW.canvas_id, NEW.module, NEW.name,
        NEW.day_count - CASE WHEN NEW.day_at = OLD.day_at THEN OLD.day_count ELSE 0 END);
    RETURN NULL;
END $$;

CREATE FUNCTION audit.rewrites() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit.rewritten (what, old) VALUES (TG_TABLE_NAME || ' ' || TG_OP, to_jsonb(OLD));
    RETURN NULL;
END $$;

CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON events_v2 FOR EACH ROW
    WHEN (current_setting('audit.off', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION audit.events();
CREATE TRIGGER audit AFTER UPDATE ON rate_counters FOR EACH ROW EXECUTE FUNCTION audit.counts();
CREATE TRIGGER audit AFTER UPDATE OR DELETE ON event_log FOR EACH ROW EXECUTE FUNCTION audit.rewrites();
CREATE TRIGGER audit AFTER UPDATE OR DELETE ON cron_records FOR EACH ROW EXECUTE FUNCTION audit.rewrites();`

// RowState is what is judged of a row of events_v2.
type RowState struct {
	LockedMicros int64 // 0: not locked
	Attempts     int32
	Retries      int32
	DueMicros    int64
	Together     int32 // of a suspect whose run has begun: how many ran in its worker
}

// The operations of a change.
const (
	Insert = 'I'
	Update = 'U'
	Delete = 'D'
)

// Change is one change of a row of events_v2.
type Change struct {
	At     time.Time
	Writer string
	Op     byte
	Old    RowState
	New    RowState
	// Rewritten reports whether an update changed what nothing may change.
	Rewritten bool
}

// Entered is how an event entered the queue.
type Entered struct {
	Canvas      eventqueue.CanvasID
	Handler     eventqueue.HandlerKey
	OrderingKey string
	Parent      eventqueue.EventID // 0: none
	Value       string
}

// Scope is what a rule or a limit is for.
func (e *Entered) Scope() eventqueue.Scope {
	return eventqueue.Scope{Canvas: e.Canvas, Module: e.Handler.Module, Name: e.Handler.Name}
}

// Ending is the row of event_log of an event.
type Ending struct {
	Status    string
	Retries   int32
	Attempts  int32
	LastError string
	Value     string
}

// The statuses of event_log beside COMPLETED.
const (
	Failed    = "FAILED"
	Cancelled = "CANCELLED"
)

// Trace is all that the database knows of one event.
type Trace struct {
	ID      eventqueue.EventID
	Entered *Entered // nil when no insert is on record
	Changes []Change
	Ending  *Ending // nil when there is none
}

// Ended reports whether the event has ended with a status.
func (s *Trace) Ended(status string) bool { return s.Ending != nil && s.Ending.Status == status }

// Traces are those of events by their ids.
type Traces map[eventqueue.EventID]*Trace

// Of is the trace of an event, which is empty at first.
func (traces Traces) Of(id eventqueue.EventID) *Trace {
	s := traces[id]
	if s == nil {
		s = &Trace{ID: id}
		traces[id] = s
	}
	return s
}

const readChangesSQL = `
SELECT id, at, writer, op, old_locked, old_attempts, old_retries, old_due,
       new_locked, new_attempts, new_retries, new_due, new_together, canvas_id,
       coalesce(module, ''), coalesce(name, ''), coalesce(modifier, ''), coalesce(ordering_key, ''), coalesce(parent_id, 0), value
  FROM audit.changes
 WHERE $1::bigint[] IS NULL OR id = ANY($1) OR id IN (SELECT id FROM audit.changes WHERE op = 'I' AND parent_id = ANY($1))
 ORDER BY id, seq`

const readLogSQL = `
SELECT id, status::text, retries, attempts, coalesce(last_error, ''), value
  FROM event_log
 WHERE $1::bigint[] IS NULL OR id = ANY($1) OR parent_id = ANY($1)`

// heartbeatSuffix marks the connection on which a worker renews its locks: what it
// writes the worker has written.
const heartbeatSuffix = "-heartbeat"

// Read reads the record of some events and of their children; of all for nil.
func Read(ctx context.Context, pool *pgxpool.Pool, ids []int64) (Traces, error) {
	traces := Traces{}
	if err := errors.Join(traces.readChanges(ctx, pool, ids), traces.readEndings(ctx, pool, ids)); err != nil {
		return nil, fmt.Errorf("read the record of the database: %w", err)
	}
	return traces, nil
}

func (traces Traces) readChanges(ctx context.Context, pool *pgxpool.Pool, ids []int64) error {
	rows, _ := pool.Query(ctx, readChangesSQL, ids) // ForEachRow returns its error
	var (
		id     eventqueue.EventID
		c      Change
		op     string
		canvas *[16]byte
		e      Entered
		value  *string
	)
	writers := map[string]string{} // one copy of each name
	targets := []any{&id, &c.At, &c.Writer, &op,
		&c.Old.LockedMicros, &c.Old.Attempts, &c.Old.Retries, &c.Old.DueMicros,
		&c.New.LockedMicros, &c.New.Attempts, &c.New.Retries, &c.New.DueMicros, &c.New.Together, &canvas,
		&e.Handler.Module, &e.Handler.Name, &e.Handler.Modifier, &e.OrderingKey, &e.Parent, &value}
	_, err := pgx.ForEachRow(rows, targets, func() error {
		s := traces.Of(id)
		c.Writer = strings.TrimSuffix(c.Writer, heartbeatSuffix)
		if _, known := writers[c.Writer]; !known {
			writers[c.Writer] = c.Writer
		}
		c.Writer, c.Op = writers[c.Writer], op[0]
		c.Rewritten = c.Op == Update && value != nil
		if c.Op == Insert {
			s.Entered = &Entered{*canvas, e.Handler, e.OrderingKey, e.Parent, *value}
		}
		s.Changes = append(s.Changes, c)
		return nil
	})
	return err
}

func (traces Traces) readEndings(ctx context.Context, pool *pgxpool.Pool, ids []int64) error {
	var id eventqueue.EventID
	var e Ending
	rows, _ := pool.Query(ctx, readLogSQL, ids) // ForEachRow returns its error
	_, err := pgx.ForEachRow(rows, []any{&id, &e.Status, &e.Retries, &e.Attempts, &e.LastError, &e.Value}, func() error {
		copied := e
		traces.Of(id).Ending = &copied
		return nil
	})
	return err
}

const readRewrittenSQL = `
SELECT to_char(at, 'HH24:MI:SS.MS') || ' ' || writer || ' ' || what || ' ' || old
  FROM audit.rewritten`

// ReadRewritten lists the changes of rows that must never change.
func ReadRewritten(ctx context.Context, pool *pgxpool.Pool) ([]string, error) {
	rows, _ := pool.Query(ctx, readRewrittenSQL) // CollectRows returns its error
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
