-- Rights of keys: only who ends events may say that the event of a unique key ends, and send_to_outbox refuses names of arguments
-- that it does not know.
-- Locks: nothing.

-- +goose Up
-- +goose StatementBegin
DO $do$
DECLARE
    schema text := (SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'events_v2'::regclass);
    owner  oid := (SELECT proowner FROM pg_proc WHERE oid = 'events_v2_emit_keyed'::regproc);
    role   oid;
    script text;
BEGIN
    -- What it does, it does under another name, for those who may say which event ends.
    ALTER FUNCTION events_v2_emit_keyed RENAME TO events_v2_emit_ending;
    EXECUTE replace(pg_get_functiondef('events_v2_emit_ending'::regproc), 'events_v2_emit_keyed', 'events_v2_emit_ending');
    CREATE FUNCTION events_v2_emit_keyed(canvas uuid, module text, name text, modifier text, value text, delay interval, delay_until timestamptz,
        attributes jsonb, parent_id bigint, ordering_key text, unique_key text, unique_seconds integer, unique_mode text, max_wait interval,
        notify_within interval, channels text[], OUT id bigint, OUT notified boolean, OUT repeats boolean)
    LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
        SELECT e.id, e.notified, e.repeats INTO id, notified, repeats
        FROM events_v2_emit_ending(canvas, module, name, modifier, value, delay, delay_until, attributes, parent_id, ordering_key,
            unique_key, unique_seconds, unique_mode, max_wait, notify_within, channels, NULL) AS e;
    END
    $$;
    EXECUTE format('ALTER FUNCTION events_v2_emit_keyed SET search_path = pg_catalog, %s, pg_temp', schema);
    IF owner <> (SELECT oid FROM pg_roles WHERE rolname = current_user) THEN
        EXECUTE format('ALTER FUNCTION events_v2_emit_keyed OWNER TO %s', owner::regrole);
    END IF;
    REVOKE EXECUTE ON FUNCTION events_v2_emit_keyed, events_v2_emit_ending FROM PUBLIC;
    -- Whoever emits with keys, and whoever ends events, goes on doing so, before eventctl migrate roles is run again.
    FOR role IN
        SELECT granted.grantee FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) AS granted
        WHERE p.oid = 'events_v2_emit_ending'::regproc AND granted.grantee NOT IN (0, owner)
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION events_v2_emit_keyed TO %s', role::regrole);
        IF NOT has_table_privilege(role, 'events_v2', 'DELETE') THEN
            EXECUTE format('REVOKE EXECUTE ON FUNCTION events_v2_emit_ending FROM %s', role::regrole);
        END IF;
    END LOOP;

    script := pg_get_functiondef('events_emit_from'::regproc);
    IF strpos(script, $$ARRAY[events_v2_channel('events_v2_pending')], NULL)).id$$) = 0 THEN
        RAISE EXCEPTION 'events_emit_from is not as this migration expects it: it does not call events_v2_emit_keyed';
    END IF;
    EXECUTE replace(script, $$ARRAY[events_v2_channel('events_v2_pending')], NULL)).id$$, $$ARRAY[events_v2_channel('events_v2_pending')])).id$$);
END
$do$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $do$
DECLARE
    script text := pg_get_functiondef('send_to_outbox'::regproc);
    change text[];
BEGIN
    FOREACH change SLICE 1 IN ARRAY ARRAY[
            [$from$    modifier text := coalesce(placed[3], '_');$from$,
             $to$    unknown  text := CASE WHEN TG_NARGS > 2 THEN (SELECT a FROM unnest(placed[3:]) AS a WHERE a ~* '^\s*[a-z_]+\s*=' LIMIT 1) END;
    modifier text := coalesce(placed[3], '_');$to$],
            [$from$    ELSIF TG_NARGS < 2 OR cardinality(placed) > 4$from$,
             $to$    ELSIF unknown IS NOT NULL THEN
        RAISE EXCEPTION '%: trigger % has the argument %, and the function knows no such name', source, TG_NAME, to_json(unknown)
            USING ERRCODE = 'trigger_protocol_violated', HINT = 'It knows ordering_key=column, unique_key=column, unique_for, unique_mode, max_wait and delay, '
                'each with = and its value, without spaces before it.';
    ELSIF TG_NARGS < 2 OR cardinality(placed) > 4$to$]]
    LOOP
        IF strpos(script, change[1]) = 0 THEN
            RAISE EXCEPTION 'send_to_outbox is not as this migration expects it: it lacks %', change[1];
        END IF;
        script := replace(script, change[1], change[2]);
    END LOOP;
    EXECUTE script;
END
$do$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
DO $do$
DECLARE
    script text := pg_get_functiondef('send_to_outbox'::regproc);
    change text[];
BEGIN
    FOREACH change SLICE 1 IN ARRAY ARRAY[
            [$from$    unknown  text := CASE WHEN TG_NARGS > 2 THEN (SELECT a FROM unnest(placed[3:]) AS a WHERE a ~* '^\s*[a-z_]+\s*=' LIMIT 1) END;
$from$,
             $to$$to$],
            [$from$    ELSIF unknown IS NOT NULL THEN
        RAISE EXCEPTION '%: trigger % has the argument %, and the function knows no such name', source, TG_NAME, to_json(unknown)
            USING ERRCODE = 'trigger_protocol_violated', HINT = 'It knows ordering_key=column, unique_key=column, unique_for, unique_mode, max_wait and delay, '
                'each with = and its value, without spaces before it.';
$from$,
             $to$$to$]]
    LOOP
        IF strpos(script, change[1]) = 0 THEN
            RAISE EXCEPTION 'send_to_outbox is not as this migration expects it: it lacks %', change[1];
        END IF;
        script := replace(script, change[1], change[2]);
    END LOOP;
    EXECUTE script;
END
$do$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $do$
DECLARE
    roles  oid[] := ARRAY(
        SELECT granted.grantee FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) AS granted
        WHERE p.oid = 'events_v2_emit_keyed'::regproc AND granted.grantee NOT IN (0, p.proowner));
    role   oid;
    script text := pg_get_functiondef('events_emit_from'::regproc);
BEGIN
    IF strpos(script, $$ARRAY[events_v2_channel('events_v2_pending')])).id$$) = 0 THEN
        RAISE EXCEPTION 'events_emit_from is not as this migration expects it: it does not call events_v2_emit_keyed';
    END IF;
    EXECUTE replace(script, $$ARRAY[events_v2_channel('events_v2_pending')])).id$$, $$ARRAY[events_v2_channel('events_v2_pending')], NULL)).id$$);
    DROP FUNCTION events_v2_emit_keyed;
    ALTER FUNCTION events_v2_emit_ending RENAME TO events_v2_emit_keyed;
    EXECUTE replace(pg_get_functiondef('events_v2_emit_keyed'::regproc), 'events_v2_emit_ending', 'events_v2_emit_keyed');
    FOREACH role IN ARRAY roles LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION events_v2_emit_keyed TO %s', role::regrole);
    END LOOP;
END
$do$;
-- +goose StatementEnd
