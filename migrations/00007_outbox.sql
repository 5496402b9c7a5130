-- The outbox: events_emit emits from plain SQL, in whatever transaction and
-- language; the trigger function send_to_outbox emits the rows of a table.
-- Locks: none on existing tables (everything here is new).

-- +goose Up

-- These functions return what is wrong with an argument of an emit, as {argument, problem,
-- hint}, or NULL if nothing is. They run with the settings of their callers below.

-- A part of a handler's key. Bytes are counted in UTF-8, whatever the collation of the
-- argument is.
-- +goose StatementBegin
CREATE FUNCTION events_mistake_in_key(argument text, part text) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    control text := substring(part COLLATE "C" FROM '[\u0001-\u001f\u007f-\u009f]');
    bytes   bigint := octet_length(convert_to(part, 'UTF8'));
BEGIN
    RETURN CASE
        WHEN part IS NULL OR bytes = 0 THEN ARRAY[argument, CASE bytes WHEN 0 THEN 'is empty' ELSE 'is NULL' END,
            'Module, name and modifier together name the handler; a modifier that is not needed is _.']
        WHEN bytes > 255 THEN ARRAY[argument, format('is %s bytes long: the limit is 255', bytes), 'Give a shorter one.']
        WHEN control IS NOT NULL THEN ARRAY[argument,
            format('%s holds the control character U+%s', to_json(part), upper(lpad(to_hex(ascii(control)), 4, '0'))),
            'Leave out line ends, tabs and other control characters.']
    END;
END
$$;
-- +goose StatementEnd

-- When an event may run. In a delay, a day has 24 hours and a month 30 days.
-- +goose StatementBegin
CREATE FUNCTION events_mistake_in_delay(at timestamptz, delay interval, delay_until timestamptz) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    max_delay interval := coalesce(nullif(current_setting('events_v2.max_delay', true), ''), '366 days')::interval;
BEGIN
    RETURN CASE
        WHEN delay <> '0' AND delay_until IS NOT NULL THEN ARRAY['delay', 'and delay_until are both set', 'Set one of them.']
        WHEN delay < '0' THEN ARRAY['delay', format('of %s is negative', delay), 'Use 0 for at once.']
        WHEN delay > max_delay THEN ARRAY['delay', format('of %s is more than the limit of %s', delay, max_delay),
            'Use a shorter delay.']
        WHEN delay_until > at + max_delay THEN ARRAY['delay_until',
            format('%s is more than the limit of %s away', delay_until, max_delay), 'Use an earlier time.']
    END;
END
$$;
-- +goose StatementEnd

-- How deep arrays and objects of a JSON text are nested.
-- +goose StatementBegin
CREATE FUNCTION events_depth(value text) RETURNS bigint
LANGUAGE sql AS $$
    SELECT max(depth) FROM (
        SELECT sum(CASE WHEN bracket IN ('[', '{') THEN 1 ELSE -1 END) OVER (ORDER BY place) AS depth
        FROM unnest(string_to_array(regexp_replace(
            regexp_replace(value, '"([^"\\]|\\.)*"', '', 'g'), -- strings may hold brackets
            '[^][{}]', '', 'g'), NULL)) WITH ORDINALITY AS brackets (bracket, place)) AS depths
$$;
-- +goose StatementEnd

-- A value that a strict JSON decoder would refuse later (I8): text that is not JSON, half a
-- surrogate pair, U+0000, and JSON that is nested too deeply for Go. Unlike jsonb, the type
-- json accepts numbers of any size.
-- +goose StatementBegin
CREATE FUNCTION events_mistake_in_value(value text) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    max_bytes bigint := pg_size_bytes(coalesce(nullif(current_setting('events_v2.max_value_bytes', true), ''), '262144'));
    bytes     bigint := octet_length(convert_to(value, 'UTF8'));
    parsed    json;
    mistake   text;
    rest      text;
    too_deep  text[] := ARRAY['value', 'is nested too deeply', 'Nest arrays and objects at most 10000 deep.'];
BEGIN
    IF value IS NULL OR bytes = 0 THEN
        RETURN ARRAY['value', CASE bytes WHEN 0 THEN 'is empty' ELSE 'is NULL' END, 'Give a JSON text; for nothing, the text null.'];
    ELSIF bytes > max_bytes THEN
        RETURN ARRAY['value', format('is %s bytes long: the limit is %s', bytes, max_bytes), 'Keep large data elsewhere and emit a reference.'];
    END IF;
    BEGIN
        parsed := value::json;
    EXCEPTION
        WHEN invalid_text_representation THEN
            GET STACKED DIAGNOSTICS mistake = PG_EXCEPTION_DETAIL;
            RETURN ARRAY['value', 'is not JSON: ' || mistake, 'Give a JSON text; to_jsonb(…) makes one of anything.'];
        WHEN statement_too_complex THEN
            RETURN too_deep;
    END;
    IF length(value) - length(translate(value, '[{', '')) > 10000 AND events_depth(value) > 10000 THEN
        RETURN too_deep;
    END IF;
    IF strpos(value, '\u') > 0 THEN
        -- Backslashes that are escaped, and whole pairs, out of the way; all else stays in its place.
        rest := regexp_replace(replace(value, '\\', '--'),
            '\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}', '------------', 'g');
        mistake := substring(rest FROM '\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2})');
        IF mistake IS NOT NULL THEN
            RETURN ARRAY['value', format('holds %s at character %s, %s', mistake, strpos(rest, mistake), CASE mistake
                    WHEN '\u0000' THEN 'which Postgres cannot store as text'
                    ELSE 'which is half a surrogate pair'
                END), 'Leave it out, or encode binary data, for example in base64.'];
        END IF;
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- events_emit_from checks an event and inserts it with a pending notification. The NOTIFY
-- is sent with the commit and wakes the relay, which publishes the notification; the
-- relay's own timer finds it in any case (I1). Postgres merges equal NOTIFYs of one
-- transaction. Error messages begin with source. The id is drawn before the INSERT, and
-- not returned by it, so that the caller needs no right to read events.
-- +goose StatementBegin
CREATE FUNCTION events_emit_from(source text, canvas uuid, module text, name text, value text, modifier text,
    delay interval, delay_until timestamptz) RETURNS bigint
LANGUAGE plpgsql SET standard_conforming_strings = on AS $$
DECLARE
    at      timestamptz := clock_timestamp();
    id      bigint;
    mistake text[] := coalesce(
        CASE WHEN coalesce(canvas, '00000000-0000-0000-0000-000000000000') = '00000000-0000-0000-0000-000000000000'
            THEN ARRAY['canvas', 'is missing', 'Give the uuid of the tenant that the event belongs to.'] END,
        events_mistake_in_key('module', module),
        events_mistake_in_key('name', name),
        events_mistake_in_key('modifier', modifier),
        events_mistake_in_delay(at, delay, delay_until),
        events_mistake_in_value(value));
BEGIN
    IF mistake IS NOT NULL THEN
        RAISE EXCEPTION '%: % %', source, mistake[1], mistake[2]
            USING ERRCODE = 'invalid_parameter_value', COLUMN = mistake[1], HINT = mistake[3];
    END IF;
    id := nextval('events_id_seq');
    INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, delay_until, enqueued_at)
    VALUES (id, canvas, module, name, modifier, value, greatest(coalesce(delay_until, at + delay), at), at);
    PERFORM pg_notify('events_v2_owed', '');
    RETURN id;
END
$$;
-- +goose StatementEnd

-- events_emit: one function for each type that a value may have. A literal or a parameter
-- without a type is text.
CREATE FUNCTION events_emit(canvas uuid, module text, name text, value text, modifier text DEFAULT '_',
    delay interval DEFAULT '0', delay_until timestamptz DEFAULT NULL) RETURNS bigint
LANGUAGE sql
RETURN events_emit_from('events_emit', canvas, module, name, value, modifier, delay, delay_until);

CREATE FUNCTION events_emit(canvas uuid, module text, name text, value json, modifier text DEFAULT '_',
    delay interval DEFAULT '0', delay_until timestamptz DEFAULT NULL) RETURNS bigint
LANGUAGE sql
RETURN events_emit_from('events_emit', canvas, module, name, value::text, modifier, delay, delay_until);

CREATE FUNCTION events_emit(canvas uuid, module text, name text, value jsonb, modifier text DEFAULT '_',
    delay interval DEFAULT '0', delay_until timestamptz DEFAULT NULL) RETURNS bigint
LANGUAGE sql
RETURN events_emit_from('events_emit', canvas, module, name, value::text, modifier, delay, delay_until);

-- send_to_outbox(canvas, module [, modifier [, value]]) emits an event for each row that
-- is inserted, updated or deleted; its name is like insert_person. canvas is a uuid, or the
-- column with the canvas. value is 'row' (the row; for an update the new one) or 'change'
-- (operation, schema, table, old and new row). The format of the row does not depend on
-- the settings of the session. For a partition the name of the partitioned table is used.
-- +goose StatementBegin
CREATE FUNCTION send_to_outbox() RETURNS trigger
LANGUAGE plpgsql SET standard_conforming_strings = on SET timezone = 'UTC' SET datestyle = 'ISO' SET intervalstyle = 'iso_8601'
SET bytea_output = 'hex' SET extra_float_digits = 1 AS $$
DECLARE
    schema   text := TG_TABLE_SCHEMA;
    "table"  text := TG_TABLE_NAME;
    source   text := format('send_to_outbox on %I.%I', schema, "table");
    attach   text := 'CREATE TRIGGER … AFTER INSERT OR UPDATE OR DELETE ON … FOR EACH ROW EXECUTE FUNCTION send_to_outbox(canvas, module).';
    -- As in Go, and stricter than the type uuid.
    form     text := '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$';
    modifier text := coalesce(TG_ARGV[2], '_');
    shape    text := coalesce(TG_ARGV[3], 'row');
    canvas   text := TG_ARGV[0];
    value    json;
    mistake  text[];
BEGIN
    IF TG_LEVEL <> 'ROW' OR TG_WHEN <> 'AFTER' THEN
        RAISE EXCEPTION '%: trigger % is % % FOR EACH %: it must be AFTER … FOR EACH ROW', source, TG_NAME, TG_WHEN, TG_OP, TG_LEVEL
            USING ERRCODE = 'trigger_protocol_violated', HINT = attach;
    ELSIF TG_NARGS NOT BETWEEN 2 AND 4 OR shape NOT IN ('row', 'change') THEN
        RAISE EXCEPTION '%: trigger % has the arguments %', source, TG_NAME, coalesce(array_to_json(TG_ARGV[0:TG_NARGS - 1]), '[]')
            USING ERRCODE = 'trigger_protocol_violated',
                HINT = 'Give two to four: canvas (a uuid or a column), module, modifier (default _), value (row or change; default row).';
    ELSIF TG_RELID = ANY (ARRAY['events_v2', 'event_log', 'events_v2_notifications']::regclass[]) THEN
        RAISE EXCEPTION '%: this table belongs to the queue, and each event would make another one, without an end', source
            USING ERRCODE = 'trigger_protocol_violated', HINT = format('DROP TRIGGER %I ON %I.%I;', TG_NAME, schema, "table");
    END IF;

    value := CASE TG_OP WHEN 'DELETE' THEN row_to_json(OLD) ELSE row_to_json(NEW) END;
    IF canvas !~ form THEN
        BEGIN
            canvas := value ->> TG_ARGV[0];
        EXCEPTION WHEN untranslatable_character OR invalid_text_representation THEN
            -- A column of type json holds an escape that is no character.
            mistake := events_mistake_in_value(value::text);
            RAISE EXCEPTION '%: % %', source, mistake[1], mistake[2]
                USING ERRCODE = 'invalid_parameter_value', SCHEMA = schema, TABLE = "table", COLUMN = mistake[1], HINT = mistake[3];
        END;
        IF canvas IS NULL OR canvas !~ form THEN
            RAISE EXCEPTION '%: %', source, CASE
                    WHEN canvas IS NOT NULL THEN format('column %I holds %s, which is no uuid', TG_ARGV[0], to_json(canvas))
                    WHEN TG_ARGV[0] IN (SELECT json_object_keys(value)) THEN format('column %I is NULL', TG_ARGV[0])
                    ELSE format('there is no column %I', TG_ARGV[0])
                END
                USING ERRCODE = 'invalid_parameter_value', SCHEMA = schema, TABLE = "table", COLUMN = TG_ARGV[0],
                    HINT = 'The first argument of the trigger is a canvas (a uuid) or the name of the column that holds the uuid of each row''s canvas.';
        END IF;
    END IF;

    IF pg_partition_root(TG_RELID) IS NOT NULL THEN
        SELECT nspname, relname INTO schema, "table"
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid = pg_partition_root(TG_RELID);
    END IF;
    IF shape = 'change' THEN
        value := json_build_object('operation', TG_OP, 'schema', schema, 'table', "table",
            'old', row_to_json(OLD), 'new', row_to_json(NEW));
    END IF;
    PERFORM events_emit_from(source, canvas::uuid, TG_ARGV[1], lower(TG_OP) || '_' || "table", value::text, modifier, '0', NULL);
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- The functions find the queue's tables whatever the search path of their caller is. Only
-- roles that may create objects in this schema can replace what they call, and pg_temp
-- comes last: so an owner may make events_emit_from SECURITY DEFINER. That is less safe for
-- the trigger function, since row_to_json calls casts to json that the owners of the
-- table's types define.
-- +goose StatementBegin
DO $$
DECLARE
    schema text := (SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'events_v2'::regclass);
BEGIN
    EXECUTE format('ALTER FUNCTION events_emit_from SET search_path = pg_catalog, %s, pg_temp', schema);
    EXECUTE format('ALTER FUNCTION send_to_outbox SET search_path = pg_catalog, %s, pg_temp', schema);
END
$$;
-- +goose StatementEnd

-- +goose Down
-- This fails as long as a table has the trigger: drop the triggers first.
DROP FUNCTION send_to_outbox;
DROP FUNCTION events_emit(uuid, text, text, jsonb, text, interval, timestamptz);
DROP FUNCTION events_emit(uuid, text, text, json, text, interval, timestamptz);
DROP FUNCTION events_emit(uuid, text, text, text, text, interval, timestamptz);
DROP FUNCTION events_emit_from;
DROP FUNCTION events_mistake_in_value;
DROP FUNCTION events_depth;
DROP FUNCTION events_mistake_in_delay;
DROP FUNCTION events_mistake_in_key;
