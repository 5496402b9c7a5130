-- Rules for one modifier and for all handlers whose names begin in the same way, and rules that are lifted by
-- and by. A program of a version before this one takes such a rule for one of the whole handler of that
-- name: stop these programs before you add one.
-- Locks: scheduling_rules, ACCESS EXCLUSIVE, while its rows are read to build two indexes; these are as many
-- as there are rules. Claims read that table: they wait that long.

-- +goose Up

-- modifier: the rule is only of handlers with this modifier; empty: whatever the modifier.
-- prefix: it is of all handlers of the module whose names begin with handler_name.
-- rate: while the rule is being lifted, how many events are let run in a second; NULL: it is
-- not being lifted. Of its events, those above the id released_to are still held back, and
-- the rate has been used up to released_at.
ALTER TABLE scheduling_rules
    ADD COLUMN modifier text NOT NULL DEFAULT '',
    ADD COLUMN prefix boolean NOT NULL DEFAULT false,
    ADD COLUMN rate integer,
    ADD COLUMN released_to bigint,
    ADD COLUMN released_at timestamptz,
    ADD CONSTRAINT scheduling_rules_released CHECK ((rate IS NULL) = (released_to IS NULL) AND (rate IS NULL) = (released_at IS NULL) AND rate > 0),
    DROP CONSTRAINT scheduling_rules_once,
    -- I14: pausing twice equals pausing once.
    ADD CONSTRAINT scheduling_rules_once UNIQUE (canvas_id, event_space, handler_name, rule_type, modifier, prefix);
CREATE INDEX scheduling_rules_narrow ON scheduling_rules (canvas_id, event_space)
    WHERE prefix OR modifier <> '' OR released_to IS NOT NULL;

-- As before, but a rule may be of some events only.
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
          AND (e.delay_until > clock_timestamp() OR coalesce(
              (SELECT true FROM scheduling_rules r
               WHERE r.canvas_id = e.canvas_id AND r.event_space = e.module AND r.handler_name = e.name
                 AND r.modifier IN ('', e.modifier) AND (r.released_to IS NULL OR e.id > r.released_to) LIMIT 1),
              (SELECT true FROM scheduling_rules r
               WHERE (r.prefix OR r.modifier <> '' OR r.released_to IS NOT NULL) AND r.prefix
                 AND r.canvas_id = e.canvas_id AND r.event_space = e.module AND starts_with(e.name, r.handler_name)
                 AND r.modifier IN ('', e.modifier) AND (r.released_to IS NULL OR e.id > r.released_to) LIMIT 1)))
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

-- +goose StatementBegin
DO $do$
BEGIN
    EXECUTE format('ALTER FUNCTION events_v2_advance SET search_path = pg_catalog, %s, pg_temp',
        (SELECT relnamespace::regnamespace FROM pg_class WHERE oid = 'events_v2'::regclass));
END
$do$;
-- +goose StatementEnd

-- +goose Down
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

-- +goose StatementBegin
DO $do$
BEGIN
    EXECUTE format('ALTER FUNCTION events_v2_advance SET search_path = pg_catalog, %s, pg_temp',
        (SELECT relnamespace::regnamespace FROM pg_class WHERE oid = 'events_v2'::regclass));
END
$do$;
-- +goose StatementEnd

-- What is left has to mean the same: a rule of a modifier or a prefix has no counterpart.
DELETE FROM scheduling_rules WHERE prefix OR modifier <> '';
DROP INDEX scheduling_rules_narrow;
ALTER TABLE scheduling_rules
    DROP CONSTRAINT scheduling_rules_once,
    DROP COLUMN modifier, DROP COLUMN prefix, DROP COLUMN rate, DROP COLUMN released_to, DROP COLUMN released_at,
    ADD CONSTRAINT scheduling_rules_once UNIQUE (canvas_id, event_space, handler_name, rule_type);
