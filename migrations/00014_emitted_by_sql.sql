-- Emitted by SQL: the events that events_emit, send_to_outbox and INSERT emit are counted as emitted, once each, as those that programs count.
-- Locks: events_v2, ACCESS EXCLUSIVE, for a moment: emits, claims and ends wait.

-- +goose Up

-- Whether SQL has emitted the event, and not a program, which counts by itself and writes NULL.
ALTER TABLE events_v2 ADD COLUMN by_sql boolean;
ALTER TABLE events_v2 ALTER COLUMN by_sql SET DEFAULT true;

-- One row for each event that SQL has emitted, until a relay has added it to event_minutes, once a minute. Each transaction writes rows of its
-- own, so that none waits for another.
CREATE TABLE event_emits (
    canvas_id uuid NOT NULL,
    module    text NOT NULL,
    name      text NOT NULL
);

-- It runs with the rights of its owner, so that a role that emits needs none on the table.
-- +goose StatementBegin
CREATE FUNCTION events_v2_emitted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO event_emits (canvas_id, module, name) VALUES (NEW.canvas_id, NEW.module, NEW.name);
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- What programs of the version before emit has the default as well: those that publish themselves are known by their notification.
CREATE TRIGGER events_v2_emitted AFTER INSERT ON events_v2
    FOR EACH ROW WHEN (NEW.by_sql AND NEW.notified_at IS NULL) EXECUTE FUNCTION events_v2_emitted();

CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers',
    'event_minutes', 'event_hours', 'access_tokens', 'audit_log', 'bulk_operations', 'webhook_minutes', 'webhook_sources',
    'event_minute_totals', 'ended_sessions', 'unique_heirs', 'event_hour_totals', 'event_emits'];

-- events_v2_emit_keyed emits for programs and for events_emit_from: there notify_within is less than 0, so that every notification is pending.
-- +goose StatementBegin
DO $do$
DECLARE
    schema   text := (SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'events_v2'::regclass);
    function text;
    change   text[];
    script   text;
    role     text;
BEGIN
    PERFORM set_config('intervalstyle', 'postgres', true); -- for the defaults in the definitions
    FOREACH function IN ARRAY ARRAY['events_v2_emit_keyed', 'events_emit_from'] LOOP
        SELECT pg_get_functiondef(p.oid) INTO STRICT script FROM pg_proc p WHERE p.pronamespace = schema::regnamespace AND p.proname = function;
        FOREACH change SLICE 1 IN ARRAY CASE function WHEN 'events_v2_emit_keyed' THEN ARRAY[
            [$from$        ordering_key, attributes, parent_id)
    VALUES (id, canvas, $from$,
             $to$        ordering_key, attributes, parent_id, by_sql)
    VALUES (id, canvas, $to$],
            [$from$ELSE 3 END, ordering_key, attributes, parent_id);$from$,
             $to$ELSE 3 END, ordering_key, attributes, parent_id, CASE WHEN notify_within < '0' THEN true END);$to$]]
            ELSE ARRAY[
            [$from$unique_mode, max_wait, NULL,$from$,
             $to$unique_mode, max_wait, '-1 second',$to$]] END
        LOOP
            IF strpos(script, change[1]) = 0 THEN
                RAISE EXCEPTION '% is not as this migration expects it: it lacks %', function, change[1];
            END IF;
            script := replace(script, change[1], change[2]);
        END LOOP;
        EXECUTE script;
    END LOOP;

    EXECUTE format('ALTER FUNCTION events_v2_emitted SET search_path = pg_catalog, %s, pg_temp', schema);
    REVOKE EXECUTE ON FUNCTION events_v2_emitted FROM PUBLIC;
    -- Whoever emits goes on doing so, before eventctl migrate roles is run again.
    FOR role IN
        SELECT DISTINCT granted.grantee::regrole::text FROM pg_attribute a CROSS JOIN LATERAL aclexplode(a.attacl) AS granted
        WHERE a.attrelid = 'events_v2'::regclass AND a.attname = 'notified_at' AND granted.privilege_type = 'INSERT' AND granted.grantee <> 0
    LOOP
        EXECUTE format('GRANT INSERT (by_sql) ON events_v2 TO %s', role);
    END LOOP;
END
$do$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
DO $do$
DECLARE
    schema   text := (SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'events_v2'::regclass);
    function text;
    change   text[];
    script   text;
BEGIN
    PERFORM set_config('intervalstyle', 'postgres', true); -- for the defaults in the definitions
    FOREACH function IN ARRAY ARRAY['events_v2_emit_keyed', 'events_emit_from'] LOOP
        SELECT pg_get_functiondef(p.oid) INTO STRICT script FROM pg_proc p WHERE p.pronamespace = schema::regnamespace AND p.proname = function;
        FOREACH change SLICE 1 IN ARRAY CASE function WHEN 'events_v2_emit_keyed' THEN ARRAY[
            [$from$        ordering_key, attributes, parent_id, by_sql)
    VALUES (id, canvas, $from$,
             $to$        ordering_key, attributes, parent_id)
    VALUES (id, canvas, $to$],
            [$from$ELSE 3 END, ordering_key, attributes, parent_id, CASE WHEN notify_within < '0' THEN true END);$from$,
             $to$ELSE 3 END, ordering_key, attributes, parent_id);$to$]]
            ELSE ARRAY[
            [$from$unique_mode, max_wait, '-1 second',$from$,
             $to$unique_mode, max_wait, NULL,$to$]] END
        LOOP
            IF strpos(script, change[1]) = 0 THEN
                RAISE EXCEPTION '% is not as this migration expects it: it lacks %', function, change[1];
            END IF;
            script := replace(script, change[1], change[2]);
        END LOOP;
        EXECUTE script;
    END LOOP;
END
$do$;
-- +goose StatementEnd

CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers',
    'event_minutes', 'event_hours', 'access_tokens', 'audit_log', 'bulk_operations', 'webhook_minutes', 'webhook_sources',
    'event_minute_totals', 'ended_sessions', 'unique_heirs', 'event_hour_totals'];

DROP TRIGGER events_v2_emitted ON events_v2;
DROP FUNCTION events_v2_emitted;
DROP TABLE event_emits;
ALTER TABLE events_v2 DROP COLUMN by_sql;
