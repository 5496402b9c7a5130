-- The names of ordering groups, concurrency limits and notifications are those of the
-- glossary, in SQL as everywhere else. Programs of a version before this one know the old
-- names: stop them before this migration.
-- Locks: events_v2 and the tables below, ACCESS EXCLUSIVE, for a moment (no row is read or
-- written).

-- +goose Up

-- events_v2.group_state: 0, the event is in no ordering group, and need not be unless
-- concurrency_limits says so; 1, it waits in one; 2, all of its groups have admitted it; 3,
-- it joins its groups when its notification arrives and it is due.
-- event_groups: the groups that an event is in, with a row for each stage: 1 its ordering
-- key, 2 its handler, 3 its canvas. An admitted event stays admitted until it ends, or
-- is deferred.
-- event_group_locks: the locks of groups, a row for each number.
-- concurrency_limits: how many events of a group may run at once; the group_key 'keys' is
-- that of every ordering key without a row of its own.
-- unique_expiries: when the keys of events that have ended are free again.
ALTER TABLE events_v2 RENAME COLUMN line TO group_state;
ALTER TABLE event_lines RENAME TO event_groups;
ALTER TABLE event_groups RENAME COLUMN line TO group_key;
ALTER TABLE event_groups RENAME COLUMN turn TO admitted;
ALTER TABLE event_groups RENAME CONSTRAINT event_lines_pkey TO event_groups_pkey;
ALTER INDEX event_lines_order RENAME TO event_groups_order;
ALTER TABLE event_line_locks RENAME TO event_group_locks;
ALTER TABLE event_group_locks RENAME CONSTRAINT event_line_locks_pkey TO event_group_locks_pkey;
ALTER TABLE running_limits RENAME TO concurrency_limits;
ALTER TABLE concurrency_limits RENAME COLUMN line TO group_key;
ALTER TABLE concurrency_limits RENAME CONSTRAINT running_limits_pkey TO concurrency_limits_pkey;
ALTER TABLE concurrency_limits RENAME CONSTRAINT running_limits_positive TO concurrency_limits_positive;
ALTER TABLE unique_ends RENAME TO unique_expiries;
ALTER TABLE unique_expiries RENAME CONSTRAINT unique_ends_pkey TO unique_expiries_pkey;
ALTER INDEX events_v2_put_off RENAME TO events_v2_delayed;
ALTER TABLE events_v2_settings RENAME COLUMN one TO singleton;
ALTER TABLE events_v2_settings RENAME CONSTRAINT events_v2_settings_one TO events_v2_settings_singleton;
ALTER FUNCTION events_v2_line RENAME TO events_v2_group_key;
ALTER FUNCTION events_v2_turns RENAME TO events_v2_advance;

-- As before, under the name of the column.
DROP FUNCTION events_v2_max_running;
CREATE FUNCTION events_v2_max_running(stage integer, canvas uuid, group_key text) RETURNS integer
LANGUAGE sql STABLE
RETURN coalesce(
    (SELECT l.max_running FROM concurrency_limits l WHERE l.canvas_id = canvas AND l.group_key = events_v2_max_running.group_key),
    (SELECT l.max_running FROM concurrency_limits l WHERE stage = 1 AND l.canvas_id = canvas AND l.group_key = 'keys'),
    CASE stage WHEN 1 THEN 1 END);

-- events_v2_advance is the only place where groups admit events. It takes events that may
-- have left their groups (those that have ended, and those that run no more; of these,
-- passes says for each whether it lets the next event of its key go first) and events that
-- arrive at theirs, and returns those that have been admitted by all of their groups. What
-- it is given is a hint: it reads the rows itself. A lock that is older than lock_timeout
-- does not count; NULL: all do.
--
-- An event passes the stages one after the other, and only an event that is admitted at one
-- joins its group of the next. All calls take the locks of groups in one order, by stage and
-- then by number, and wait for nothing else: rows that others are writing are skipped. So
-- calls do not deadlock, and a group is locked for moments, as long as nobody makes the call
-- in a transaction that goes on. It takes a lock for each group of the events that it is
-- given: callers pass few hundred at once.
--
-- Each query of a row stands in a sub-select of its own, which no plan makes a join of: a plan
-- that was made for empty tables, and kept, is the right one for full ones.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION events_v2_advance(left_ids bigint[], passes boolean[], arrived bigint[], lock_timeout interval)
RETURNS TABLE (id bigint, canvas_id uuid, module text, name text, modifier text)
LANGUAGE plpgsql SET lock_timeout = '1s' SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    max_chosen CONSTANT integer := 1000; -- how many events of one group a call admits
    expired    CONSTANT timestamptz := clock_timestamp() - lock_timeout;
    ended      bigint[]; -- of left_ids, those that are in the queue no more
    deferred   bigint[]; -- and those that will run later
    passing    bigint[]; -- of these, those that let the next event of their key go first
    rejoining  bigint[] := '{}'; -- and those that have to join their groups again
    leaving    bigint[]; -- the events that leave their groups of this stage
    moving     bigint[]; -- the events that have been admitted by all groups before this stage
    group_keys text[];
    canvases   uuid[];
    chosen     bigint[]; -- the events that the groups of this stage admit now
    batch      integer;
BEGIN
    -- Whatever waits is locked first, so that it cannot be claimed meanwhile.
    deferred := ARRAY(SELECT e.id FROM events_v2 e
        WHERE e.id = ANY (left_ids) AND e.group_state = 2 AND (e.locked_at IS NULL OR e.locked_at <= expired) FOR UPDATE SKIP LOCKED);
    passing := ARRAY(SELECT l.id FROM unnest(left_ids, passes) AS l (id, passes) WHERE l.passes AND l.id = ANY (deferred));
    moving := ARRAY(SELECT e.id FROM events_v2 e
        WHERE e.id = ANY (arrived) AND e.group_state <> 2 AND e.locked_at IS NULL FOR UPDATE SKIP LOCKED);
    arrived := moving;
    ended := ARRAY(SELECT l.id FROM unnest(left_ids) AS l (id) WHERE (SELECT true FROM events_v2 e WHERE e.id = l.id) IS NULL);
    -- An event that arrives takes the places of those that are admitted under the same
    -- limits and cannot run: a rule or a delay holds them back, and no worker runs them.
    deferred := deferred || ARRAY(SELECT e.id FROM events_v2 e
        WHERE e.id = ANY (ARRAY(
            SELECT admitted.event_id
            FROM (
                SELECT DISTINCT e.canvas_id, events_v2_group_key(stage, e.module, e.name, '') AS group_key
                FROM events_v2 e CROSS JOIN generate_series(2, 3) AS stage WHERE e.id = ANY (moving)
            ) AS limited
            CROSS JOIN LATERAL (
                SELECT g.event_id FROM event_groups g
                WHERE g.canvas_id = limited.canvas_id AND g.group_key = limited.group_key AND g.admitted
                ORDER BY g.event_id LIMIT max_chosen
            ) AS admitted))
          AND e.group_state = 2 AND e.id <> ALL (deferred) AND (e.locked_at IS NULL OR e.locked_at <= expired)
          AND (e.delay_until > clock_timestamp() OR (SELECT true FROM scheduling_rules r
              WHERE r.canvas_id = e.canvas_id AND r.event_space = e.module AND r.handler_name = e.name LIMIT 1))
        FOR UPDATE SKIP LOCKED);

    FOR at IN 1..3 LOOP
        leaving := ended || CASE at WHEN 1 THEN passing ELSE deferred END;
        SELECT array_agg(changed.canvas_id ORDER BY changed.canvas_id, changed.group_key),
            array_agg(changed.group_key ORDER BY changed.canvas_id, changed.group_key) INTO canvases, group_keys
        FROM (
            SELECT g.canvas_id, g.group_key FROM event_groups g WHERE g.event_id = ANY (leaving || moving) AND g.stage = at
            UNION
            SELECT e.canvas_id, own.group_key FROM events_v2 e, events_v2_group_key(at, e.module, e.name, e.ordering_key) AS own (group_key)
            WHERE e.id = ANY (moving) AND (at > 1 OR e.ordering_key <> '') AND events_v2_max_running(at, e.canvas_id, own.group_key) IS NOT NULL
        ) AS changed;
        CONTINUE WHEN group_keys IS NULL;
        INSERT INTO event_group_locks AS held (number) -- makes what is missing, and locks the rest without writing it
        SELECT DISTINCT at * 262144 + (hashtextextended(format('%s %s', changed.canvas_id, changed.group_key), 0) & 262143)::integer AS number
        FROM unnest(canvases, group_keys) AS changed (canvas_id, group_key) ORDER BY number
        ON CONFLICT (number) DO UPDATE SET number = held.number WHERE false;

        WITH left_group AS (
            DELETE FROM event_groups g WHERE g.event_id = ANY (leaving) AND g.stage = at RETURNING g.event_id
        ) SELECT rejoining || coalesce(array_agg(event_id), '{}') INTO rejoining FROM left_group;
        INSERT INTO event_groups (event_id, stage, canvas_id, group_key)
        SELECT e.id, at, e.canvas_id, own.group_key FROM events_v2 e, events_v2_group_key(at, e.module, e.name, e.ordering_key) AS own (group_key)
        WHERE e.id = ANY (moving) AND (at > 1 OR e.ordering_key <> '') AND events_v2_max_running(at, e.canvas_id, own.group_key) IS NOT NULL
        ON CONFLICT DO NOTHING;

        batch := max_chosen;
        LOOP
            chosen := ARRAY(
                SELECT following.event_id
                FROM unnest(canvases, group_keys) AS changed (canvas_id, group_key)
                CROSS JOIN LATERAL (
                    SELECT least(max_chosen, events_v2_max_running(at, changed.canvas_id, changed.group_key) - (
                        SELECT count(*) FROM event_groups g WHERE g.canvas_id = changed.canvas_id AND g.group_key = changed.group_key AND g.admitted)) AS room
                ) AS free
                CROSS JOIN LATERAL (
                    SELECT g.event_id FROM event_groups g
                    WHERE g.canvas_id = changed.canvas_id AND g.group_key = changed.group_key AND NOT g.admitted
                    ORDER BY g.event_id LIMIT greatest(free.room, 0)
                ) AS following);
            EXIT WHEN NOT EXISTS (SELECT FROM unnest(chosen) AS c (id) WHERE (SELECT true FROM events_v2 e WHERE e.id = c.id) IS NULL);
            -- Events that were waiting have been deleted by hand, perhaps many: their rows are
            -- deleted in ever larger batches, since each query begins with all rows before.
            DELETE FROM event_groups g WHERE g.event_id = ANY (ARRAY(
                SELECT first.event_id
                FROM unnest(canvases, group_keys) AS changed (canvas_id, group_key)
                CROSS JOIN LATERAL (
                    SELECT g.event_id FROM event_groups g
                    WHERE g.canvas_id = changed.canvas_id AND g.group_key = changed.group_key AND NOT g.admitted
                    ORDER BY g.event_id LIMIT batch
                ) AS first
                WHERE (SELECT true FROM events_v2 e WHERE e.id = first.event_id) IS NULL));
            batch := 2 * batch;
        END LOOP;
        chosen := ARRAY(SELECT e.id FROM events_v2 e WHERE e.id = ANY (chosen) FOR UPDATE SKIP LOCKED);
        UPDATE event_groups g SET admitted = true WHERE g.event_id = ANY (chosen) AND g.stage = at;

        moving := ARRAY(
            SELECT m.id FROM unnest(moving) AS m (id)
            WHERE (SELECT g.admitted FROM event_groups g WHERE g.event_id = m.id AND g.stage = at) IS NOT FALSE
            UNION
            SELECT unnest(chosen));
    END LOOP;

    -- Of the deferred events, all to which a limit applies, a new one as well, have to join
    -- again. An expired lock is removed as a claim would do it: the run counts as lost.
    UPDATE events_v2 e SET group_state = 3, locked_at = NULL,
        retries = e.retries + (e.locked_at IS NOT NULL AND e.begun)::int,
        lost_run = e.lost_run OR e.locked_at IS NOT NULL AND e.begun,
        begin_first = e.begin_first OR e.locked_at IS NOT NULL AND NOT e.begun
    WHERE e.id = ANY (deferred) AND (e.id = ANY (rejoining)
        OR events_v2_max_running(2, e.canvas_id, events_v2_group_key(2, e.module, e.name, '')) IS NOT NULL
        OR events_v2_max_running(3, e.canvas_id, 'canvas') IS NOT NULL);
    UPDATE events_v2 e SET group_state = 1 WHERE e.id = ANY (arrived) AND e.id <> ALL (moving) AND e.group_state <> 1;
    RETURN QUERY
    UPDATE events_v2 e SET group_state = 2, notified_at = clock_timestamp() WHERE e.id = ANY (moving) AND e.group_state <> 2
    RETURNING e.id, e.canvas_id, e.module, e.name, e.modifier;
END
$$;
-- +goose StatementEnd

CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings'];

-- The channel to which the relay listens.
-- +goose StatementBegin
DO $do$
DECLARE
    old CONSTANT text := $$'events_v2_owed'$$;
    new CONSTANT text := $$'events_v2_pending'$$;
    definition text := pg_get_functiondef('events_emit_from'::regproc);
BEGIN
    IF strpos(definition, old) = 0 THEN
        RAISE EXCEPTION 'events_emit_from is not as the migrations before this one have made it: it lacks "%"', old;
    END IF;
    EXECUTE replace(definition, old, new);
END
$do$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
DO $do$
DECLARE
    old CONSTANT text := $$'events_v2_pending'$$;
    new CONSTANT text := $$'events_v2_owed'$$;
    definition text := pg_get_functiondef('events_emit_from'::regproc);
BEGIN
    IF strpos(definition, old) = 0 THEN
        RAISE EXCEPTION 'events_emit_from is not as the migrations before this one have made it: it lacks "%"', old;
    END IF;
    EXECUTE replace(definition, old, new);
END
$do$;
-- +goose StatementEnd

CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_ends', 'running_limits', 'event_lines', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_line_locks', 'eventsv2_schema_version', 'events_v2_settings'];

ALTER FUNCTION events_v2_advance RENAME TO events_v2_turns;
ALTER FUNCTION events_v2_group_key RENAME TO events_v2_line;
ALTER TABLE events_v2_settings RENAME CONSTRAINT events_v2_settings_singleton TO events_v2_settings_one;
ALTER TABLE events_v2_settings RENAME COLUMN singleton TO one;
ALTER INDEX events_v2_delayed RENAME TO events_v2_put_off;
ALTER TABLE unique_expiries RENAME CONSTRAINT unique_expiries_pkey TO unique_ends_pkey;
ALTER TABLE unique_expiries RENAME TO unique_ends;
ALTER TABLE concurrency_limits RENAME CONSTRAINT concurrency_limits_positive TO running_limits_positive;
ALTER TABLE concurrency_limits RENAME CONSTRAINT concurrency_limits_pkey TO running_limits_pkey;
ALTER TABLE concurrency_limits RENAME COLUMN group_key TO line;
ALTER TABLE concurrency_limits RENAME TO running_limits;
ALTER TABLE event_group_locks RENAME CONSTRAINT event_group_locks_pkey TO event_line_locks_pkey;
ALTER TABLE event_group_locks RENAME TO event_line_locks;
ALTER INDEX event_groups_order RENAME TO event_lines_order;
ALTER TABLE event_groups RENAME CONSTRAINT event_groups_pkey TO event_lines_pkey;
ALTER TABLE event_groups RENAME COLUMN admitted TO turn;
ALTER TABLE event_groups RENAME COLUMN group_key TO line;
ALTER TABLE event_groups RENAME TO event_lines;
ALTER TABLE events_v2 RENAME COLUMN group_state TO line;

DROP FUNCTION events_v2_max_running;
CREATE FUNCTION events_v2_max_running(stage integer, canvas uuid, line text) RETURNS integer
LANGUAGE sql STABLE
RETURN coalesce(
    (SELECT l.max_running FROM running_limits l WHERE l.canvas_id = canvas AND l.line = events_v2_max_running.line),
    (SELECT l.max_running FROM running_limits l WHERE stage = 1 AND l.canvas_id = canvas AND l.line = 'keys'),
    CASE stage WHEN 1 THEN 1 END);

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
        INSERT INTO event_line_locks AS held (number) -- makes what is missing, and locks the rest without writing it
        SELECT DISTINCT at * 262144 + (hashtextextended(format('%s %s', l.canvas_id, l.line), 0) & 262143)::integer AS number
        FROM unnest(canvases, lines) AS l (canvas_id, line) ORDER BY number
        ON CONFLICT (number) DO UPDATE SET number = held.number WHERE false;

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
    UPDATE events_v2 e SET line = 3, locked_at = NULL, retries = e.retries + (e.locked_at IS NOT NULL AND e.begun)::int, lost_run = e.lost_run OR e.locked_at IS NOT NULL AND e.begun, begin_first = e.begin_first OR e.locked_at IS NOT NULL AND NOT e.begun
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
