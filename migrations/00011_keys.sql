-- Keys: events_emit and send_to_outbox take ordering and unique keys, a key passes on to the events that go on for its event,
-- and an emit may replace the event that waits.
-- Locks: events_v2 and event_log, ACCESS EXCLUSIVE, for a moment: emits, claims and ends wait.

-- +goose Up
ALTER TABLE events_v2 ADD COLUMN unique_key text COLLATE "C"; -- for which it has reserved unique_keys; NULL: none
ALTER TABLE event_log ADD COLUMN unique_key text COLLATE "C"; -- for the event that an operator makes of this row; NULL: none

-- Events that hold a unique key together with the one that unique_keys names: those that a handler has emitted to go on for it,
-- and one that was running when the key went to another. They are not in unique_keys, so that no end of an event waits for
-- a transaction that emits the key.
CREATE TABLE unique_heirs (
    event_id bigint NOT NULL, -- as in unique_keys
    heir_id  bigint NOT NULL,

    CONSTRAINT unique_heirs_pkey PRIMARY KEY (event_id, heir_id)
);

-- +goose StatementBegin
-- Reserves the rows of keys, in the order given: callers give them sorted, so that two of them never wait for each other.
-- A second emit of a key waits here until the first has committed or rolled back.
CREATE FUNCTION events_v2_lock_keys(canvases uuid[], keys text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM events_v2_needs_read_committed('an emit with a unique key');
    INSERT INTO unique_keys AS k (canvas_id, key)
    SELECT asked.canvas_id, asked.key FROM unnest(canvases, keys) WITH ORDINALITY AS asked (canvas_id, key, place) ORDER BY place
    ON CONFLICT (canvas_id, key) DO UPDATE SET event_id = k.event_id WHERE false;
END
$$;

-- The only place where a unique key is judged. It inserts an event that has keys, or finds the one that has its unique key.
-- It runs with the rights of its owner, so that a role that emits needs none on the tables of keys, and can change another
-- event in no other way than this: with unique_mode replace, what waits under its key, for its handler, gets its value and time.
--
-- unique_mode says what the key stands for. until_end: for an event until it has ended, and its unique_seconds after that, heirs
-- included. until_start, replace: for an event while it waits to run, also for another run. The event that waits is
-- locked until the transaction ends, so that its run sees what was written before.
--
-- notify_within: the caller publishes the notifications that it is told to, of events that are due within this time.
-- NULL: they are pending. channels are woken if there is something to do. ending is the event that ends in this transaction: its key
-- is free, unless an event that holds the key beside it has not ended.
CREATE FUNCTION events_v2_emit_keyed(canvas uuid, module text, name text, modifier text, value text, delay interval, delay_until timestamptz,
    attributes jsonb, parent_id bigint, ordering_key text, unique_key text, unique_seconds integer, unique_mode text, max_wait interval,
    notify_within interval, channels text[], ending bigint, OUT id bigint, OUT notified boolean, OUT repeats boolean)
LANGUAGE plpgsql SECURITY DEFINER SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
    at       timestamptz;
    due      timestamptz;
    now_has  bigint; -- the event that has the key; NULL: the key is new
    heirs    bigint[];
    other    bigint; -- an event that holds the key and has not ended
    reserved boolean;
    passes   boolean := false; -- from the event that ends
    waiting  record;
BEGIN
    notified := false;
    repeats := true;
    IF unique_key <> '' THEN
        PERFORM events_v2_lock_keys(ARRAY[canvas], ARRAY[unique_key]);
        at := clock_timestamp(); -- it may have waited
        -- One statement, and so one moment: an event that ends leaves its heirs.
        SELECT k.event_id, h.ids,
            (SELECT min(e.id) FROM events_v2 e WHERE e.id = ANY (k.event_id || h.ids) AND e.id IS DISTINCT FROM ending),
            EXISTS (SELECT FROM unique_expiries u WHERE u.event_id = ANY (k.event_id || h.ids) AND u.expires_at > at)
        INTO now_has, heirs, other, reserved
        FROM unique_keys k CROSS JOIN LATERAL (
            SELECT ARRAY(SELECT h.heir_id FROM unique_heirs h WHERE h.event_id = k.event_id) AS ids OFFSET 0) AS h
        WHERE k.canvas_id = canvas AND k.key = unique_key;
        passes := coalesce(ending = ANY (now_has || heirs), false);
        IF unique_mode <> 'until_end' THEN
            SELECT * INTO waiting FROM events_v2 e
            WHERE e.id = now_has AND e.id IS DISTINCT FROM ending AND e.locked_at IS NULL FOR NO KEY UPDATE;
            IF FOUND THEN
                id := now_has;
                IF unique_mode = 'until_start' THEN
                    RETURN;
                ELSIF (waiting.module, waiting.name, waiting.modifier, waiting.ordering_key) IS DISTINCT FROM (module, name, modifier, ordering_key) THEN
                    RAISE EXCEPTION 'unique key %: event % waits under it for the handler %, and one for % cannot replace it: use keys that begin with the name of the handler', to_json(unique_key), now_has,
                        concat_ws('/', waiting.module, waiting.name, waiting.modifier) || coalesce(' with the ordering key ' || to_json(nullif(waiting.ordering_key, '')), ''),
                        concat_ws('/', module, name, modifier) || coalesce(' with the ordering key ' || to_json(nullif(ordering_key, '')), '')
                        USING ERRCODE = 'invalid_parameter_value', COLUMN = 'unique_key';
                END IF;
                -- In its groups it keeps its place, and so its time; after a failure it is not tried earlier than was decided.
                due := least(greatest(coalesce(delay_until, at + delay), at), greatest(waiting.enqueued_at + max_wait, at));
                IF waiting.group_state IN (1, 2) THEN
                    due := waiting.delay_until;
                ELSIF waiting.retries > 0 THEN
                    due := greatest(due, waiting.delay_until);
                END IF;
                -- A notification that comes earlier is put off until the new time; beyond its longest delay the relay publishes another.
                IF waiting.group_state NOT IN (1, 2)
                    AND (waiting.notified_at IS NULL OR due < waiting.delay_until OR due > at + interval '10 minutes') THEN
                    notified := coalesce(due <= at + notify_within, false);
                    waiting.notified_at := CASE WHEN notified THEN at END;
                END IF;
                UPDATE events_v2 e SET value = events_v2_emit_keyed.value, attributes = events_v2_emit_keyed.attributes,
                    parent_id = events_v2_emit_keyed.parent_id, delay_until = due, notified_at = waiting.notified_at,
                    limited_attempt = CASE WHEN due = e.delay_until THEN e.limited_attempt ELSE 0 END
                WHERE e.id = now_has;
                IF waiting.notified_at IS NULL THEN
                    PERFORM events_v2_notify(channel, '') FROM unnest(channels) AS channel;
                END IF;
                RETURN;
            END IF;
        ELSIF passes AND other IS NOT NULL THEN
            RAISE EXCEPTION 'unique key %: event %, which holds it together with event %, has not ended: emit after its end, with another key, or with the mode until_start',
                to_json(unique_key), other, ending USING ERRCODE = 'object_in_use', COLUMN = 'unique_key';
        ELSIF NOT passes AND (other IS NOT NULL OR reserved) THEN
            id := now_has;
            RETURN;
        END IF;
    END IF;

    at := coalesce(at, clock_timestamp());
    due := least(greatest(coalesce(delay_until, at + delay), at), at + max_wait);
    id := nextval('events_id_seq');
    notified := coalesce(due <= at + notify_within, false);
    repeats := false;
    INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, delay_until, enqueued_at, notified_at, unique_key, unique_seconds, group_state,
        ordering_key, attributes, parent_id)
    VALUES (id, canvas, module, name, modifier, value, due, at, CASE WHEN notified THEN at END, nullif(unique_key, ''), unique_seconds,
        CASE WHEN ordering_key = '' THEN 0 WHEN due <= at THEN 1 ELSE 3 END, ordering_key, attributes, parent_id);
    IF ordering_key <> '' AND due <= at THEN
        INSERT INTO event_groups (event_id, stage, canvas_id, group_key) VALUES (id, 1, canvas, events_v2_group_key(1, '', '', ordering_key));
    END IF;
    IF unique_key <> '' THEN
        UPDATE unique_keys k SET event_id = events_v2_emit_keyed.id WHERE k.canvas_id = canvas AND k.key = unique_key;
        IF now_has IS NOT NULL THEN
            DELETE FROM unique_expiries u WHERE u.event_id = ANY (now_has || heirs);
            DELETE FROM unique_heirs h WHERE h.event_id = now_has;
            -- What has not ended yet holds the key as well, for an emit until_end, and its end is forgotten with the key.
            INSERT INTO unique_heirs (event_id, heir_id)
            SELECT events_v2_emit_keyed.id, e.id FROM events_v2 e WHERE e.id = ANY (now_has || heirs) AND e.id IS DISTINCT FROM ending;
            -- From what ends the key passes to this event, and so do the times for which it is kept.
            UPDATE events_v2 e SET unique_seconds = 0 WHERE passes AND e.id = ending AND e.unique_seconds > 0;
        END IF;
    END IF;
    IF NOT notified THEN
        PERFORM events_v2_notify(channel, '') FROM unnest(channels) AS channel;
    END IF;
END
$$;

-- When an event may run. A month or a day in a delay is as long as Postgres makes it when it adds it to the present time.
CREATE OR REPLACE FUNCTION events_mistake_in_delay(at timestamptz, delay interval, delay_until timestamptz) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    max_delay interval := coalesce(nullif(current_setting('events_v2.max_delay', true), ''), '366 days')::interval;
BEGIN
    RETURN CASE
        WHEN delay IS NULL THEN ARRAY['delay', 'is NULL', 'Use 0 for at once.']
        WHEN delay <> '0' AND delay_until IS NOT NULL THEN ARRAY['delay', 'and delay_until are both set', 'Set one of them.']
        WHEN delay < '0' THEN ARRAY['delay', format('of %s is negative', delay), 'Use 0 for at once.']
        -- The first comparison, with months of 30 days, only keeps the sum from exceeding what a timestamp can be.
        WHEN delay > max_delay * 2 OR at + delay > at + max_delay THEN ARRAY['delay',
            format('of %s is more than the limit of %s', delay, max_delay), 'Use a shorter delay.']
        WHEN at + delay < at THEN ARRAY['delay', format('of %s is negative', delay), 'Use 0 for at once.']
        WHEN delay_until > at + max_delay THEN ARRAY['delay_until',
            format('%s is more than the limit of %s away', delay_until, max_delay), 'Use an earlier time.']
    END;
END
$$;

-- The keys, and what goes with a unique one.
CREATE FUNCTION events_mistake_in_keys(at timestamptz, ordering_key text, unique_key text, unique_for interval, unique_mode text, max_wait interval)
RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    longest CONSTANT interval := '366 days';
BEGIN
    RETURN CASE
        WHEN ordering_key <> '' AND events_mistake_in_key('ordering_key', ordering_key) IS NOT NULL THEN events_mistake_in_key('ordering_key', ordering_key)
        WHEN unique_key <> '' AND events_mistake_in_key('unique_key', unique_key) IS NOT NULL THEN events_mistake_in_key('unique_key', unique_key)
        WHEN unique_for IS NULL THEN ARRAY['unique_for', 'is NULL', 'Use 0 for not beyond the end of the event.']
        WHEN unique_for < '0' THEN ARRAY['unique_for', format('of %s is negative', unique_for), 'Use 0 for not beyond the end of the event.']
        WHEN unique_for > longest * 2 OR at + unique_for > at + longest THEN ARRAY['unique_for',
            format('of %s is more than the limit of %s', unique_for, longest), 'Use a shorter time.']
        WHEN unique_mode IS NULL OR unique_mode NOT IN ('until_end', 'until_start', 'replace') THEN ARRAY['unique_mode',
            'is ' || coalesce(to_json(unique_mode)::text, 'NULL'), 'Use until_end, until_start or replace.']
        WHEN coalesce(unique_key, '') = '' AND (unique_for <> '0' OR unique_mode <> 'until_end') THEN ARRAY['unique_key', 'is missing',
            'unique_for and unique_mode go with it.']
        WHEN unique_for <> '0' AND unique_mode <> 'until_end' THEN ARRAY['unique_for', format('does not go with the mode %s', unique_mode),
            'Leave it out, or use until_end.']
        WHEN max_wait IS NOT NULL AND unique_mode <> 'replace' THEN ARRAY['max_wait', format('does not go with the mode %s', unique_mode),
            'Leave it out, or use replace.']
        WHEN max_wait <= '0' THEN ARRAY['max_wait', format('of %s is not positive', max_wait), 'Leave it out for no bound.']
        WHEN max_wait > longest * 2 OR at + max_wait > at + longest THEN ARRAY['max_wait',
            format('of %s is more than the limit of %s', max_wait, longest), 'Leave it out for no bound.']
    END;
END
$$;

-- The key that a row gives its event: prefix and the text of a column, or a hash of both where that cannot be a key. NULL where the
-- column is, or is empty.
CREATE FUNCTION events_key_of_row(source text, of json, "column" text, prefix text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    part text := of ->> "column";
    whole CONSTANT text := prefix || nullif(part, '');
BEGIN
    IF part IS NULL AND "column" NOT IN (SELECT json_object_keys(of)) THEN
        RAISE EXCEPTION '%: there is no column %', source, quote_ident("column") USING ERRCODE = 'invalid_parameter_value', COLUMN = "column",
            HINT = 'ordering_key and unique_key in the arguments of the trigger name a column of the table.';
    END IF;
    RETURN CASE WHEN octet_length(convert_to(whole, 'UTF8')) > 255 OR whole COLLATE "C" ~ '[\u0001-\u001f\u007f-\u009f]'
        THEN 'sha256 ' || encode(sha256(convert_to(whole, 'UTF8')), 'hex') ELSE whole END;
END
$$;
-- +goose StatementEnd

-- New arguments mean another function. It keeps the rights of the one before, and its owner's settings, such as SECURITY DEFINER.
-- +goose StatementBegin
DO $do$
DECLARE
    schema    text := (SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'events_v2'::regclass);
    functions jsonb := (
        SELECT jsonb_agg(jsonb_build_object('name', p.proname, 'of', p.oid::regprocedure, 'owner', p.proowner::regrole, 'acl', p.proacl::text[],
            'definition', pg_get_functiondef(p.oid)))
        FROM pg_proc p WHERE p.pronamespace = schema::regnamespace AND p.proname IN ('events_emit', 'events_emit_from')
          AND pg_get_function_arguments(p.oid) LIKE '%, parent_id bigint%');
    was       jsonb;
    change    text[];
    script    text;
    made      regprocedure;
    done      oid[] := '{}';
    granted   record;
BEGIN
    PERFORM set_config('intervalstyle', 'postgres', true); -- for the defaults in the definitions
    FOR was IN SELECT f FROM jsonb_array_elements(functions) AS f ORDER BY f ->> 'name' LOOP
        EXECUTE format('DROP FUNCTION %s', was ->> 'of');
    END LOOP;
    FOR was IN SELECT f FROM jsonb_array_elements(functions) AS f ORDER BY f ->> 'name' DESC LOOP
        script := was ->> 'definition';
        FOREACH change SLICE 1 IN ARRAY CASE was ->> 'name' WHEN 'events_emit' THEN ARRAY[
            [$from$parent_id bigint DEFAULT NULL::bigint)$from$,
             $to$parent_id bigint DEFAULT NULL::bigint, ordering_key text DEFAULT ''::text, unique_key text DEFAULT ''::text, unique_for interval DEFAULT '00:00:00'::interval, unique_mode text DEFAULT 'until_end'::text, max_wait interval DEFAULT NULL::interval)$to$],
            [$from$attributes, parent_id)$from$,
             $to$attributes, parent_id, ordering_key, unique_key, unique_for, unique_mode, max_wait)$to$]]
            ELSE ARRAY[
            [$from$parent_id bigint DEFAULT NULL::bigint)$from$,
             $to$parent_id bigint DEFAULT NULL::bigint, ordering_key text DEFAULT ''::text, unique_key text DEFAULT ''::text, unique_for interval DEFAULT '00:00:00'::interval, unique_mode text DEFAULT 'until_end'::text, max_wait interval DEFAULT NULL::interval)$to$],
            [$from$events_mistake_in_origin(attributes, parent_id));$from$,
             $to$events_mistake_in_origin(attributes, parent_id),
        events_mistake_in_keys(at, ordering_key, unique_key, unique_for, unique_mode, max_wait));$to$],
            [$from$    id := nextval('events_id_seq');$from$,
             $to$    IF ordering_key <> '' OR unique_key <> '' THEN
        RETURN (events_v2_emit_keyed(canvas, module, name, modifier, value, delay, delay_until, attributes, parent_id, coalesce(ordering_key, ''),
            coalesce(unique_key, ''), ceil(extract(epoch FROM at + unique_for - at))::integer, unique_mode, max_wait, NULL,
            ARRAY[events_v2_channel('events_v2_pending')], NULL)).id;
    END IF;
    id := nextval('events_id_seq');$to$]] END
        LOOP
            IF strpos(script, change[1]) = 0 THEN
                RAISE EXCEPTION '% is not as this migration expects it: it lacks %', was ->> 'of', change[1];
            END IF;
            script := replace(script, change[1], change[2]);
        END LOOP;
        EXECUTE script;
        SELECT p.oid INTO STRICT made FROM pg_proc p
        WHERE p.pronamespace = schema::regnamespace AND p.proname = was ->> 'name'
          AND pg_get_function_arguments(p.oid) LIKE '%, parent_id bigint%' AND p.oid <> ALL (done);
        done := done || made::oid;
        IF was ->> 'owner' <> quote_ident(current_user) THEN
            EXECUTE format('ALTER FUNCTION %s OWNER TO %s', made, was ->> 'owner');
        END IF;
        IF jsonb_typeof(was -> 'acl') = 'array' THEN
            EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', made);
            FOR granted IN
                SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role, CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END AS option
                FROM aclexplode(ARRAY(SELECT jsonb_array_elements_text(was -> 'acl'))::aclitem[]) AS a
            LOOP
                EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s%s', made, granted.role, granted.option);
            END LOOP;
        END IF;
    END LOOP;
END
$do$;
-- +goose StatementEnd

-- send_to_outbox has arguments with names: ordering_key and unique_key are columns.
-- +goose StatementBegin
DO $do$
DECLARE
    script text := pg_get_functiondef('send_to_outbox'::regproc);
    change text[];
BEGIN
    FOREACH change SLICE 1 IN ARRAY ARRAY[
            [$from$    modifier text := coalesce(TG_ARGV[2], '_');
    shape    text := coalesce(TG_ARGV[3], 'row');$from$,
             $to$    -- The arguments by place, and those that have a name.
    named    CONSTANT text := '^(ordering_key|unique_key|unique_for|unique_mode|max_wait|delay)=';
    placed   text[] := CASE WHEN TG_NARGS > 2 THEN
        ARRAY(SELECT a FROM unnest(TG_ARGV) WITH ORDINALITY AS given (a, place) WHERE place <= 2 OR a !~ named ORDER BY place) END;
    options  jsonb := CASE WHEN TG_NARGS > 2 THEN
        (SELECT jsonb_object_agg(split_part(a, '=', 1), substr(a, strpos(a, '=') + 1)) FROM unnest(TG_ARGV) WITH ORDINALITY AS given (a, place)
         WHERE place > 2 AND a ~ named) END;
    modifier text := coalesce(placed[3], '_');
    shape    text := coalesce(placed[4], 'row');
    "order"  text;
    "unique" text;$to$],
            [$from$TG_NARGS NOT BETWEEN 2 AND 4 OR shape$from$,
             $to$TG_NARGS < 2 OR cardinality(placed) > 4 OR shape$to$],
            [$from$HINT = 'Give two to four: canvas (a uuid or a column), module, modifier (default _), value (row or change; default row).';$from$,
             $to$HINT = 'Give two to four: canvas (a uuid or a column), module, modifier (default _), value (row or change; default row). '
                    'After the module there may be ordering_key=column, unique_key=column, unique_for, unique_mode, max_wait, delay, each with = and its value.';$to$],
            [$from$    IF shape = 'change' THEN
$from$,
             $to$    IF options IS NOT NULL THEN
        "order" := events_key_of_row(source, value, options ->> 'ordering_key', '');
        -- Events for other handlers have other keys.
        "unique" := events_key_of_row(source, value, options ->> 'unique_key',
            concat_ws('/', TG_ARGV[1], lower(TG_OP) || '_' || "table", modifier) || ' ');
    END IF;
    IF shape = 'change' THEN
$to$],
            [$from$    PERFORM events_emit_from(source, canvas::uuid, TG_ARGV[1], lower(TG_OP) || '_' || "table", value::text, modifier, '0', NULL);$from$,
             $to$    IF options IS NULL THEN
        PERFORM events_emit_from(source, canvas::uuid, TG_ARGV[1], lower(TG_OP) || '_' || "table", value::text, modifier, '0', NULL);
    ELSE
        PERFORM events_emit_from(source, canvas::uuid, TG_ARGV[1], lower(TG_OP) || '_' || "table", value::text, modifier,
            coalesce((options ->> 'delay')::interval, '0'), NULL, NULL, NULL, "order", "unique",
            -- A row without the key has an event without it.
            CASE WHEN "unique" IS NULL AND options ? 'unique_key' THEN '0' ELSE coalesce((options ->> 'unique_for')::interval, '0') END,
            CASE WHEN "unique" IS NULL AND options ? 'unique_key' THEN 'until_end' ELSE coalesce(options ->> 'unique_mode', 'until_end') END,
            CASE WHEN "unique" IS NULL AND options ? 'unique_key' THEN NULL ELSE (options ->> 'max_wait')::interval END);
    END IF;$to$]]
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

CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers',
    'event_minutes', 'event_hours', 'access_tokens', 'audit_log', 'bulk_operations', 'webhook_minutes', 'webhook_sources',
    'event_minute_totals', 'ended_sessions', 'unique_heirs'];

-- +goose StatementBegin
DO $do$
DECLARE
    schema   text := (SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'events_v2'::regclass);
    function text;
    role     text;
BEGIN
    FOREACH function IN ARRAY ARRAY['events_v2_lock_keys', 'events_v2_emit_keyed'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %s, pg_temp', function::regproc, schema);
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', function::regproc);
        -- Whoever emits with keys goes on doing so, before eventctl migrate roles is run again.
        FOR role IN
            SELECT DISTINCT granted.grantee::regrole::text
            FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid CROSS JOIN LATERAL aclexplode(c.relacl || a.attacl) AS granted
            WHERE c.oid = 'unique_keys'::regclass AND granted.privilege_type = 'INSERT' AND granted.grantee <> 0
        LOOP
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', function::regproc, role);
        END LOOP;
    END LOOP;
END
$do$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
DO $do$
DECLARE
    "table" text := (
        SELECT min(t.tgrelid::regclass::text) FROM pg_trigger t
        WHERE t.tgfoid = 'send_to_outbox'::regproc AND encode(t.tgargs, 'escape') ~ '\\000(ordering_key|unique_key|unique_for|unique_mode|max_wait|delay)=');
BEGIN
    IF "table" IS NOT NULL THEN
        RAISE EXCEPTION 'the trigger send_to_outbox on % has arguments with names, which the function does not know after this: drop it first', "table";
    END IF;
END
$do$;
-- +goose StatementEnd
CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers',
    'event_minutes', 'event_hours', 'access_tokens', 'audit_log', 'bulk_operations', 'webhook_minutes', 'webhook_sources',
    'event_minute_totals', 'ended_sessions'];
-- +goose StatementBegin
DO $do$
DECLARE
    script text := pg_get_functiondef('send_to_outbox'::regproc);
    change text[];
BEGIN
    FOREACH change SLICE 1 IN ARRAY ARRAY[
            [$from$    -- The arguments by place, and those that have a name.
    named    CONSTANT text := '^(ordering_key|unique_key|unique_for|unique_mode|max_wait|delay)=';
    placed   text[] := CASE WHEN TG_NARGS > 2 THEN
        ARRAY(SELECT a FROM unnest(TG_ARGV) WITH ORDINALITY AS given (a, place) WHERE place <= 2 OR a !~ named ORDER BY place) END;
    options  jsonb := CASE WHEN TG_NARGS > 2 THEN
        (SELECT jsonb_object_agg(split_part(a, '=', 1), substr(a, strpos(a, '=') + 1)) FROM unnest(TG_ARGV) WITH ORDINALITY AS given (a, place)
         WHERE place > 2 AND a ~ named) END;
    modifier text := coalesce(placed[3], '_');
    shape    text := coalesce(placed[4], 'row');
    "order"  text;
    "unique" text;$from$,
             $to$    modifier text := coalesce(TG_ARGV[2], '_');
    shape    text := coalesce(TG_ARGV[3], 'row');$to$],
            [$from$TG_NARGS < 2 OR cardinality(placed) > 4 OR shape$from$,
             $to$TG_NARGS NOT BETWEEN 2 AND 4 OR shape$to$],
            [$from$HINT = 'Give two to four: canvas (a uuid or a column), module, modifier (default _), value (row or change; default row). '
                    'After the module there may be ordering_key=column, unique_key=column, unique_for, unique_mode, max_wait, delay, each with = and its value.';$from$,
             $to$HINT = 'Give two to four: canvas (a uuid or a column), module, modifier (default _), value (row or change; default row).';$to$],
            [$from$    IF options IS NOT NULL THEN
        "order" := events_key_of_row(source, value, options ->> 'ordering_key', '');
        -- Events for other handlers have other keys.
        "unique" := events_key_of_row(source, value, options ->> 'unique_key',
            concat_ws('/', TG_ARGV[1], lower(TG_OP) || '_' || "table", modifier) || ' ');
    END IF;
    IF shape = 'change' THEN
$from$,
             $to$    IF shape = 'change' THEN
$to$],
            [$from$    IF options IS NULL THEN
        PERFORM events_emit_from(source, canvas::uuid, TG_ARGV[1], lower(TG_OP) || '_' || "table", value::text, modifier, '0', NULL);
    ELSE
        PERFORM events_emit_from(source, canvas::uuid, TG_ARGV[1], lower(TG_OP) || '_' || "table", value::text, modifier,
            coalesce((options ->> 'delay')::interval, '0'), NULL, NULL, NULL, "order", "unique",
            -- A row without the key has an event without it.
            CASE WHEN "unique" IS NULL AND options ? 'unique_key' THEN '0' ELSE coalesce((options ->> 'unique_for')::interval, '0') END,
            CASE WHEN "unique" IS NULL AND options ? 'unique_key' THEN 'until_end' ELSE coalesce(options ->> 'unique_mode', 'until_end') END,
            CASE WHEN "unique" IS NULL AND options ? 'unique_key' THEN NULL ELSE (options ->> 'max_wait')::interval END);
    END IF;$from$,
             $to$    PERFORM events_emit_from(source, canvas::uuid, TG_ARGV[1], lower(TG_OP) || '_' || "table", value::text, modifier, '0', NULL);$to$]]
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
    schema    text := (SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'events_v2'::regclass);
    functions jsonb := (
        SELECT jsonb_agg(jsonb_build_object('name', p.proname, 'of', p.oid::regprocedure, 'owner', p.proowner::regrole, 'acl', p.proacl::text[],
            'definition', pg_get_functiondef(p.oid)))
        FROM pg_proc p WHERE p.pronamespace = schema::regnamespace AND p.proname IN ('events_emit', 'events_emit_from')
          AND pg_get_function_arguments(p.oid) LIKE '%, parent_id bigint%');
    was       jsonb;
    change    text[];
    script    text;
    made      regprocedure;
    done      oid[] := '{}';
    granted   record;
BEGIN
    PERFORM set_config('intervalstyle', 'postgres', true); -- for the defaults in the definitions
    FOR was IN SELECT f FROM jsonb_array_elements(functions) AS f ORDER BY f ->> 'name' LOOP
        EXECUTE format('DROP FUNCTION %s', was ->> 'of');
    END LOOP;
    FOR was IN SELECT f FROM jsonb_array_elements(functions) AS f ORDER BY f ->> 'name' DESC LOOP
        script := was ->> 'definition';
        FOREACH change SLICE 1 IN ARRAY CASE was ->> 'name' WHEN 'events_emit' THEN ARRAY[
            [$from$parent_id bigint DEFAULT NULL::bigint, ordering_key text DEFAULT ''::text, unique_key text DEFAULT ''::text, unique_for interval DEFAULT '00:00:00'::interval, unique_mode text DEFAULT 'until_end'::text, max_wait interval DEFAULT NULL::interval)$from$,
             $to$parent_id bigint DEFAULT NULL::bigint)$to$],
            [$from$attributes, parent_id, ordering_key, unique_key, unique_for, unique_mode, max_wait)$from$,
             $to$attributes, parent_id)$to$]]
            ELSE ARRAY[
            [$from$parent_id bigint DEFAULT NULL::bigint, ordering_key text DEFAULT ''::text, unique_key text DEFAULT ''::text, unique_for interval DEFAULT '00:00:00'::interval, unique_mode text DEFAULT 'until_end'::text, max_wait interval DEFAULT NULL::interval)$from$,
             $to$parent_id bigint DEFAULT NULL::bigint)$to$],
            [$from$events_mistake_in_origin(attributes, parent_id),
        events_mistake_in_keys(at, ordering_key, unique_key, unique_for, unique_mode, max_wait));$from$,
             $to$events_mistake_in_origin(attributes, parent_id));$to$],
            [$from$    IF ordering_key <> '' OR unique_key <> '' THEN
        RETURN (events_v2_emit_keyed(canvas, module, name, modifier, value, delay, delay_until, attributes, parent_id, coalesce(ordering_key, ''),
            coalesce(unique_key, ''), ceil(extract(epoch FROM at + unique_for - at))::integer, unique_mode, max_wait, NULL,
            ARRAY[events_v2_channel('events_v2_pending')], NULL)).id;
    END IF;
    id := nextval('events_id_seq');$from$,
             $to$    id := nextval('events_id_seq');$to$]] END
        LOOP
            IF strpos(script, change[1]) = 0 THEN
                RAISE EXCEPTION '% is not as this migration expects it: it lacks %', was ->> 'of', change[1];
            END IF;
            script := replace(script, change[1], change[2]);
        END LOOP;
        EXECUTE script;
        SELECT p.oid INTO STRICT made FROM pg_proc p
        WHERE p.pronamespace = schema::regnamespace AND p.proname = was ->> 'name'
          AND pg_get_function_arguments(p.oid) LIKE '%, parent_id bigint%' AND p.oid <> ALL (done);
        done := done || made::oid;
        IF was ->> 'owner' <> quote_ident(current_user) THEN
            EXECUTE format('ALTER FUNCTION %s OWNER TO %s', made, was ->> 'owner');
        END IF;
        IF jsonb_typeof(was -> 'acl') = 'array' THEN
            EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', made);
            FOR granted IN
                SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role, CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END AS option
                FROM aclexplode(ARRAY(SELECT jsonb_array_elements_text(was -> 'acl'))::aclitem[]) AS a
            LOOP
                EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s%s', made, granted.role, granted.option);
            END LOOP;
        END IF;
    END LOOP;
END
$do$;
-- +goose StatementEnd
DROP FUNCTION events_key_of_row;
DROP FUNCTION events_mistake_in_keys;
DROP FUNCTION events_v2_emit_keyed;
DROP FUNCTION events_v2_lock_keys;
DROP TABLE unique_heirs;
ALTER TABLE event_log DROP COLUMN unique_key;
ALTER TABLE events_v2 DROP COLUMN unique_key;

-- When an event may run. In a delay, a day has 24 hours and a month 30 days.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION events_mistake_in_delay(at timestamptz, delay interval, delay_until timestamptz) RETURNS text[]
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
