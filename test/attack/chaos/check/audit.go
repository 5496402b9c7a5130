package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/test/attack/chaos/task"
)

// AuditSQL makes the record of the database: a row for each change of each row, written in the
// transaction of the change, so that it is there if and only if the change is. A
// changed row stays locked until its transaction ends, so for one event the order
// Of seq is the order of the changes. Times are microseconds since 1970, by the
// clock of the database; 0 is NULL.
const AuditSQL = `
CREATE TABLE chaos_effects (
    event_id bigint  NOT NULL,
    attempt  integer NOT NULL
);

CREATE TABLE chaos_probe (at timestamptz);
INSERT INTO chaos_probe VALUES (now());

CREATE TABLE chaos_audit (
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
    parent_id  bigint,
    value      text
);

CREATE TABLE chaos_rewritten (
    at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    writer text        NOT NULL DEFAULT current_setting('application_name'),
    what   text        NOT NULL,
    old    jsonb       NOT NULL
);

CREATE FUNCTION chaos_micros(t timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE AS
    'SELECT coalesce((extract(epoch FROM t) * 1000000)::bigint, 0)';

CREATE FUNCTION chaos_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO chaos_audit (op, id, old_locked, old_attempts, old_retries, old_due,
            new_locked, new_attempts, new_retries, new_due, canvas_id, module, name, modifier, parent_id, value)
        VALUES ('I', NEW.id, 0, 0, 0, 0,
            chaos_micros(NEW.locked_at), NEW.attempts, NEW.retries, chaos_micros(NEW.delay_until),
            NEW.canvas_id, NEW.module, NEW.name, NEW.modifier, NEW.parent_id, NEW.value);
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO chaos_audit (op, id, old_locked, old_attempts, old_retries, old_due,
            new_locked, new_attempts, new_retries, new_due)
        VALUES ('D', OLD.id, chaos_micros(OLD.locked_at), OLD.attempts, OLD.retries, chaos_micros(OLD.delay_until), 0, 0, 0, 0);
    ELSE
        INSERT INTO chaos_audit (op, id, old_locked, old_attempts, old_retries, old_due,
            new_locked, new_attempts, new_retries, new_due, new_together, value)
        VALUES ('U', OLD.id, chaos_micros(OLD.locked_at), OLD.attempts, OLD.retries, chaos_micros(OLD.delay_until),
            chaos_micros(NEW.locked_at), NEW.attempts, NEW.retries, chaos_micros(NEW.delay_until),
            CASE WHEN NEW.begun THEN coalesce(NEW.suspect, 0) ELSE 0 END,
            CASE WHEN (OLD.id, OLD.canvas_id, OLD.module, OLD.name, OLD.modifier, OLD.value)
                  IS DISTINCT FROM (NEW.id, NEW.canvas_id, NEW.module, NEW.name, NEW.modifier, NEW.value) THEN NEW.value END);
    END IF;
    RETURN NULL;
END $$;

CREATE TABLE chaos_grants (
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    window_at timestamptz NOT NULL,
    writer    text        NOT NULL DEFAULT current_setting('application_name'),
    canvas_id uuid        NOT NULL,
    module    text        NOT NULL,
    name      text        NOT NULL,
    runs      bigint      NOT NULL
);

CREATE FUNCTION chaos_counts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chaos_grants (window_at, canvas_id, module, name, runs)
    VALUES (NEW.minute_at, NEW.canvas_id, NEW.module, NEW.name,
        NEW.day_count - CASE WHEN NEW.day_at = OLD.day_at THEN OLD.day_count ELSE 0 END);
    RETURN NULL;
END $$;

CREATE FUNCTION chaos_rewrites() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chaos_rewritten (what, old) VALUES (TG_TABLE_NAME || ' ' || TG_OP, to_jsonb(OLD));
    RETURN NULL;
END $$;

CREATE TRIGGER chaos AFTER INSERT OR UPDATE OR DELETE ON events_v2 FOR EACH ROW EXECUTE FUNCTION chaos_events();
CREATE TRIGGER chaos AFTER UPDATE ON rate_counters FOR EACH ROW EXECUTE FUNCTION chaos_counts();
CREATE TRIGGER chaos AFTER UPDATE OR DELETE ON event_log FOR EACH ROW EXECUTE FUNCTION chaos_rewrites();
CREATE TRIGGER chaos AFTER UPDATE OR DELETE ON cron_records FOR EACH ROW EXECUTE FUNCTION chaos_rewrites();`

// rowState is what the checker needs of a row of events_v2.
type rowState struct {
	lockedMicros int64 // 0: not locked
	attempts     int32
	retries      int32
	dueMicros    int64
	together     int32 // of a suspect whose run has begun: how many ran in its worker
}

// The operations of a change.
const (
	opInsert = 'I'
	opUpdate = 'U'
	opDelete = 'D'
)

// change is one change of a row of events_v2.
type change struct {
	at     time.Time
	writer string
	op     byte
	old    rowState
	new    rowState
	// rewritten reports whether an update changed what nothing may change.
	rewritten bool
}

// entered is how an event entered the queue.
type entered struct {
	canvas  eventqueue.CanvasID
	handler eventqueue.HandlerKey
	parent  eventqueue.EventID // 0: none
	value   string
}

// scope is what a rule or a limit is for.
func (e *entered) scope() eventqueue.Scope {
	return eventqueue.Scope{Canvas: e.canvas, Module: e.handler.Module, Name: e.handler.Name}
}

// ending is the row of event_log of an event.
type ending struct {
	failed    bool
	cancelled bool
	retries   int32
	attempts  int32
	lastError string
	value     string
}

// story is all that the database knows of one event.
type story struct {
	id      eventqueue.EventID
	entered *entered // nil when no insert is on record
	changes []change
	ending  *ending // nil when there is none
	effects []int32 // the attempts that wrote one
}

// task is what the event asks for. Events of cron just succeed.
func (s *story) task() (task.Task, error) {
	if s.entered.handler.Module == cronchecker.Module {
		return task.Task{Do: task.Succeed}, nil
	}
	return task.Parse([]byte(s.entered.value))
}

const readAuditSQL = `
SELECT id, at, writer, op, old_locked, old_attempts, old_retries, old_due,
       new_locked, new_attempts, new_retries, new_due, new_together, canvas_id,
       coalesce(module, ''), coalesce(name, ''), coalesce(modifier, ''), coalesce(parent_id, 0), value
  FROM chaos_audit
 ORDER BY id, seq`

const readLogSQL = `
SELECT id, status = 'FAILED', status = 'CANCELLED', retries, attempts, coalesce(last_error, ''), value
  FROM event_log`

const readEffectsSQL = `
SELECT event_id, attempt
  FROM chaos_effects`

// heartbeatSuffix marks the connection on which a worker renews its locks: what it
// writes the worker has written.
const heartbeatSuffix = "-heartbeat"

// readStories reads the record of all events.
func readStories(ctx context.Context, pool *pgxpool.Pool) (map[eventqueue.EventID]*story, error) {
	stories := map[eventqueue.EventID]*story{}
	of := func(id eventqueue.EventID) *story {
		s := stories[id]
		if s == nil {
			s = &story{id: id}
			stories[id] = s
		}
		return s
	}
	err := errors.Join(readChanges(ctx, pool, of), readEndings(ctx, pool, of), readEffects(ctx, pool, of))
	if err != nil {
		return nil, fmt.Errorf("read the record of the database: %w", err)
	}
	return stories, nil
}

func readChanges(ctx context.Context, pool *pgxpool.Pool, of func(eventqueue.EventID) *story) error {
	rows, _ := pool.Query(ctx, readAuditSQL) // ForEachRow returns its error
	var (
		id     eventqueue.EventID
		c      change
		op     string
		canvas *[16]byte
		e      entered
		value  *string
	)
	writers := map[string]string{} // one copy of each name
	targets := []any{&id, &c.at, &c.writer, &op,
		&c.old.lockedMicros, &c.old.attempts, &c.old.retries, &c.old.dueMicros,
		&c.new.lockedMicros, &c.new.attempts, &c.new.retries, &c.new.dueMicros, &c.new.together, &canvas,
		&e.handler.Module, &e.handler.Name, &e.handler.Modifier, &e.parent, &value}
	_, err := pgx.ForEachRow(rows, targets, func() error {
		s := of(id)
		c.writer = strings.TrimSuffix(c.writer, heartbeatSuffix)
		if _, known := writers[c.writer]; !known {
			writers[c.writer] = c.writer
		}
		c.writer, c.op = writers[c.writer], op[0]
		c.rewritten = c.op == opUpdate && value != nil
		if c.op == opInsert {
			s.entered = &entered{*canvas, e.handler, e.parent, *value}
		}
		s.changes = append(s.changes, c)
		return nil
	})
	return err
}

func readEndings(ctx context.Context, pool *pgxpool.Pool, of func(eventqueue.EventID) *story) error {
	var id eventqueue.EventID
	var e ending
	rows, _ := pool.Query(ctx, readLogSQL) // ForEachRow returns its error
	_, err := pgx.ForEachRow(rows, []any{&id, &e.failed, &e.cancelled, &e.retries, &e.attempts, &e.lastError, &e.value}, func() error {
		copied := e
		of(id).ending = &copied
		return nil
	})
	return err
}

func readEffects(ctx context.Context, pool *pgxpool.Pool, of func(eventqueue.EventID) *story) error {
	var id eventqueue.EventID
	var attempt int32
	rows, _ := pool.Query(ctx, readEffectsSQL) // ForEachRow returns its error
	_, err := pgx.ForEachRow(rows, []any{&id, &attempt}, func() error {
		of(id).effects = append(of(id).effects, attempt)
		return nil
	})
	return err
}

const readRewrittenSQL = `
SELECT to_char(at, 'HH24:MI:SS.MS') || ' ' || writer || ' ' || what || ' ' || old
  FROM chaos_rewritten`

// readRewritten lists the changes of rows that must never change.
func readRewritten(ctx context.Context, pool *pgxpool.Pool) ([]string, error) {
	rows, _ := pool.Query(ctx, readRewrittenSQL) // CollectRows returns its error
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
