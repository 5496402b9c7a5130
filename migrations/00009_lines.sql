-- Lines: events that run one at a time and in order, or so many at a time.
-- Locks: events_v2 and event_log, ACCESS EXCLUSIVE, for a moment (no row is written).

-- +goose Up

-- line: 0, the event is in no line, and needs none unless running_limits says so;
-- 1, it waits in one; 2, it is its turn in all of them; 3, it takes its place when
-- somebody looks at it and it is due.
ALTER TABLE events_v2
    ADD COLUMN line         smallint NOT NULL DEFAULT 0,
    ADD COLUMN ordering_key text     COLLATE "C" NOT NULL DEFAULT '';

-- For the event that is retried by hand. NULL: none.
ALTER TABLE event_log ADD COLUMN ordering_key text;

-- How many events of a line may run at once. Without a row: one of a key, any
-- number of a handler or a canvas.
CREATE TABLE running_limits (
    canvas_id   uuid    NOT NULL,
    line        text    COLLATE "C" NOT NULL, -- as events_v2_line spells it; 'keys' for every key without a row
    max_running integer NOT NULL,

    CONSTRAINT running_limits_pkey PRIMARY KEY (canvas_id, line),
    CONSTRAINT running_limits_positive CHECK (max_running > 0)
);

-- The places of events in lines. An event that has a turn keeps its place until it
-- ends, or is put off. Apart from the events, so that those which are in no line
-- have no index more.
CREATE TABLE event_lines (
    event_id  bigint   NOT NULL,
    stage     smallint NOT NULL, -- 1 its key, 2 its handler, 3 its canvas, one after the other
    canvas_id uuid     NOT NULL,
    line      text     COLLATE "C" NOT NULL,
    turn      boolean  NOT NULL DEFAULT false,

    CONSTRAINT event_lines_pkey PRIMARY KEY (event_id, stage)
);

-- Who comes next in a line, and how many have a turn.
CREATE INDEX event_lines_order ON event_lines (canvas_id, line, turn, event_id);

-- The line that an event stands in at a stage. No name holds a control character.
CREATE FUNCTION events_v2_line(stage integer, module text, name text, ordering_key text) RETURNS text
LANGUAGE sql IMMUTABLE
RETURN CASE stage WHEN 1 THEN 'key ' || ordering_key WHEN 2 THEN 'handler ' || module || U&'\001f' || name ELSE 'canvas' END;

-- How many of a line may run at once; NULL: any number.
CREATE FUNCTION events_v2_max_running(stage integer, canvas uuid, line text) RETURNS integer
LANGUAGE sql STABLE
RETURN coalesce(
    (SELECT l.max_running FROM running_limits l WHERE l.canvas_id = canvas AND l.line = events_v2_max_running.line),
    (SELECT l.max_running FROM running_limits l WHERE stage = 1 AND l.canvas_id = canvas AND l.line = 'keys'),
    CASE stage WHEN 1 THEN 1 END);

-- events_v2_turns is the only place where anybody gets a turn. It takes events that
-- may have left their lines (gone, or not running any more; of these, passes tells
-- for each whether it lets the next of its key go first) and events that come to
-- theirs, and returns those whose turn it has become. What it is told of an event
-- is a hint: it looks itself. A lock that is older than lock_timeout does not count;
-- NULL: all do.
--
-- An event passes the stages one after the other, and only who has a turn at one
-- comes to the next. All calls take the locks of lines in one order, by stage and
-- then by number, and wait for nothing else: rows that somebody is writing are
-- skipped. So calls do not deadlock, and a line is held for moments, as long as
-- nobody calls it in a transaction that goes on. It takes a lock for each line of
-- the events that it is given: callers give it few hundred at once.
--
-- Each look-up stands in a sub-select of its own, which nothing makes a join of: a
-- plan that was made for empty tables, and kept, is the right one for full ones.
-- +goose StatementBegin
CREATE FUNCTION events_v2_turns(left_ids bigint[], passes boolean[], arrived bigint[], lock_timeout interval)
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

-- +goose Down
DROP FUNCTION events_v2_turns;
DROP TABLE event_lines;
DROP FUNCTION events_v2_max_running;
DROP FUNCTION events_v2_line;
DROP TABLE running_limits;
ALTER TABLE event_log DROP COLUMN ordering_key;
ALTER TABLE events_v2 DROP COLUMN ordering_key, DROP COLUMN line;
