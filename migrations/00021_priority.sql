-- Priority: events of high priority go before others, and those of low priority behind them. An emit with unique_mode replace and without
-- max_wait has its delay, and is not due at once.
-- Locks: events_v2, ACCESS EXCLUSIVE, while four indexes are built, for which the table is read four times: emits, claims and ends wait.

-- +goose Up

CREATE TYPE event_priority AS ENUM ('high', 'low');

-- The column and the indexes below stand in the way of no HOT update: a claim changes none of it.
ALTER TABLE events_v2 ADD COLUMN priority event_priority; -- NULL: normal

-- The events of a handler that have a priority: workers that are behind look there.
CREATE INDEX events_v2_priority ON events_v2 (priority, canvas_id, module, name, id) WHERE priority IS NOT NULL;

-- The pending notifications, now one index of those with a priority and two of those without: a relay takes what is high first, and of
-- what is low a few of each handler at a time. So neither is behind a million of the other.
CREATE INDEX events_v2_pending_priority ON events_v2 (priority, canvas_id, module, name, delay_until, id) WHERE notified_at IS NULL AND priority IS NOT NULL;
DROP INDEX events_v2_pending;
CREATE INDEX events_v2_pending ON events_v2 (delay_until, id) WHERE notified_at IS NULL AND priority IS NULL;
DROP INDEX events_v2_pending_canvas;
CREATE INDEX events_v2_pending_canvas ON events_v2 (canvas_id, delay_until, id) WHERE notified_at IS NULL AND priority IS NULL;

-- +goose StatementBegin
-- Sets the priority of an event, high, normal or low, and returns the event. It is for the transaction that has emitted it, so that
-- a role that emits can change no other: SELECT events_prioritize(events_emit(…), 'high'). What was there before, under its unique
-- key, stays as it is.
CREATE FUNCTION events_prioritize(event bigint, priority text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    epoch  CONSTANT bigint := 4294967296;
    own    CONSTANT bigint := pg_current_xact_id()::text::bigint;
    writer bigint; -- the transaction that has written the row last
BEGIN
    IF event IS NULL THEN
        RETURN NULL;
    ELSIF priority IS NULL OR priority NOT IN ('high', 'normal', 'low') THEN
        RAISE EXCEPTION 'events_prioritize: the priority is %', coalesce(to_json(priority)::text, 'NULL')
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Use high, normal or low.';
    END IF;
    -- What is visible, and was written by a transaction that has not ended, was written by this one, or by a savepoint of it, whose
    -- number is higher; and what this one has emitted is no older than it is.
    SELECT own + (e.xmin::text::bigint - own % epoch + epoch) % epoch INTO writer FROM events_v2 e
    WHERE e.id = event AND e.attempts = 0 AND e.locked_at IS NULL AND e.enqueued_at >= transaction_timestamp();
    IF writer IS NULL OR writer > own + epoch / 2 OR pg_xact_status(writer::text::xid8) IS DISTINCT FROM 'in progress' THEN
        RAISE NOTICE 'event % is not one that this transaction has emitted, and has the priority that it had', event;
        RETURN event;
    END IF;
    UPDATE events_v2 e SET priority = nullif(events_prioritize.priority, 'normal')::event_priority,
        notified_at = CASE WHEN events_prioritize.priority <> 'low' OR e.group_state = 1 THEN e.notified_at END
    WHERE e.id = event AND e.priority::text IS DISTINCT FROM nullif(events_prioritize.priority, 'normal');
    RETURN event;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $do$
DECLARE
    schema text := (SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'events_v2'::regclass);
    role   text;
BEGIN
    EXECUTE format('ALTER FUNCTION events_prioritize SET search_path = pg_catalog, %s, pg_temp', schema);
    REVOKE EXECUTE ON FUNCTION events_prioritize FROM PUBLIC;
    -- Whoever emits goes on doing so, before eventctl migrate roles is run again.
    FOR role IN
        SELECT DISTINCT granted.grantee::regrole::text FROM pg_attribute a CROSS JOIN LATERAL aclexplode(a.attacl) AS granted
        WHERE a.attrelid = 'events_v2'::regclass AND a.attname = 'notified_at' AND granted.privilege_type = 'INSERT' AND granted.grantee <> 0
    LOOP
        EXECUTE format('GRANT INSERT (priority), SELECT (priority) ON events_v2 TO %s', role);
    END LOOP;
    FOR role IN
        SELECT DISTINCT granted.grantee::regrole::text FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) AS granted
        WHERE p.oid = 'events_v2_emit_keyed'::regproc AND granted.grantee NOT IN (0, p.proowner)
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION events_prioritize TO %s', role);
    END LOOP;
END
$do$;
-- +goose StatementEnd

-- Of a missing bound greatest made the present time.
-- +goose StatementBegin
DO $do$
DECLARE
    script text := pg_get_functiondef('events_v2_emit_ending'::regproc);
    bound  CONSTANT text := 'greatest(waiting.enqueued_at + max_wait, at)';
BEGIN
    IF strpos(script, bound) = 0 THEN
        RAISE EXCEPTION 'events_v2_emit_ending is not as this migration expects it: it lacks %', bound;
    END IF;
    EXECUTE replace(script, bound, 'CASE WHEN max_wait IS NOT NULL THEN ' || bound || ' END');
END
$do$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
DO $do$
BEGIN
    EXECUTE replace(pg_get_functiondef('events_v2_emit_ending'::regproc),
        'CASE WHEN max_wait IS NOT NULL THEN greatest(waiting.enqueued_at + max_wait, at) END', 'greatest(waiting.enqueued_at + max_wait, at)');
END
$do$;
-- +goose StatementEnd
DROP FUNCTION events_prioritize;
DROP INDEX events_v2_pending_canvas;
CREATE INDEX events_v2_pending_canvas ON events_v2 (canvas_id, delay_until, id) WHERE notified_at IS NULL;
DROP INDEX events_v2_pending;
CREATE INDEX events_v2_pending ON events_v2 (delay_until, id) WHERE notified_at IS NULL;
DROP INDEX events_v2_pending_priority;
DROP INDEX events_v2_priority;
ALTER TABLE events_v2 DROP COLUMN priority;
DROP TYPE event_priority;
