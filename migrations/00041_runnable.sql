-- How many events could run now: what autoscalers ask (docs/scaling.md).
-- Locks: none on existing tables.

-- +goose Up

-- Counts the events that run and those that could be claimed now, and ends at most: an autoscaler asks
-- for no more than its limit needs. Not counted is what is not due, held back by a rule, behind others of
-- its ordering group, over a concurrency or rate limit, or for a handler that no worker had of which the
-- table of workers knows; as long as that is empty, every handler counts. It goes by handlers, and
-- reads the oldest and the newest events of each, and those that were put off and are due, all by index. So its cost is
-- bounded, and a few events that could run between thousands that cannot are overlooked.
-- +goose StatementBegin
CREATE FUNCTION events_v2_runnable(most integer DEFAULT 1000) RETURNS integer
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    max_handlers CONSTANT integer := 2000;
    max_read     CONSTANT integer := 50000; -- events, of all handlers
    max_share    CONSTANT integer := 1000;  -- events in each of the three places of a handler
    ruled_share  CONSTANT integer := 50;    -- the same of a handler that a rule holds back: what still runs
    now_at       CONSTANT timestamptz := clock_timestamp();
    expired      CONSTANT timestamptz := now_at - coalesce((SELECT greatest(s.lock_timeout, s.lock_timeout_before) FROM events_v2_settings s), interval '1 minute');
    narrow       CONSTANT boolean := EXISTS (SELECT FROM scheduling_rules r WHERE r.prefix OR r.modifier <> '' OR r.released_to IS NOT NULL);
    -- The handlers of all workers, live or not, with the canvas if they have one; NULL: there has been no worker.
    known        CONSTANT jsonb := (
        SELECT jsonb_object_agg(concat_ws(U&'\001f', h ->> 'canvas_id', h ->> 'module', h ->> 'name', h ->> 'modifier'), true)
        FROM event_workers w CROSS JOIN jsonb_array_elements(w.handlers) AS h);
    total        bigint := 0;
    handlers     integer := 0;
    read         bigint := 0;
    share        integer;
    at_canvas    uuid := '00000000-0000-0000-0000-000000000000';
    at_module    text := '';
    at_name      text := '';
    canvas       uuid;    -- that the rooms of a canvas are of
    canvas_room  bigint;  -- under its concurrency limit; NULL: it has none
    canvas_rate  bigint;  -- and under its rate limit
    handler_room bigint;
    handler_rate bigint;
    ruled        boolean;
    was_read     bigint;
    running      bigint;
    free         bigint;  -- that need join no group any more
    joining      bigint;  -- that the groups of their keys would admit
    runnable     bigint;
BEGIN
    IF most IS NULL OR most < 1 THEN
        RAISE EXCEPTION 'events_v2_runnable: most is %, it must be 1 or more', coalesce(most::text, 'NULL') USING ERRCODE = 'invalid_parameter_value';
    END IF;
    WHILE total < most AND handlers < max_handlers AND read < max_read LOOP
        SELECT e.canvas_id, e.module, e.name INTO at_canvas, at_module, at_name
        FROM events_v2 e WHERE (e.canvas_id, e.module, e.name) > (at_canvas, at_module, at_name)
        ORDER BY e.canvas_id, e.module, e.name LIMIT 1;
        EXIT WHEN NOT FOUND;
        handlers := handlers + 1;

        IF canvas IS DISTINCT FROM at_canvas THEN
            canvas := at_canvas;
            canvas_room := events_v2_room(3, canvas, '', '', '');
            canvas_rate := events_v2_rate_room(canvas, '', '');
        END IF;
        handler_room := events_v2_room(2, at_canvas, at_module, at_name, '');
        handler_rate := events_v2_rate_room(at_canvas, at_module, at_name);
        ruled := EXISTS (
            SELECT FROM scheduling_rules r
            WHERE r.canvas_id = at_canvas AND r.event_space = at_module AND r.handler_name = at_name AND r.modifier = '' AND r.released_to IS NULL)
          OR narrow AND EXISTS (
            SELECT FROM scheduling_rules r
            WHERE r.prefix AND r.canvas_id = at_canvas AND r.event_space = at_module AND starts_with(at_name, r.handler_name)
              AND r.modifier = '' AND r.released_to IS NULL);
        share := CASE WHEN ruled THEN ruled_share ELSE max_share END;

        WITH events AS MATERIALIZED (
            (SELECT e.id, e.modifier, e.delay_until, e.locked_at, e.group_state, e.ordering_key FROM events_v2 e
             WHERE (e.canvas_id, e.module, e.name, e.id) > (at_canvas, at_module, at_name, -9223372036854775808)
               AND (e.canvas_id, e.module, e.name) <= (at_canvas, at_module, at_name)
             ORDER BY e.canvas_id, e.module, e.name, e.id LIMIT share)
            UNION
            (SELECT e.id, e.modifier, e.delay_until, e.locked_at, e.group_state, e.ordering_key FROM events_v2 e
             WHERE (e.canvas_id, e.module, e.name) >= (at_canvas, at_module, at_name)
               AND (e.canvas_id, e.module, e.name, e.id) <= (at_canvas, at_module, at_name, 9223372036854775807)
             ORDER BY e.canvas_id DESC, e.module DESC, e.name DESC, e.id DESC LIMIT share)
            UNION
            (SELECT e.id, e.modifier, e.delay_until, e.locked_at, e.group_state, e.ordering_key FROM events_v2 e
             WHERE e.delay_until > e.enqueued_at AND e.notified_at IS NOT NULL AND (e.canvas_id, e.module, e.name) >= (at_canvas, at_module, at_name)
               AND (e.canvas_id, e.module, e.name, e.delay_until) <= (at_canvas, at_module, at_name, now_at)
             ORDER BY e.canvas_id, e.module, e.name, e.delay_until LIMIT share)
        ), judged AS MATERIALIZED (
            SELECT e.ordering_key, e.group_state, coalesce(e.locked_at > expired, false) AS running,
                NOT ruled AND e.delay_until <= now_at
                AND (known IS NULL OR known ? concat_ws(U&'\001f', at_module, at_name, e.modifier) OR known ? concat_ws(U&'\001f', at_canvas, at_module, at_name, e.modifier))
                AND NOT (narrow AND (EXISTS (
                    SELECT FROM scheduling_rules r
                    WHERE r.canvas_id = at_canvas AND r.event_space = at_module AND r.handler_name = at_name
                      AND r.modifier IN ('', e.modifier) AND (r.released_to IS NULL OR e.id > r.released_to))
                  OR EXISTS (
                    SELECT FROM scheduling_rules r
                    WHERE r.prefix AND r.canvas_id = at_canvas AND r.event_space = at_module AND starts_with(at_name, r.handler_name)
                      AND r.modifier IN ('', e.modifier) AND (r.released_to IS NULL OR e.id > r.released_to)))) AS may,
                e.group_state IN (1, 3) OR e.group_state = 0 AND e.locked_at IS NULL AND (canvas_room IS NOT NULL OR handler_room IS NOT NULL) AS joins
            FROM events e
        ), keys AS (
            SELECT CASE WHEN j.ordering_key = '' THEN count(*)
                ELSE least(count(*), coalesce(events_v2_room(1, at_canvas, '', '', j.ordering_key), count(*))) END AS admits
            FROM judged j WHERE j.may AND NOT j.running AND j.joins GROUP BY j.ordering_key
        )
        SELECT count(*), count(*) FILTER (WHERE j.running), count(*) FILTER (WHERE j.may AND NOT j.running AND NOT j.joins),
            coalesce((SELECT sum(k.admits) FROM keys k), 0)
        INTO was_read, running, free, joining FROM judged j;
        read := read + was_read;

        joining := least(joining, handler_room, canvas_room);
        canvas_room := canvas_room - joining;
        runnable := least(free + joining, handler_rate, canvas_rate);
        canvas_rate := canvas_rate - runnable;
        total := total + running + runnable;
    END LOOP;
    RETURN least(total, most);
END
$$;
-- +goose StatementEnd

-- How many more events the group of a stage admits now; NULL: any number.
CREATE FUNCTION events_v2_room(stage integer, canvas uuid, module text, name text, ordering_key text) RETURNS bigint
LANGUAGE sql STABLE
RETURN (
    SELECT greatest(of_group.max_running - (
        SELECT count(*) FROM event_groups g WHERE g.canvas_id = canvas AND g.group_key = own.group_key AND g.admitted), 0)
    FROM events_v2_group_key(stage, module, name, ordering_key) AS own (group_key),
        events_v2_max_running(stage, canvas, own.group_key) AS of_group (max_running)
    WHERE of_group.max_running IS NOT NULL);

-- How many more events a rate limit lets run in its present windows; NULL: any number. Module and name are
-- empty for that of the canvas. Windows are whole minutes and days of UTC, and what one has overshot counts in the next.
CREATE FUNCTION events_v2_rate_room(canvas uuid, module text, name text) RETURNS bigint
LANGUAGE sql VOLATILE
RETURN (
    SELECT greatest(least(
        l.per_minute - CASE minutes WHEN 0 THEN c.minute_count ELSE greatest(c.minute_count - minutes * l.per_minute, 0) END,
        l.per_day - CASE days WHEN 0 THEN c.day_count ELSE greatest(c.day_count - days * l.per_day, 0) END), 0)
    FROM rate_limits l JOIN rate_counters c ON c.canvas_id = l.canvas_id AND c.module = l.module AND c.name = l.name
    CROSS JOIN LATERAL (
        SELECT round(extract(epoch FROM greatest(date_bin('1 minute', clock_timestamp(), 'epoch'), c.minute_at) - c.minute_at) / 60)::bigint AS minutes,
            round(extract(epoch FROM greatest(date_bin('1 day', clock_timestamp(), 'epoch'), c.day_at) - c.day_at) / 86400)::bigint AS days
    ) AS elapsed
    WHERE l.canvas_id = events_v2_rate_room.canvas AND l.module = events_v2_rate_room.module AND l.name = events_v2_rate_room.name);

-- +goose StatementBegin
DO $do$
BEGIN
    EXECUTE format('ALTER FUNCTION events_v2_runnable SET search_path = pg_catalog, %s, pg_temp',
        (SELECT relnamespace::regnamespace FROM pg_class WHERE oid = 'events_v2'::regclass));
END
$do$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION events_v2_runnable(integer);
DROP FUNCTION events_v2_room(integer, uuid, text, text, text);
DROP FUNCTION events_v2_rate_room(uuid, text, text);
