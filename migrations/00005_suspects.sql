-- Suspects: an event whose worker died uses an attempt only if it died alone (I15), and the order of a key holds for
-- events that were not ready at first (I2). docs/guarantees.md describes both.
-- Locks: events_v2, ACCESS EXCLUSIVE, while it is read twice, the second time for an index: emits and claims wait that long.

-- +goose Up

-- An event that was in hand when its worker died, and how many such events may run in one worker together with it, itself
-- included: 1 means alone, 1023 any number. NULL: no suspect. A lock that expires after the run of a suspect began
-- halves the number; at 1 it uses an attempt. A run that ends makes it NULL again.
ALTER TABLE events_v2 ADD COLUMN suspect smallint;

-- An event with a key is in its group, or joins it later. Rows that SQL has written otherwise join it now.
UPDATE events_v2 SET group_state = 3 WHERE ordering_key <> '' AND group_state = 0;
-- NOT VALID: the rows were corrected above, so the table need not be read once more.
ALTER TABLE events_v2 ADD CONSTRAINT events_v2_in_order CHECK (ordering_key = '' OR group_state <> 0) NOT VALID;

-- The events of a key that join its group when they are due.
CREATE INDEX events_v2_joins ON events_v2 (canvas_id, ordering_key, delay_until, id) WHERE group_state = 3 AND ordering_key <> '';

-- The only place where groups admit events. It takes events that may have left their groups (left_ids: those that have
-- ended, and those that run no more; passes has for each of the latter whether it lets the next event of its key go
-- first) and events that arrive at theirs, and returns those that have now been admitted by all of their groups. The
-- arguments are hints: it reads the rows itself. A lock that is older than lock_timeout does not count; NULL: all do.
--
-- An event passes the stages one after the other: only an event that is admitted at one joins its group of the next.
-- All calls take the locks of groups in one order, by stage and then by number, and wait for nothing else, since rows
-- that others are writing are skipped. So calls do not deadlock, and a group is locked for moments, unless the caller's
-- transaction goes on. It takes a lock for each group of the events that it is given: callers pass a few hundred at once.
--
-- The order of a key holds for whatever is due (I2): with the key's group, the call adds to it the due events of the key
-- whose notifications have not arrived, by their index events_v2_joins, 1,000 of a key at most. A rule holds back
-- only the event that it is for, so that one stays out until its rule is lifted.
--
-- Each query of a row is a sub-select of its own, which no plan turns into a join: a plan that was made for empty
-- tables, and is cached, is then right for full ones.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION events_v2_advance(left_ids bigint[], passes boolean[], arrived bigint[], lock_timeout interval)
RETURNS TABLE (id bigint, canvas_id uuid, module text, name text, modifier text)
LANGUAGE plpgsql SET lock_timeout = '1s' SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    max_chosen CONSTANT integer := 1000; -- how many events of one group a call admits
    max_joined CONSTANT integer := 1000; -- how many due events of one key join its group, and ten times as many those of all
    expired    CONSTANT timestamptz := clock_timestamp() - lock_timeout;
    ended      bigint[]; -- of left_ids, those that are in the queue no more
    deferred   bigint[]; -- and those that will run later
    passing    bigint[]; -- of these, those that let the next event of their key go first
    rejoining  bigint[] := '{}'; -- and those that have to join their groups again
    leaving    bigint[]; -- the events that leave their groups of this stage
    moving     bigint[]; -- the events that have been admitted by all groups before this stage
    joining    bigint[]; -- the due events of these keys that nothing has announced yet
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
            WHERE e.id = ANY (moving) AND (at > 1 OR e.ordering_key <> '')
              AND events_v2_max_running(at, e.canvas_id, own.group_key) IS NOT NULL
        ) AS changed;
        CONTINUE WHEN group_keys IS NULL;
        INSERT INTO event_group_locks AS held (number) -- makes what is missing, and locks the rest without writing it
        SELECT DISTINCT at * 262144
            + (hashtextextended(format('%s %s', changed.canvas_id, changed.group_key), 0) & 262143)::integer AS number
        FROM unnest(canvases, group_keys) AS changed (canvas_id, group_key) ORDER BY number
        ON CONFLICT (number) DO UPDATE SET number = held.number WHERE false;

        WITH left_group AS (
            DELETE FROM event_groups g WHERE g.event_id = ANY (leaving) AND g.stage = at RETURNING g.event_id
        ) SELECT rejoining || coalesce(array_agg(event_id), '{}') INTO rejoining FROM left_group;
        INSERT INTO event_groups (event_id, stage, canvas_id, group_key)
        SELECT e.id, at, e.canvas_id, own.group_key
        FROM events_v2 e, events_v2_group_key(at, e.module, e.name, e.ordering_key) AS own (group_key)
        WHERE e.id = ANY (moving) AND (at > 1 OR e.ordering_key <> '') AND events_v2_max_running(at, e.canvas_id, own.group_key) IS NOT NULL
        ON CONFLICT DO NOTHING;

        IF at = 1 THEN
            -- Also those whose rows others are writing: that of a lower id keeps the others of its key waiting.
            joining := ARRAY(SELECT e.id FROM events_v2 e
                WHERE e.id = ANY (ARRAY(
                    SELECT due.id
                    FROM unnest(canvases, group_keys) AS changed (canvas_id, group_key)
                    CROSS JOIN LATERAL (
                        SELECT e.id FROM events_v2 e
                        WHERE e.group_state = 3 AND e.ordering_key <> '' AND e.canvas_id = changed.canvas_id
                          AND e.ordering_key = substr(changed.group_key, 5) AND e.delay_until <= clock_timestamp()
                        ORDER BY e.canvas_id, e.ordering_key, e.delay_until, e.id
                        LIMIT least(max_joined, greatest(10 * max_joined / cardinality(group_keys), 20))
                    ) AS due))
                  AND e.locked_at IS NULL AND e.id <> ALL (moving)
                  AND (SELECT true FROM event_groups g WHERE g.event_id = e.id AND g.stage = 1 AND g.admitted) IS NULL
                  AND (SELECT true FROM scheduling_rules r
                       WHERE r.canvas_id = e.canvas_id AND r.event_space = e.module
                         AND (r.handler_name = e.name OR r.prefix AND starts_with(e.name, r.handler_name))
                         AND r.modifier IN ('', e.modifier) AND (r.released_to IS NULL OR e.id > r.released_to) LIMIT 1) IS NULL);
            INSERT INTO event_groups (event_id, stage, canvas_id, group_key)
            SELECT e.id, at, e.canvas_id, events_v2_group_key(at, e.module, e.name, e.ordering_key) FROM events_v2 e WHERE e.id = ANY (joining)
            ON CONFLICT DO NOTHING;
            arrived := arrived || ARRAY(SELECT e.id FROM events_v2 e WHERE e.id = ANY (joining) AND e.group_state = 3 FOR UPDATE SKIP LOCKED);
        END IF;

        batch := max_chosen;
        LOOP
            chosen := ARRAY(
                SELECT following.event_id
                FROM unnest(canvases, group_keys) AS changed (canvas_id, group_key)
                CROSS JOIN LATERAL (
                    SELECT least(max_chosen, events_v2_max_running(at, changed.canvas_id, changed.group_key) - (
                        SELECT count(*) FROM event_groups g
                        WHERE g.canvas_id = changed.canvas_id AND g.group_key = changed.group_key AND g.admitted)) AS room
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
    -- again. An expired lock is removed as a claim would do it (pgstore/suspect.go).
    UPDATE events_v2 e SET group_state = 3, locked_at = NULL,
        retries = e.retries + (e.locked_at IS NOT NULL AND e.begun AND coalesce(e.suspect, 0) = 1)::int,
        lost_run = e.lost_run OR e.locked_at IS NOT NULL AND e.begun AND coalesce(e.suspect, 0) = 1,
        begin_first = e.begin_first OR e.locked_at IS NOT NULL,
        suspect = CASE WHEN e.locked_at IS NOT NULL AND e.begun AND e.suspect IS NOT NULL THEN greatest(e.suspect / 2, 1)
                       WHEN e.locked_at IS NOT NULL OR e.begin_first THEN coalesce(e.suspect, 1023) ELSE e.suspect END
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

-- Functions that run with settings of their own see this schema only.
-- +goose StatementBegin
DO $do$
BEGIN
    EXECUTE format('ALTER FUNCTION events_v2_advance SET search_path = pg_catalog, %s, pg_temp',
        (SELECT relnamespace::regnamespace FROM pg_class WHERE oid = 'events_v2'::regclass));
END
$do$;
-- +goose StatementEnd

-- +goose Down
-- The only place where groups admit events. It takes events that may have left their groups (left_ids: those that have
-- ended, and those that run no more; passes has for each of the latter whether it lets the next event of its key go
-- first) and events that arrive at theirs, and returns those that have now been admitted by all of their groups. The
-- arguments are hints: it reads the rows itself. A lock that is older than lock_timeout does not count; NULL: all do.
--
-- An event passes the stages one after the other: only an event that is admitted at one joins its group of the next.
-- All calls take the locks of groups in one order, by stage and then by number, and wait for nothing else, since rows
-- that others are writing are skipped. So calls do not deadlock, and a group is locked for moments, unless the caller's
-- transaction goes on. It takes a lock for each group of the events that it is given: callers pass a few hundred at once.
--
-- Each query of a row is a sub-select of its own, which no plan turns into a join: a plan that was made for empty
-- tables, and is cached, is then right for full ones.
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
            WHERE e.id = ANY (moving) AND (at > 1 OR e.ordering_key <> '')
              AND events_v2_max_running(at, e.canvas_id, own.group_key) IS NOT NULL
        ) AS changed;
        CONTINUE WHEN group_keys IS NULL;
        INSERT INTO event_group_locks AS held (number) -- makes what is missing, and locks the rest without writing it
        SELECT DISTINCT at * 262144
            + (hashtextextended(format('%s %s', changed.canvas_id, changed.group_key), 0) & 262143)::integer AS number
        FROM unnest(canvases, group_keys) AS changed (canvas_id, group_key) ORDER BY number
        ON CONFLICT (number) DO UPDATE SET number = held.number WHERE false;

        WITH left_group AS (
            DELETE FROM event_groups g WHERE g.event_id = ANY (leaving) AND g.stage = at RETURNING g.event_id
        ) SELECT rejoining || coalesce(array_agg(event_id), '{}') INTO rejoining FROM left_group;
        INSERT INTO event_groups (event_id, stage, canvas_id, group_key)
        SELECT e.id, at, e.canvas_id, own.group_key
        FROM events_v2 e, events_v2_group_key(at, e.module, e.name, e.ordering_key) AS own (group_key)
        WHERE e.id = ANY (moving) AND (at > 1 OR e.ordering_key <> '') AND events_v2_max_running(at, e.canvas_id, own.group_key) IS NOT NULL
        ON CONFLICT DO NOTHING;

        batch := max_chosen;
        LOOP
            chosen := ARRAY(
                SELECT following.event_id
                FROM unnest(canvases, group_keys) AS changed (canvas_id, group_key)
                CROSS JOIN LATERAL (
                    SELECT least(max_chosen, events_v2_max_running(at, changed.canvas_id, changed.group_key) - (
                        SELECT count(*) FROM event_groups g
                        WHERE g.canvas_id = changed.canvas_id AND g.group_key = changed.group_key AND g.admitted)) AS room
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

-- Functions that run with settings of their own see this schema only.
-- +goose StatementBegin
DO $do$
BEGIN
    EXECUTE format('ALTER FUNCTION events_v2_advance SET search_path = pg_catalog, %s, pg_temp',
        (SELECT relnamespace::regnamespace FROM pg_class WHERE oid = 'events_v2'::regclass));
END
$do$;
-- +goose StatementEnd

DROP INDEX events_v2_joins;
ALTER TABLE events_v2 DROP CONSTRAINT events_v2_in_order;
ALTER TABLE events_v2 DROP COLUMN suspect;
