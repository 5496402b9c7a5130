-- The turn of an event that nobody runs, and that a rule or a delay keeps from
-- running, is free: whoever comes to the same limit takes it back.
-- Locks: none.

-- +goose Up

-- As before, and with the second part of put_off.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION events_v2_turns(left_ids bigint[], passes boolean[], arrived bigint[], lock_timeout interval)
RETURNS TABLE (id bigint, canvas_id uuid, module text, name text, modifier text)
LANGUAGE plpgsql SET lock_timeout = '1s' SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    most    CONSTANT integer := 1000; -- who get a turn in one call, of one line
    expired CONSTANT timestamptz := clock_timestamp() - lock_timeout;
    gone    bigint[]; -- of left_ids, those that have left for good
    put_off bigint[]; -- and those that will come back
    passing bigint[]; -- of these, those that let the next of their key go first
    again   bigint[] := '{}'; -- and those that have to take a place again
    leaving bigint[]; -- whose places at this stage are free now
    moving  bigint[]; -- who come to the next stage
    lines   text[];
    canvases uuid[];
    chosen  bigint[];
    many    integer;
BEGIN
    -- Whatever waits is locked first, so that it cannot be claimed meanwhile.
    put_off := ARRAY(SELECT e.id FROM events_v2 e
        WHERE e.id = ANY (left_ids) AND e.line = 2 AND (e.locked_at IS NULL OR e.locked_at <= expired) FOR UPDATE SKIP LOCKED);
    passing := ARRAY(SELECT l.id FROM unnest(left_ids, passes) AS l (id, passes) WHERE l.passes AND l.id = ANY (put_off));
    moving := ARRAY(SELECT e.id FROM events_v2 e
        WHERE e.id = ANY (arrived) AND e.line <> 2 AND e.locked_at IS NULL FOR UPDATE SKIP LOCKED);
    arrived := moving;
    gone := ARRAY(SELECT l.id FROM unnest(left_ids) AS l (id) WHERE (SELECT true FROM events_v2 e WHERE e.id = l.id) IS NULL);
    -- Who comes takes back the turns of those that hold the same limits and cannot
    -- run: a rule or a delay keeps them from it, and nobody runs them.
    put_off := put_off || ARRAY(SELECT e.id FROM events_v2 e
        WHERE e.id = ANY (ARRAY(
            SELECT p.event_id
            FROM (
                SELECT DISTINCT e.canvas_id, events_v2_line(stage, e.module, e.name, '') AS line
                FROM events_v2 e CROSS JOIN generate_series(2, 3) AS stage WHERE e.id = ANY (moving)
            ) AS l
            CROSS JOIN LATERAL (
                SELECT p.event_id FROM event_lines p
                WHERE p.canvas_id = l.canvas_id AND p.line = l.line AND p.turn
                ORDER BY p.event_id LIMIT most
            ) AS p))
          AND e.line = 2 AND e.id <> ALL (put_off) AND (e.locked_at IS NULL OR e.locked_at <= expired)
          AND (e.delay_until > clock_timestamp() OR (SELECT true FROM scheduling_rules r
              WHERE r.canvas_id = e.canvas_id AND r.event_space = e.module AND r.handler_name = e.name LIMIT 1))
        FOR UPDATE SKIP LOCKED);

    FOR at IN 1..3 LOOP
        leaving := gone || CASE at WHEN 1 THEN passing ELSE put_off END;
        SELECT array_agg(l.canvas_id ORDER BY l.canvas_id, l.line), array_agg(l.line ORDER BY l.canvas_id, l.line) INTO canvases, lines
        FROM (
            SELECT p.canvas_id, p.line FROM event_lines p WHERE p.event_id = ANY (leaving || moving) AND p.stage = at
            UNION
            SELECT e.canvas_id, own.line FROM events_v2 e, events_v2_line(at, e.module, e.name, e.ordering_key) AS own (line)
            WHERE e.id = ANY (moving) AND (at > 1 OR e.ordering_key <> '') AND events_v2_max_running(at, e.canvas_id, own.line) IS NOT NULL
        ) AS l;
        CONTINUE WHEN lines IS NULL;
        PERFORM pg_advisory_xact_lock(number) FROM (
            SELECT DISTINCT hashtextextended(format('events_v2 %s %s %s', at, l.canvas_id, l.line), 0) AS number
            FROM unnest(canvases, lines) AS l (canvas_id, line) ORDER BY number) AS locks;

        WITH given_up AS (
            DELETE FROM event_lines p WHERE p.event_id = ANY (leaving) AND p.stage = at RETURNING p.event_id
        ) SELECT again || coalesce(array_agg(event_id), '{}') INTO again FROM given_up;
        INSERT INTO event_lines (event_id, stage, canvas_id, line)
        SELECT e.id, at, e.canvas_id, own.line FROM events_v2 e, events_v2_line(at, e.module, e.name, e.ordering_key) AS own (line)
        WHERE e.id = ANY (moving) AND (at > 1 OR e.ordering_key <> '') AND events_v2_max_running(at, e.canvas_id, own.line) IS NOT NULL
        ON CONFLICT DO NOTHING;

        many := most;
        LOOP
            chosen := ARRAY(
                SELECT following.event_id
                FROM unnest(canvases, lines) AS l (canvas_id, line)
                CROSS JOIN LATERAL (
                    SELECT least(most, events_v2_max_running(at, l.canvas_id, l.line) - (
                        SELECT count(*) FROM event_lines p WHERE p.canvas_id = l.canvas_id AND p.line = l.line AND p.turn)) AS room
                ) AS free
                CROSS JOIN LATERAL (
                    SELECT p.event_id FROM event_lines p
                    WHERE p.canvas_id = l.canvas_id AND p.line = l.line AND NOT p.turn
                    ORDER BY p.event_id LIMIT greatest(free.room, 0)
                ) AS following);
            EXIT WHEN NOT EXISTS (SELECT FROM unnest(chosen) AS c (id) WHERE (SELECT true FROM events_v2 e WHERE e.id = c.id) IS NULL);
            -- Somebody has deleted events that were waiting, perhaps many: they go
            -- in ever larger portions, since each look begins with all before it.
            DELETE FROM event_lines p WHERE p.event_id = ANY (ARRAY(
                SELECT first.event_id
                FROM unnest(canvases, lines) AS l (canvas_id, line)
                CROSS JOIN LATERAL (
                    SELECT p.event_id FROM event_lines p
                    WHERE p.canvas_id = l.canvas_id AND p.line = l.line AND NOT p.turn
                    ORDER BY p.event_id LIMIT many
                ) AS first
                WHERE (SELECT true FROM events_v2 e WHERE e.id = first.event_id) IS NULL));
            many := 2 * many;
        END LOOP;
        chosen := ARRAY(SELECT e.id FROM events_v2 e WHERE e.id = ANY (chosen) FOR UPDATE SKIP LOCKED);
        UPDATE event_lines p SET turn = true WHERE p.event_id = ANY (chosen) AND p.stage = at;

        moving := ARRAY(
            SELECT m.id FROM unnest(moving) AS m (id)
            WHERE (SELECT p.turn FROM event_lines p WHERE p.event_id = m.id AND p.stage = at) IS NOT FALSE
            UNION
            SELECT unnest(chosen));
    END LOOP;

    -- Of those that will come back, all whom a limit concerns, also a new one. An
    -- expired lock is taken away as a claim would: the run has failed.
    UPDATE events_v2 e SET line = 3, locked_at = NULL, retries = e.retries + (e.locked_at IS NOT NULL)::int
    WHERE e.id = ANY (put_off) AND (e.id = ANY (again)
        OR events_v2_max_running(2, e.canvas_id, events_v2_line(2, e.module, e.name, '')) IS NOT NULL
        OR events_v2_max_running(3, e.canvas_id, 'canvas') IS NOT NULL);
    UPDATE events_v2 e SET line = 1 WHERE e.id = ANY (arrived) AND e.id <> ALL (moving) AND e.line <> 1;
    RETURN QUERY
    UPDATE events_v2 e SET line = 2, notified_at = clock_timestamp() WHERE e.id = ANY (moving) AND e.line <> 2
    RETURNING e.id, e.canvas_id, e.module, e.name, e.modifier;
END
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION events_v2_turns(left_ids bigint[], passes boolean[], arrived bigint[], lock_timeout interval)
RETURNS TABLE (id bigint, canvas_id uuid, module text, name text, modifier text)
LANGUAGE plpgsql SET lock_timeout = '1s' SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    most    CONSTANT integer := 1000; -- who get a turn in one call, of one line
    expired CONSTANT timestamptz := clock_timestamp() - lock_timeout;
    gone    bigint[]; -- of left_ids, those that have left for good
    put_off bigint[]; -- and those that will come back
    passing bigint[]; -- of these, those that let the next of their key go first
    again   bigint[] := '{}'; -- and those that have to take a place again
    leaving bigint[]; -- whose places at this stage are free now
    moving  bigint[]; -- who come to the next stage
    lines   text[];
    canvases uuid[];
    chosen  bigint[];
    many    integer;
BEGIN
    -- Whatever waits is locked first, so that it cannot be claimed meanwhile.
    put_off := ARRAY(SELECT e.id FROM events_v2 e
        WHERE e.id = ANY (left_ids) AND e.line = 2 AND (e.locked_at IS NULL OR e.locked_at <= expired) FOR UPDATE SKIP LOCKED);
    passing := ARRAY(SELECT l.id FROM unnest(left_ids, passes) AS l (id, passes) WHERE l.passes AND l.id = ANY (put_off));
    moving := ARRAY(SELECT e.id FROM events_v2 e
        WHERE e.id = ANY (arrived) AND e.line <> 2 AND e.locked_at IS NULL FOR UPDATE SKIP LOCKED);
    arrived := moving;
    gone := ARRAY(SELECT l.id FROM unnest(left_ids) AS l (id) WHERE (SELECT true FROM events_v2 e WHERE e.id = l.id) IS NULL);

    FOR at IN 1..3 LOOP
        leaving := gone || CASE at WHEN 1 THEN passing ELSE put_off END;
        SELECT array_agg(l.canvas_id ORDER BY l.canvas_id, l.line), array_agg(l.line ORDER BY l.canvas_id, l.line) INTO canvases, lines
        FROM (
            SELECT p.canvas_id, p.line FROM event_lines p WHERE p.event_id = ANY (leaving || moving) AND p.stage = at
            UNION
            SELECT e.canvas_id, own.line FROM events_v2 e, events_v2_line(at, e.module, e.name, e.ordering_key) AS own (line)
            WHERE e.id = ANY (moving) AND (at > 1 OR e.ordering_key <> '') AND events_v2_max_running(at, e.canvas_id, own.line) IS NOT NULL
        ) AS l;
        CONTINUE WHEN lines IS NULL;
        PERFORM pg_advisory_xact_lock(number) FROM (
            SELECT DISTINCT hashtextextended(format('events_v2 %s %s %s', at, l.canvas_id, l.line), 0) AS number
            FROM unnest(canvases, lines) AS l (canvas_id, line) ORDER BY number) AS locks;

        WITH given_up AS (
            DELETE FROM event_lines p WHERE p.event_id = ANY (leaving) AND p.stage = at RETURNING p.event_id
        ) SELECT again || coalesce(array_agg(event_id), '{}') INTO again FROM given_up;
        INSERT INTO event_lines (event_id, stage, canvas_id, line)
        SELECT e.id, at, e.canvas_id, own.line FROM events_v2 e, events_v2_line(at, e.module, e.name, e.ordering_key) AS own (line)
        WHERE e.id = ANY (moving) AND (at > 1 OR e.ordering_key <> '') AND events_v2_max_running(at, e.canvas_id, own.line) IS NOT NULL
        ON CONFLICT DO NOTHING;

        many := most;
        LOOP
            chosen := ARRAY(
                SELECT following.event_id
                FROM unnest(canvases, lines) AS l (canvas_id, line)
                CROSS JOIN LATERAL (
                    SELECT least(most, events_v2_max_running(at, l.canvas_id, l.line) - (
                        SELECT count(*) FROM event_lines p WHERE p.canvas_id = l.canvas_id AND p.line = l.line AND p.turn)) AS room
                ) AS free
                CROSS JOIN LATERAL (
                    SELECT p.event_id FROM event_lines p
                    WHERE p.canvas_id = l.canvas_id AND p.line = l.line AND NOT p.turn
                    ORDER BY p.event_id LIMIT greatest(free.room, 0)
                ) AS following);
            EXIT WHEN NOT EXISTS (SELECT FROM unnest(chosen) AS c (id) WHERE (SELECT true FROM events_v2 e WHERE e.id = c.id) IS NULL);
            -- Somebody has deleted events that were waiting, perhaps many: they go
            -- in ever larger portions, since each look begins with all before it.
            DELETE FROM event_lines p WHERE p.event_id = ANY (ARRAY(
                SELECT first.event_id
                FROM unnest(canvases, lines) AS l (canvas_id, line)
                CROSS JOIN LATERAL (
                    SELECT p.event_id FROM event_lines p
                    WHERE p.canvas_id = l.canvas_id AND p.line = l.line AND NOT p.turn
                    ORDER BY p.event_id LIMIT many
                ) AS first
                WHERE (SELECT true FROM events_v2 e WHERE e.id = first.event_id) IS NULL));
            many := 2 * many;
        END LOOP;
        chosen := ARRAY(SELECT e.id FROM events_v2 e WHERE e.id = ANY (chosen) FOR UPDATE SKIP LOCKED);
        UPDATE event_lines p SET turn = true WHERE p.event_id = ANY (chosen) AND p.stage = at;

        moving := ARRAY(
            SELECT m.id FROM unnest(moving) AS m (id)
            WHERE (SELECT p.turn FROM event_lines p WHERE p.event_id = m.id AND p.stage = at) IS NOT FALSE
            UNION
            SELECT unnest(chosen));
    END LOOP;

    -- Of those that will come back, all whom a limit concerns, also a new one. An
    -- expired lock is taken away as a claim would: the run has failed.
    UPDATE events_v2 e SET line = 3, locked_at = NULL, retries = e.retries + (e.locked_at IS NOT NULL)::int
    WHERE e.id = ANY (put_off) AND (e.id = ANY (again)
        OR events_v2_max_running(2, e.canvas_id, events_v2_line(2, e.module, e.name, '')) IS NOT NULL
        OR events_v2_max_running(3, e.canvas_id, 'canvas') IS NOT NULL);
    UPDATE events_v2 e SET line = 1 WHERE e.id = ANY (arrived) AND e.id <> ALL (moving) AND e.line <> 1;
    RETURN QUERY
    UPDATE events_v2 e SET line = 2, notified_at = clock_timestamp() WHERE e.id = ANY (moving) AND e.line <> 2
    RETURNING e.id, e.canvas_id, e.module, e.name, e.modifier;
END
$$;
-- +goose StatementEnd
