-- events_emit takes attributes and the parent, and the setting events_v2.attributes gives
-- attributes to all events that a session or a transaction emits by SQL, triggers included.
-- Who may run the functions stays as it was.
-- Locks: none on tables.

-- +goose Up

-- What is wrong with the attributes or the parent of an event, as {argument, problem, hint},
-- or NULL.
-- +goose StatementBegin
CREATE FUNCTION events_mistake_in_origin(attributes jsonb, parent_id bigint) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    size    bigint;
    pair    record;
    control text;
BEGIN
    IF parent_id < 1 THEN
        RETURN ARRAY['parent_id', format('is %s, the id of no event', parent_id), 'Leave it out for an event without a parent.'];
    ELSIF attributes IS NULL THEN
        RETURN NULL;
    ELSIF jsonb_typeof(attributes) <> 'object' THEN
        RETURN ARRAY['attributes', format('is JSON of the type %s', jsonb_typeof(attributes)), 'Give an object of strings, as in {"user": "ada"}.'];
    ELSIF (SELECT count(*) FROM jsonb_object_keys(attributes)) > 16 THEN
        RETURN ARRAY['attributes', format('has %s pairs: the limit is 16', (SELECT count(*) FROM jsonb_object_keys(attributes))),
            'Leave some out; those of the setting events_v2.attributes count as well.'];
    END IF;
    size := (SELECT sum(octet_length(convert_to(key, 'UTF8')) + coalesce(octet_length(convert_to(value, 'UTF8')), 0)) FROM jsonb_each_text(attributes));
    IF size > 8192 THEN
        RETURN ARRAY['attributes', format('has %s bytes of keys and values: the limit is 8192', size), 'Keep large data in the value of the event.'];
    END IF;
    FOR pair IN
        SELECT e.key, e.value #>> '{}' AS value, jsonb_typeof(e.value) AS type FROM jsonb_each(attributes) AS e ORDER BY e.key COLLATE "C"
    LOOP
        IF pair.key COLLATE "C" !~ '^[a-z0-9_.-]{1,64}$' THEN
            RETURN ARRAY['attributes', format('has the key %s', to_json(pair.key)),
                'A key has 1 to 64 lower-case letters (a to z), digits, _, . and -.'];
        ELSIF pair.type <> 'string' THEN
            RETURN ARRAY['attributes', format('has JSON of the type %s at %s', pair.type, to_json(pair.key)), 'Values are strings: put it in quotes.'];
        ELSIF octet_length(convert_to(pair.value, 'UTF8')) > 1024 THEN
            RETURN ARRAY['attributes', format('has %s bytes at %s: the limit of a value is 1024', octet_length(convert_to(pair.value, 'UTF8')), to_json(pair.key)),
                'Keep large data in the value of the event.'];
        END IF;
        control := substring(pair.value COLLATE "C" FROM '[\u0001-\u001f\u007f-\u009f]');
        IF control IS NOT NULL THEN
            RETURN ARRAY['attributes', format('has the control character U+%s at %s', upper(lpad(to_hex(ascii(control)), 4, '0')), to_json(pair.key)),
                'Leave out line ends, tabs and other control characters.'];
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- The attributes of an emit together with those of the setting, which they replace key by
-- key. NULL for none.
-- +goose StatementBegin
CREATE FUNCTION events_emit_attributes(source text, attributes jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    setting text := current_setting('events_v2.attributes', true);
BEGIN
    IF coalesce(setting, '') = '' THEN
        RETURN nullif(attributes, '{}');
    END IF;
    IF jsonb_typeof(setting::jsonb) = 'object' AND coalesce(jsonb_typeof(attributes), 'object') = 'object' THEN
        RETURN nullif(setting::jsonb || coalesce(attributes, '{}'), '{}');
    END IF;
    RETURN coalesce(attributes, setting::jsonb); -- which is refused
EXCEPTION WHEN invalid_text_representation OR untranslatable_character THEN
    RAISE EXCEPTION '%: the setting events_v2.attributes is not JSON: %', source, setting
        USING ERRCODE = 'invalid_parameter_value', COLUMN = 'attributes', HINT = 'Set it to an object of strings, as in {"user": "ada"}.';
END
$$;
-- +goose StatementEnd

-- events_emit_from stays as the migrations before this one have made it, with its settings,
-- but for the two arguments. An event that has neither is inserted as before, for which the
-- rights of before are enough.
-- +goose StatementBegin
DO $do$
DECLARE
    home       oid := (SELECT relnamespace FROM pg_class WHERE oid = 'events_v2'::regclass);
    definition text := pg_get_functiondef('events_emit_from'::regproc);
    change     record;
    old        record;
    grantee    text;
BEGIN
    FOR change IN VALUES
        ('delay_until timestamp with time zone)', 'delay_until timestamp with time zone, attributes jsonb DEFAULT NULL::jsonb, parent_id bigint DEFAULT NULL::bigint)'),
        ('BEGIN
    IF mistake IS NOT NULL THEN', 'BEGIN
    attributes := events_emit_attributes(source, attributes);
    mistake := coalesce(mistake, events_mistake_in_origin(attributes, parent_id));
    IF mistake IS NOT NULL THEN'),
        ('    INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, delay_until, enqueued_at)
    VALUES (id, canvas, module, name, modifier, value, greatest(coalesce(delay_until, at + delay), at), at);',
        '    IF attributes IS NULL AND parent_id IS NULL THEN
        INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, delay_until, enqueued_at)
        VALUES (id, canvas, module, name, modifier, value, greatest(coalesce(delay_until, at + delay), at), at);
    ELSE
        INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, delay_until, enqueued_at, attributes, parent_id)
        VALUES (id, canvas, module, name, modifier, value, greatest(coalesce(delay_until, at + delay), at), at, attributes, parent_id);
    END IF;')
    LOOP
        IF strpos(definition, change.column1) = 0 THEN
            RAISE EXCEPTION 'events_emit_from is not as the migrations before this one have made it: it lacks "%"', change.column1;
        END IF;
        definition := replace(definition, change.column1, change.column2);
    END LOOP;
    EXECUTE definition; -- beside the one with other arguments
    FOR old IN
        SELECT p.oid::regprocedure AS f, p.proname AS name, (p.proargtypes::oid[])[3]::regtype AS type, coalesce(p.proacl, acldefault('f', p.proowner)) AS acl
        FROM pg_proc p
        WHERE p.pronamespace = home AND p.proname IN ('events_emit', 'events_emit_from') AND p.pronargs < 9
        ORDER BY p.proname
    LOOP
        EXECUTE format('DROP FUNCTION %s', old.f);
        IF old.name = 'events_emit' THEN
            EXECUTE format($$
                CREATE FUNCTION events_emit(canvas uuid, module text, name text, value %s, modifier text DEFAULT '_',
                    delay interval DEFAULT '0', delay_until timestamptz DEFAULT NULL, attributes jsonb DEFAULT NULL, parent_id bigint DEFAULT NULL) RETURNS bigint
                LANGUAGE sql
                RETURN events_emit_from('events_emit', canvas, module, name, value::text, modifier, delay, delay_until, attributes, parent_id)$$, old.type);
        END IF;
        FOR grantee IN
            SELECT format('%s TO %s', p.oid::regprocedure, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END)
            FROM pg_proc p, aclexplode(old.acl) a
            WHERE p.pronamespace = home AND p.proname = old.name AND (p.proargtypes::oid[])[3] = old.type AND p.pronargs > 8
            ORDER BY a.grantee = 0 -- PUBLIC last: each step takes its right away first
        LOOP
            EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', split_part(grantee, ' TO ', 1));
            EXECUTE 'GRANT EXECUTE ON FUNCTION ' || grantee;
        END LOOP;
    END LOOP;
END
$do$;
-- +goose StatementEnd

-- +goose Down
-- Of the rights on the functions the way down knows nothing: run eventctl migrate roles.
-- +goose StatementBegin
DO $do$
DECLARE
    definition text := pg_get_functiondef('events_emit_from'::regproc);
    change     record;
    type       text;
BEGIN
    FOR change IN VALUES
        ('delay_until timestamp with time zone)', 'delay_until timestamp with time zone, attributes jsonb DEFAULT NULL::jsonb, parent_id bigint DEFAULT NULL::bigint)'),
        ('BEGIN
    IF mistake IS NOT NULL THEN', 'BEGIN
    attributes := events_emit_attributes(source, attributes);
    mistake := coalesce(mistake, events_mistake_in_origin(attributes, parent_id));
    IF mistake IS NOT NULL THEN'),
        ('    INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, delay_until, enqueued_at)
    VALUES (id, canvas, module, name, modifier, value, greatest(coalesce(delay_until, at + delay), at), at);',
        '    IF attributes IS NULL AND parent_id IS NULL THEN
        INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, delay_until, enqueued_at)
        VALUES (id, canvas, module, name, modifier, value, greatest(coalesce(delay_until, at + delay), at), at);
    ELSE
        INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, delay_until, enqueued_at, attributes, parent_id)
        VALUES (id, canvas, module, name, modifier, value, greatest(coalesce(delay_until, at + delay), at), at, attributes, parent_id);
    END IF;')
    LOOP
        IF strpos(definition, change.column2) = 0 THEN
            RAISE EXCEPTION 'events_emit_from is not as the migrations before this one have made it: it lacks "%"', change.column2;
        END IF;
        definition := replace(definition, change.column2, change.column1);
    END LOOP;
    FOREACH type IN ARRAY ARRAY['text', 'json', 'jsonb'] LOOP
        EXECUTE format('DROP FUNCTION events_emit(uuid, text, text, %s, text, interval, timestamptz, jsonb, bigint)', type);
    END LOOP;
    DROP FUNCTION events_emit_from;
    EXECUTE definition;
    FOREACH type IN ARRAY ARRAY['text', 'json', 'jsonb'] LOOP
        EXECUTE format($$
            CREATE FUNCTION events_emit(canvas uuid, module text, name text, value %s, modifier text DEFAULT '_',
                delay interval DEFAULT '0', delay_until timestamptz DEFAULT NULL) RETURNS bigint
            LANGUAGE sql
            RETURN events_emit_from('events_emit', canvas, module, name, value::text, modifier, delay, delay_until)$$, type);
    END LOOP;
END
$do$;
-- +goose StatementEnd

DROP FUNCTION events_emit_attributes;
DROP FUNCTION events_mistake_in_origin;
