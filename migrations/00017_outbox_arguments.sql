-- Arguments of SQL: send_to_outbox refuses each argument with = that is no known name, stands in the place of the module, is given twice or
-- has a value that is no interval, and names it. events_emit refuses an empty key; no key is NULL, the default.
-- Locks: nothing.

-- +goose Up

-- What is wrong with the arguments of a trigger send_to_outbox that have a =, as {what it has, hint}, or NULL. named matches those that it knows.
-- The first is a column, which may have any name.
-- +goose StatementBegin
CREATE FUNCTION events_mistake_in_arguments(given text[], named text) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    argument text;
    name     text;
    before   text[] := '{}';
BEGIN
    IF strpos(given[2], '=') > 0 THEN
        RETURN ARRAY[format('the argument %s in the place of the module', to_json(given[2])), 'Give canvas and module first, and then the arguments with names.'];
    END IF;
    FOREACH argument IN ARRAY coalesce(given[3:], '{}') LOOP
        CONTINUE WHEN strpos(argument, '=') = 0;
        name := split_part(argument, '=', 1);
        IF argument !~ named THEN
            RETURN ARRAY[format('the argument %s, and the function knows no such name', to_json(argument)),
                'It knows ordering_key=column, unique_key=column, unique_for, unique_mode, max_wait and delay, each with = and its value, without spaces before it.'];
        ELSIF name = ANY (before) THEN
            RETURN ARRAY[format('the argument %s more than once', name), 'Give it once.'];
        ELSIF name IN ('unique_for', 'max_wait', 'delay') THEN
            BEGIN
                PERFORM substr(argument, strpos(argument, '=') + 1)::interval;
            EXCEPTION WHEN invalid_datetime_format OR datetime_field_overflow OR interval_field_overflow THEN
                RETURN ARRAY[format('the argument %s, which is no interval', to_json(argument)), format('Write it as Postgres does, such as %s=1 minute.', name)];
            END;
        END IF;
        before := before || name;
    END LOOP;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $do$
DECLARE
    function regprocedure;
    script   text;
    change   text[];
    role     text;
BEGIN
    -- Whoever emits in SQL goes on doing so where functions are not for PUBLIC, before eventctl migrate roles is run again.
    FOR role IN
        SELECT CASE granted.grantee WHEN 0 THEN 'PUBLIC' ELSE granted.grantee::regrole::text END
        FROM pg_proc p CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS granted
        WHERE p.oid = 'events_mistake_in_keys'::regproc AND granted.privilege_type = 'EXECUTE'
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION events_mistake_in_arguments TO %s', role);
    END LOOP;
    PERFORM set_config('intervalstyle', 'postgres', true); -- for the defaults in the definitions
    FOREACH change SLICE 1 IN ARRAY ARRAY[
            ['send_to_outbox',
             $from$    unknown  text := CASE WHEN TG_NARGS > 2 THEN (SELECT a FROM unnest(placed[3:]) AS a WHERE a ~* '^\s*[a-z_]+\s*=' LIMIT 1) END;
$from$,
             $to$    wrong    text[] := events_mistake_in_arguments(TG_ARGV[0:], named);
$to$],
            ['send_to_outbox',
             $from$    ELSIF unknown IS NOT NULL THEN
        RAISE EXCEPTION '%: trigger % has the argument %, and the function knows no such name', source, TG_NAME, to_json(unknown)
            USING ERRCODE = 'trigger_protocol_violated', HINT = 'It knows ordering_key=column, unique_key=column, unique_for, unique_mode, max_wait and delay, '
                'each with = and its value, without spaces before it.';
$from$,
             $to$    ELSIF wrong IS NOT NULL THEN
        RAISE EXCEPTION '%: trigger % has %', source, TG_NAME, wrong[1] USING ERRCODE = 'trigger_protocol_violated', HINT = wrong[2];
$to$],
            ['events_mistake_in_keys',
             $from$        WHEN ordering_key <> '' AND events_mistake_in_key('ordering_key', ordering_key) IS NOT NULL THEN$from$,
             $to$        WHEN ordering_key = '' THEN ARRAY['ordering_key', 'is empty', 'Leave it out, or give NULL, for an event without one.']
        WHEN unique_key = '' THEN ARRAY['unique_key', 'is empty', 'Leave it out, or give NULL, for an event without one.']
        WHEN ordering_key <> '' AND events_mistake_in_key('ordering_key', ordering_key) IS NOT NULL THEN$to$],
            ['events_emit', $from$ordering_key text DEFAULT ''::text, unique_key text DEFAULT ''::text$from$,
             $to$ordering_key text DEFAULT NULL::text, unique_key text DEFAULT NULL::text$to$],
            ['events_emit_from', $from$ordering_key text DEFAULT ''::text, unique_key text DEFAULT ''::text$from$,
             $to$ordering_key text DEFAULT NULL::text, unique_key text DEFAULT NULL::text$to$]]
    LOOP
        FOR function IN
            SELECT p.oid FROM pg_proc p
            WHERE p.pronamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'events_v2'::regclass) AND p.proname = change[1]
              AND (p.proname NOT LIKE 'events\_emit%' OR pg_get_function_arguments(p.oid) LIKE '%, parent_id bigint%')
        LOOP
            script := pg_get_functiondef(function);
            IF strpos(script, change[2]) = 0 THEN
                RAISE EXCEPTION '% is not as this migration expects it: it lacks %', function, change[2];
            END IF;
            EXECUTE replace(script, change[2], change[3]);
        END LOOP;
    END LOOP;
END
$do$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
DO $do$
DECLARE
    function regprocedure;
    script   text;
    change   text[];
BEGIN
    PERFORM set_config('intervalstyle', 'postgres', true); -- for the defaults in the definitions
    FOREACH change SLICE 1 IN ARRAY ARRAY[
            ['send_to_outbox',
             $from$    wrong    text[] := events_mistake_in_arguments(TG_ARGV[0:], named);
$from$,
             $to$    unknown  text := CASE WHEN TG_NARGS > 2 THEN (SELECT a FROM unnest(placed[3:]) AS a WHERE a ~* '^\s*[a-z_]+\s*=' LIMIT 1) END;
$to$],
            ['send_to_outbox',
             $from$    ELSIF wrong IS NOT NULL THEN
        RAISE EXCEPTION '%: trigger % has %', source, TG_NAME, wrong[1] USING ERRCODE = 'trigger_protocol_violated', HINT = wrong[2];
$from$,
             $to$    ELSIF unknown IS NOT NULL THEN
        RAISE EXCEPTION '%: trigger % has the argument %, and the function knows no such name', source, TG_NAME, to_json(unknown)
            USING ERRCODE = 'trigger_protocol_violated', HINT = 'It knows ordering_key=column, unique_key=column, unique_for, unique_mode, max_wait and delay, '
                'each with = and its value, without spaces before it.';
$to$],
            ['events_mistake_in_keys',
             $from$        WHEN ordering_key = '' THEN ARRAY['ordering_key', 'is empty', 'Leave it out, or give NULL, for an event without one.']
        WHEN unique_key = '' THEN ARRAY['unique_key', 'is empty', 'Leave it out, or give NULL, for an event without one.']
$from$,
             $to$$to$],
            ['events_emit', $from$ordering_key text DEFAULT NULL::text, unique_key text DEFAULT NULL::text$from$,
             $to$ordering_key text DEFAULT ''::text, unique_key text DEFAULT ''::text$to$],
            ['events_emit_from', $from$ordering_key text DEFAULT NULL::text, unique_key text DEFAULT NULL::text$from$,
             $to$ordering_key text DEFAULT ''::text, unique_key text DEFAULT ''::text$to$]]
    LOOP
        FOR function IN
            SELECT p.oid FROM pg_proc p
            WHERE p.pronamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'events_v2'::regclass) AND p.proname = change[1]
              AND (p.proname NOT LIKE 'events\_emit%' OR pg_get_function_arguments(p.oid) LIKE '%, parent_id bigint%')
        LOOP
            script := pg_get_functiondef(function);
            IF strpos(script, change[2]) = 0 THEN
                RAISE EXCEPTION '% is not as this migration expects it: it lacks %', function, change[2];
            END IF;
            EXECUTE replace(script, change[2], change[3]);
        END LOOP;
    END LOOP;
END
$do$;
-- +goose StatementEnd

DROP FUNCTION events_mistake_in_arguments;
