-- The schema of the event queue: its tables, each column with the reason for it, and the SQL functions.
-- I1, I2, … are the numbered promises of docs/guarantees.md. docs/architecture.md ("The tables") has the picture as a whole.
-- Locks: none on existing tables (everything here is new).

-- +goose Up

-- Events --------------------------------------------------------------------------------------------------------------

CREATE SEQUENCE events_id_seq AS bigint;

-- The queue itself: one row per event that has not ended. The columns up to enqueued_at, and locked_at, are the documented ones.
CREATE TABLE events_v2 (
    id          bigint      NOT NULL DEFAULT nextval('events_id_seq'),
    canvas_id   uuid        NOT NULL, -- the tenant
    module      text        NOT NULL, -- with name, modifier and canvas_id: the key of the handler
    name        text        NOT NULL,
    modifier    text        NOT NULL, -- '_' where none is needed
    value       text        NOT NULL, -- JSON; the handler gets exactly these bytes (I8)
    retries     integer     NOT NULL DEFAULT 0,     -- runs that failed
    delay_until timestamptz NOT NULL DEFAULT now(), -- not claimed before this time (I6)
    enqueued_at timestamptz NOT NULL DEFAULT now(),

    -- What a claim changes. These three columns stand next to each other, before one of 4 bytes, since the write-ahead log
    -- of a claim has all bytes from the first one that changes to the last: 32 fewer than if claim_id stood behind the others.
    claim_id    bigint, -- the number of the claim, drawn by its worker, plus attempts. It is the other half of the fence: a crash
                        -- with synchronous_commit = off may lose a claim, and the next one then has the same attempts
    locked_at   timestamptz,                        -- last heartbeat of the current claim; NULL: not claimed (I3)
    -- I5, the fence: every claim adds one, every write after a claim names the number of that claim, and nothing else
    -- changes this column.
    attempts    integer     NOT NULL DEFAULT 0,

    -- For how long the unique key of the event stays reserved after its end. 0: there is no key, and the end costs
    -- nothing more.
    unique_seconds integer NOT NULL DEFAULT 0,

    -- I1, I2: when a notification was last published. NULL: one is pending, and the relay publishes it.
    notified_at timestamptz,

    -- 0: in no ordering group, and needs none unless concurrency_limits has one for it; 1: waits in a group;
    -- 2: all of its groups have admitted it; 3: joins its groups when its notification arrives and it is due.
    group_state  smallint NOT NULL DEFAULT 0,
    ordering_key text     COLLATE "C" NOT NULL DEFAULT '', -- events of one key run one after the other; '': none

    -- The claim that a rate limit has put off: its attempts, reduced to a smallint, which fits into the padding between
    -- the columns. A later claim has another number, so the column need not be reset.
    limited_attempt smallint NOT NULL DEFAULT 0,

    snoozes smallint NOT NULL DEFAULT 0, -- snoozes in a row, which a policy can bound; a failed attempt resets it

    begun       boolean NOT NULL DEFAULT false, -- the run of this claim has begun; a lock that expires before uses no attempt (I18)
    begin_first boolean NOT NULL DEFAULT false, -- a claim expired before its run began: from now on each beginning is recorded
                                                -- before the run, so that an event that kills its workers ends (I9)
    lost_run    boolean NOT NULL DEFAULT false, -- the last run was lost, until a run begins or the event is delayed (I9)

    attributes  jsonb,  -- flat object of strings: emitter to handler, history and children; NULL: none
    parent_id   bigint, -- the event whose handler emitted this one; it may have ended; NULL: none

    CONSTRAINT events_v2_pkey PRIMARY KEY (id),
    -- I15: one row that no program can read would make the claim of a whole batch fail.
    CONSTRAINT events_v2_readable CHECK (id > 0 AND retries >= 0 AND attempts >= 0 AND isfinite(delay_until)
        AND isfinite(enqueued_at) AND isfinite(locked_at) AND isfinite(notified_at)),
    -- I15: the next claim could not raise higher counts, and a later lock would never expire. Any role that may insert
    -- events could write such values.
    CONSTRAINT events_v2_countable CHECK (attempts <= 1000000000 AND retries <= 1000000000),
    CONSTRAINT events_v2_lock_expires CHECK (locked_at < '3000-01-01 00:00Z'),
    CONSTRAINT events_v2_snoozes CHECK (snoozes >= 0)
)
-- More than half of every page stays empty for the row versions that claims write (HOT updates: a claim changes no
-- indexed column). The shortest row takes 120 bytes when it is inserted and 136 when it is claimed, each with a pointer
-- of 4; a page filled by half lacks room for the claims of its last rows. Autovacuum runs often: every row is soon dead.
WITH (autovacuum_vacuum_scale_factor = 0.01,
      autovacuum_vacuum_threshold = 5000,
      autovacuum_vacuum_cost_delay = 0,
      fillfactor = 45);

ALTER SEQUENCE events_id_seq OWNED BY events_v2.id;

-- The events of a handler: counted, and read by id when a rule is lifted.
CREATE INDEX events_v2_handler ON events_v2 (canvas_id, module, name, id);

-- I20, the pending notifications by age, and by canvas: a relay that is behind goes from canvas to canvas, so that no
-- event waits behind a million of another canvas.
CREATE INDEX events_v2_pending ON events_v2 (delay_until, id) WHERE notified_at IS NULL;
CREATE INDEX events_v2_pending_canvas ON events_v2 (canvas_id, delay_until, id) WHERE notified_at IS NULL;

-- For the relay: delayed events that are due, however many are not, and events that were running when their worker died.
-- Neither index has an entry for an event that runs at once and for less than the interval between two heartbeats.
CREATE INDEX events_v2_delayed ON events_v2 (canvas_id, module, name, delay_until)
    WHERE delay_until > enqueued_at AND notified_at IS NOT NULL;
CREATE INDEX events_v2_begun ON events_v2 (id) WHERE begun;

-- The children of an event. Only children have an entry.
CREATE INDEX events_v2_parent ON events_v2 (parent_id) WHERE parent_id IS NOT NULL;

-- Rules ---------------------------------------------------------------------------------------------------------------

CREATE TYPE scheduling_rule_type AS ENUM ('pause', 'block'); -- by a user, by an admin; they do not depend on each other

-- Which handlers are held back. Every claim reads this table.
CREATE TABLE scheduling_rules (
    id           serial,
    rule_type    scheduling_rule_type NOT NULL,
    canvas_id    uuid                 NOT NULL,
    handler_name text                 NOT NULL, -- the name, or the beginning of names if prefix is true
    event_space  text                 NOT NULL, -- the module
    created_at   timestamp            NOT NULL DEFAULT now(),
    reason       text                 NOT NULL DEFAULT '',
    actor        text                 NOT NULL DEFAULT '', -- who added the rule, as they name themselves
    until        timestamptz,                              -- when cron lifts the rule; NULL, infinity: never
    modifier     text                 NOT NULL DEFAULT '', -- only handlers with this modifier; '': whatever it is
    prefix       boolean              NOT NULL DEFAULT false, -- all handlers of the module whose names begin with handler_name

    -- A rule that is lifted at a rate releases its events in the order of their ids.
    rate         integer,     -- events per second; NULL: the rule is not being lifted
    released_to  bigint,      -- events above this id are still held back
    released_at  timestamptz, -- up to when the rate has been used up

    CONSTRAINT scheduling_rules_pkey PRIMARY KEY (id),
    -- I14: pausing twice equals pausing once.
    CONSTRAINT scheduling_rules_once UNIQUE (canvas_id, event_space, handler_name, rule_type, modifier, prefix),
    CONSTRAINT scheduling_rules_released
        CHECK ((rate IS NULL) = (released_to IS NULL) AND (rate IS NULL) = (released_at IS NULL) AND rate > 0)
);

-- I7: claims hold a lock on this table until they have committed, and adding a rule waits for that. It is a table of its
-- own so that a role that claims needs no right to write rules. It has no rows.
CREATE TABLE claim_barrier (
    nothing boolean,
    CONSTRAINT claim_barrier_empty CHECK (false) NO INHERIT
);

-- History -------------------------------------------------------------------------------------------------------------

CREATE TYPE event_log_status AS ENUM ('COMPLETED', 'FAILED', 'CANCELLED');

-- How events ended: FAILED and CANCELLED ones always, COMPLETED ones if the history is on. It is read and pruned in the
-- order of its primary key.
CREATE TABLE event_log (
    id           bigint           NOT NULL, -- of the event
    canvas_id    uuid             NOT NULL,
    module       text             NOT NULL,
    name         text             NOT NULL,
    modifier     text             NOT NULL,
    value        text             NOT NULL, -- for the event that an operator makes of this row when it is retried
    status       event_log_status NOT NULL,
    retries      integer          NOT NULL, -- as events_v2 had them at the end
    attempts     integer          NOT NULL,
    last_error   text,                      -- NULL when COMPLETED
    enqueued_at  timestamptz      NOT NULL,
    created_at   timestamptz      NOT NULL DEFAULT clock_timestamp(), -- the end of the event
    ordering_key text,                      -- NULL: none
    attributes   jsonb,                     -- NULL: none
    parent_id    bigint,                    -- NULL: none
    reason       text,                      -- why it was cancelled, and by whom; NULL: it was not, or that is unknown
    actor        text,

    -- I1, I9: an event ends once.
    CONSTRAINT event_log_pkey PRIMARY KEY (id)
);

-- The children of an event that have ended.
CREATE INDEX event_log_parent ON event_log (parent_id) WHERE parent_id IS NOT NULL;

-- The failed attempts of events, 20 per event at most: why an event is tried again. A row is written by the statement
-- that completes the run which failed; a run that succeeds writes none. The relay deletes the rows of events that are
-- in neither events_v2 nor event_log.
CREATE TABLE event_attempts (
    event_id   bigint      NOT NULL,
    attempt    integer     NOT NULL, -- events_v2.attempts of the claim
    canvas_id  uuid        NOT NULL,
    started_at timestamptz NOT NULL,
    duration   interval    NOT NULL,
    worker     bigint,               -- event_workers.number; NULL: unknown
    error      text        NOT NULL,

    CONSTRAINT event_attempts_pkey PRIMARY KEY (event_id, attempt)
);

-- Unique events -------------------------------------------------------------------------------------------------------

-- Which event has reserved a key.
CREATE TABLE unique_keys (
    canvas_id uuid   NOT NULL,
    key       text   COLLATE "C" NOT NULL,
    event_id  bigint, -- NULL only within the transaction that makes the row

    -- One event per key: a second transaction waits here for the first.
    CONSTRAINT unique_keys_pkey PRIMARY KEY (canvas_id, key)
)
-- Room for the event that follows an expired one (a HOT update).
WITH (fillfactor = 80);

-- When the keys of events that have ended are free again. These times are not in unique_keys, so that an emit in a long
-- transaction never blocks the end of an event.
CREATE TABLE unique_expiries (
    event_id       bigint      NOT NULL,
    unique_seconds integer     NOT NULL, -- for how long the key stays reserved
    expires_at     timestamptz NOT NULL,

    CONSTRAINT unique_expiries_pkey PRIMARY KEY (event_id)
);

-- Refuses an emit with a unique key at another isolation level: it would see only what was committed before its
-- transaction began, and take an event that has ended since for the holder of the key.
-- +goose StatementBegin
CREATE FUNCTION events_v2_needs_read_committed(what text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION '% needs a transaction at READ COMMITTED, and this one is at %',
            what, upper(current_setting('transaction_isolation')) USING ERRCODE = 'feature_not_supported',
            HINT = 'Begin it with BEGIN ISOLATION LEVEL READ COMMITTED (pgx.TxOptions, sql.TxOptions), '
                'whatever default_transaction_isolation is.';
    END IF;
    RETURN true;
END
$$;
-- +goose StatementEnd

-- Ordering groups and concurrency limits ------------------------------------------------------------------------------

-- How many events of a group may run at once. Without a row: one of an ordering key, any number of a handler or a canvas.
CREATE TABLE concurrency_limits (
    canvas_id   uuid    NOT NULL,
    group_key   text    COLLATE "C" NOT NULL, -- as events_v2_group_key spells it; 'keys': every ordering key without a row
    max_running integer NOT NULL,

    CONSTRAINT concurrency_limits_pkey PRIMARY KEY (canvas_id, group_key),
    CONSTRAINT concurrency_limits_positive CHECK (max_running > 0)
);

-- The groups that events are in. An admitted event stays admitted until it ends or is deferred. This is a table of its
-- own so that events in no group have no entry in another index.
CREATE TABLE event_groups (
    event_id  bigint   NOT NULL,
    stage     smallint NOT NULL, -- 1: its ordering key, 2: its handler, 3: its canvas; passed one after the other
    canvas_id uuid     NOT NULL,
    group_key text     COLLATE "C" NOT NULL,
    admitted  boolean  NOT NULL DEFAULT false,

    CONSTRAINT event_groups_pkey PRIMARY KEY (event_id, stage)
);

-- Which event of a group comes next, and how many are admitted.
CREATE INDEX event_groups_order ON event_groups (canvas_id, group_key, admitted, event_id);

-- The locks of groups: a row per number, made when it is first needed, 262144 for each stage at most. Two groups with
-- one number wait for each other, for moments. They are rows because any user may take an advisory lock. Unlogged: a
-- lock is of no use after a crash.
CREATE UNLOGGED TABLE event_group_locks (
    number integer NOT NULL,
    CONSTRAINT event_group_locks_pkey PRIMARY KEY (number)
);

-- The group of an event at a stage. No name contains a control character, so U+001F separates.
CREATE FUNCTION events_v2_group_key(stage integer, module text, name text, ordering_key text) RETURNS text
LANGUAGE sql IMMUTABLE
RETURN CASE stage WHEN 1 THEN 'key ' || ordering_key WHEN 2 THEN 'handler ' || module || U&'\001f' || name ELSE 'canvas' END;

-- How many events of a group may run at once; NULL: any number.
CREATE FUNCTION events_v2_max_running(stage integer, canvas uuid, group_key text) RETURNS integer
LANGUAGE sql STABLE
RETURN coalesce(
    (SELECT l.max_running FROM concurrency_limits l WHERE l.canvas_id = canvas AND l.group_key = events_v2_max_running.group_key),
    (SELECT l.max_running FROM concurrency_limits l WHERE stage = 1 AND l.canvas_id = canvas AND l.group_key = 'keys'),
    CASE stage WHEN 1 THEN 1 END);

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
CREATE FUNCTION events_v2_advance(left_ids bigint[], passes boolean[], arrived bigint[], lock_timeout interval)
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

-- Rate limits ---------------------------------------------------------------------------------------------------------

-- How many events of a canvas, or of one handler on it, may begin to run in a minute and in a day (both of UTC).
CREATE TABLE rate_limits (
    canvas_id  uuid        NOT NULL,
    module     text        NOT NULL DEFAULT '', -- module and name both empty: the whole canvas
    name       text        NOT NULL DEFAULT '',
    per_minute integer,                         -- NULL: any number
    per_day    integer,                         -- NULL: any number
    mode       text        NOT NULL DEFAULT 'exact', -- approximate: workers count runs in memory, and report them later
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),

    CONSTRAINT rate_limits_pkey PRIMARY KEY (canvas_id, module, name),
    CONSTRAINT rate_limits_scope CHECK ((module = '') = (name = '')),
    CONSTRAINT rate_limits_some CHECK (per_minute IS NOT NULL OR per_day IS NOT NULL),
    CONSTRAINT rate_limits_positive CHECK (per_minute BETWEEN 1 AND 1000000000 AND per_day BETWEEN 1 AND 1000000000),
    CONSTRAINT rate_limits_mode CHECK (mode IN ('exact', 'approximate'))
);

-- How many runs have begun. The counts are not in rate_limits, which every claim reads: a row that is written a thousand
-- times a second has many dead versions.
CREATE TABLE rate_counters (
    canvas_id    uuid        NOT NULL,
    module       text        NOT NULL,
    name         text        NOT NULL,
    minute_at    timestamptz NOT NULL DEFAULT 'epoch', -- when the window of minute_count began
    minute_count bigint      NOT NULL DEFAULT 0,
    day_at       timestamptz NOT NULL DEFAULT 'epoch', -- when the window of day_count began
    day_count    bigint      NOT NULL DEFAULT 0,
    waiting      bigint      NOT NULL DEFAULT 0, -- events put off to windows later than these

    CONSTRAINT rate_counters_pkey PRIMARY KEY (canvas_id, module, name),
    CONSTRAINT rate_counters_limit FOREIGN KEY (canvas_id, module, name) REFERENCES rate_limits ON DELETE CASCADE ON UPDATE CASCADE
)
-- Room for the next versions of each row (HOT updates).
WITH (fillfactor = 20,
      autovacuum_vacuum_scale_factor = 0,
      autovacuum_vacuum_threshold = 1000,
      autovacuum_vacuum_cost_delay = 0);

-- Whenever a limit changes, with eventctl or in SQL: it gets counters, a lower limit does not count as an overshoot in
-- later windows, and the waiting events are planned anew.
-- +goose StatementBegin
CREATE FUNCTION rate_limit_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO rate_counters AS c (canvas_id, module, name)
    VALUES (NEW.canvas_id, NEW.module, NEW.name)
    ON CONFLICT (canvas_id, module, name) DO UPDATE
    SET minute_count = least(c.minute_count, NEW.per_minute), day_count = least(c.day_count, NEW.per_day), waiting = 0;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER rate_limit_changed AFTER INSERT OR UPDATE ON rate_limits
    FOR EACH ROW EXECUTE FUNCTION rate_limit_changed();

-- Cron ----------------------------------------------------------------------------------------------------------------

CREATE TYPE cron_missed_policy AS ENUM ('latest', 'all', 'none'); -- which slots that no checker was there for get an event

CREATE TABLE cron_definitions (
    id              bigint             GENERATED ALWAYS AS IDENTITY,
    canvas_id       uuid               NOT NULL,
    name            text               NOT NULL, -- also the name of its events
    schedule        text               NOT NULL, -- five fields as in cron, or an interval such as 'every hour'
    time_zone       text               NOT NULL DEFAULT 'UTC',
    missed          cron_missed_policy NOT NULL DEFAULT 'latest',
    enabled         boolean            NOT NULL DEFAULT true,
    starts_at       timestamptz        NOT NULL DEFAULT now(), -- no event for slots before it: set when the definition is added,
                                                               -- changed or enabled again
    created_at      timestamptz        NOT NULL DEFAULT now(),
    skip_if_paused  boolean            NOT NULL DEFAULT false, -- no event for a slot that comes while a rule would hold it back
    skip_if_running boolean            NOT NULL DEFAULT false, -- nor while an earlier event of the definition waits or runs

    CONSTRAINT cron_definitions_pkey PRIMARY KEY (id),
    CONSTRAINT cron_definitions_once UNIQUE (canvas_id, name),
    -- I15: only SQL can write a time that no program can read.
    CONSTRAINT cron_definitions_readable CHECK (starts_at >= '0001-01-01 00:00Z' AND starts_at < '10000-01-01 00:00Z')
);

-- One row per slot that has been decided, so that it is decided once.
CREATE TABLE cron_records (
    cron_id    bigint      NOT NULL REFERENCES cron_definitions ON DELETE CASCADE,
    slot       timestamptz NOT NULL, -- the time that was due
    event_id   bigint      NOT NULL, -- the event that was emitted for it; 0: it was skipped
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    skipped    text,                 -- why it was skipped; NULL: it was not

    -- I10: at most one event per (cron, slot), with any number of checkers.
    CONSTRAINT cron_records_pkey PRIMARY KEY (cron_id, slot),
    CONSTRAINT cron_records_readable CHECK (isfinite(slot)),
    CONSTRAINT cron_records_skipped CHECK (skipped IN ('paused', 'running'))
);

-- Workers -------------------------------------------------------------------------------------------------------------

-- Which programs run the events, or did. A worker writes its row when it first connects, and stopped_at when it stops;
-- in between it writes nothing. That it lives shows in an advisory lock (class 1163284567, its number) of its
-- heartbeat's connection. The relay deletes rows a day after stopped_at or missed_at.
CREATE TABLE event_workers (
    number     integer     NOT NULL, -- random; in the upper bits of the number of each claim, which so names its holder
    host       text        NOT NULL,
    pid        integer     NOT NULL,
    version    text        NOT NULL, -- of the program
    handlers   jsonb       NOT NULL, -- that it has: module, name, modifier, and canvas_id if it is for one only
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    stopped_at timestamptz,          -- NULL: it runs, or died
    missed_at  timestamptz,          -- when a relay first saw that the lock was gone of a worker that had not stopped

    CONSTRAINT event_workers_pkey PRIMARY KEY (number)
);

-- Counts per minute, for charts, alerts and autoscaling ---------------------------------------------------------------

-- The counts of one handler on one canvas in one minute. Programs hand in what they have counted, once a minute at most
-- and only if there is something; cron writes pending and oldest_due. A minute has at most 4,001 rows, but for hand-ins
-- at the same moment: the counts of further canvases go to a row with the canvas 00000000-0000-0000-0000-000000000000,
-- and those of further handlers to one with an empty module and name as well.
-- waits and runs are histograms: element i counts durations of up to 2 ^ ((i - 1) / 2.0) milliseconds that are longer
-- than those of the element before, and the last, 64, all others.
CREATE TABLE event_minutes (
    minute     timestamptz NOT NULL,
    canvas_id  uuid        NOT NULL,
    module     text        NOT NULL,
    name       text        NOT NULL,
    emitted    bigint      NOT NULL DEFAULT 0,    -- new events
    completed  bigint      NOT NULL DEFAULT 0,    -- runs that completed their event
    failed     bigint      NOT NULL DEFAULT 0,    -- runs after which the event was FAILED
    retried    bigint      NOT NULL DEFAULT 0,    -- runs that failed, after which the event is tried again
    waits      bigint[]    NOT NULL DEFAULT '{}', -- from when the event was due to its claim
    runs       bigint[]    NOT NULL DEFAULT '{}', -- how long the handler ran
    pending    bigint,                            -- events that had not ended; NULL: not counted
    oldest_due interval,                          -- how long the oldest event that is due and not running had waited; NULL: none
    cancelled  bigint      NOT NULL DEFAULT 0,    -- events that an operator cancelled

    CONSTRAINT event_minutes_pkey PRIMARY KEY (minute, canvas_id, module, name)
)
-- Room for the next versions of the rows of the current minute (HOT updates).
WITH (fillfactor = 60);

-- The sums of whole hours, with the highest pending and oldest_due of their minutes: retained for longer than minutes.
-- The columns mean what they mean in event_minutes.
CREATE TABLE event_hours (
    hour       timestamptz NOT NULL,
    canvas_id  uuid        NOT NULL,
    module     text        NOT NULL,
    name       text        NOT NULL,
    emitted    bigint      NOT NULL,
    completed  bigint      NOT NULL,
    failed     bigint      NOT NULL,
    retried    bigint      NOT NULL,
    waits      bigint[]    NOT NULL,
    runs       bigint[]    NOT NULL,
    pending    bigint,
    oldest_due interval,
    cancelled  bigint      NOT NULL DEFAULT 0,

    CONSTRAINT event_hours_pkey PRIMARY KEY (hour, canvas_id, module, name)
);

-- The sums of a minute over all handlers, which the overviews of the dashboard read instead of thousands of rows: of all
-- canvases, and of each canvas that has many rows in that minute. cron derives them from event_minutes once the minute
-- can no longer change. Only speed depends on them.
CREATE TABLE event_minute_totals (
    minute     timestamptz NOT NULL,
    of_all     boolean     NOT NULL, -- the sum over all canvases, with the canvas 00000000-0000-0000-0000-000000000000
    canvas_id  uuid        NOT NULL,
    emitted    bigint      NOT NULL,
    completed  bigint      NOT NULL,
    failed     bigint      NOT NULL,
    retried    bigint      NOT NULL,
    cancelled  bigint      NOT NULL,
    waits      bigint[]    NOT NULL,
    pending    bigint,
    oldest_due interval,

    CONSTRAINT event_minute_totals_pkey PRIMARY KEY (minute, of_all, canvas_id)
);

-- Cleanups and grids --------------------------------------------------------------------------------------------------

-- How to delete what handlers have published: one row per publication.
CREATE TABLE cleanups (
    id          bigint      GENERATED ALWAYS AS IDENTITY,
    canvas_id   uuid        NOT NULL,
    component   text        COLLATE "C" NOT NULL, -- the code that published, and can delete
    topic       text        COLLATE "C" NOT NULL, -- the key of the configuration
    inputs_hash text        COLLATE "C" NOT NULL, -- SHA-256 of the chosen inputs, or 'none'
    event_id    bigint,               -- whose handler publishes; while it is in events_v2 the row belongs to it, and no other
                                      -- event cleans up; NULL: written by hand
    token       uuid        NOT NULL DEFAULT gen_random_uuid(), -- by which the publisher finds its publication
    data        bytea,                -- with which it can be deleted; NULL: an intent, written before publishing, and it is not
                                      -- known (yet) whether the publication was sent
    cleaned_by  bigint,               -- the event whose handler deletes it, or tried to: while that is in events_v2 no other does
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at  timestamptz NOT NULL, -- from when it may be deleted

    CONSTRAINT cleanups_pkey PRIMARY KEY (id),
    -- One publication per key and event. The index finds all rows of a key, too.
    CONSTRAINT cleanups_once UNIQUE (canvas_id, component, topic, inputs_hash, event_id),
    CONSTRAINT cleanups_intent CHECK (data IS NOT NULL OR event_id IS NOT NULL)
);

-- The outputs of the actions that an unfinished run of a grid has completed, so that it can continue where it stopped.
CREATE TABLE grid_outputs (
    event_id   bigint      NOT NULL, -- the run
    action     text        COLLATE "C" NOT NULL,
    canvas_id  uuid        NOT NULL,
    definition bytea       NOT NULL, -- hash of the action's definition and of those whose outputs it used, when it ran
    attempt    integer     NOT NULL, -- the claim under which it ran
    output     text,                 -- JSON; NULL: the action was skipped
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),

    -- An action completes once per run.
    CONSTRAINT grid_outputs_pkey PRIMARY KEY (event_id, action)
);

-- The outbox: events from plain SQL, in whatever transaction and language ---------------------------------------------

-- The name of a channel for NOTIFY and LISTEN. In a schema other than public it begins with the schema.
-- +goose StatementBegin
DO $do$
DECLARE
    schema text := (SELECT nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = 'events_v2'::regclass);
BEGIN
    EXECUTE format('CREATE FUNCTION events_v2_channel(name text) RETURNS text LANGUAGE sql IMMUTABLE RETURN %L || name',
        CASE WHEN schema = 'public' THEN '' ELSE schema || '.' END);
END
$do$;
-- +goose StatementEnd

-- The functions events_mistake_… return what is wrong with an argument of an emit, as {argument, problem, hint}, or NULL.
-- They run with the settings of events_emit_from and send_to_outbox, which call them.

-- A part of a handler's key. Bytes are counted in UTF-8, whatever the collation of the argument is.
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

-- A value that a strict JSON decoder would refuse later (I8): text that is not JSON, half a surrogate pair, U+0000, and
-- JSON that is nested too deeply for Go. Unlike jsonb, the type json accepts numbers of any size.
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
        RETURN ARRAY['value', format('is %s bytes long: the limit is %s', bytes, max_bytes),
            'Keep large data elsewhere and emit a reference.'];
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

-- The attributes and the parent.
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
        RETURN ARRAY['attributes', format('is JSON of the type %s', jsonb_typeof(attributes)),
            'Give an object of strings, as in {"user": "ada"}.'];
    ELSIF (SELECT count(*) FROM jsonb_object_keys(attributes)) > 16 THEN
        RETURN ARRAY['attributes', format('has %s pairs: the limit is 16', (SELECT count(*) FROM jsonb_object_keys(attributes))),
            'Leave some out; those of the setting events_v2.attributes count as well.'];
    END IF;
    size := (
        SELECT sum(octet_length(convert_to(key, 'UTF8')) + coalesce(octet_length(convert_to(value, 'UTF8')), 0))
        FROM jsonb_each_text(attributes));
    IF size > 8192 THEN
        RETURN ARRAY['attributes', format('has %s bytes of keys and values: the limit is 8192', size),
            'Keep large data in the value of the event.'];
    END IF;
    FOR pair IN
        SELECT e.key, e.value #>> '{}' AS value, jsonb_typeof(e.value) AS type FROM jsonb_each(attributes) AS e ORDER BY e.key COLLATE "C"
    LOOP
        IF pair.key COLLATE "C" !~ '^[a-z0-9_.-]{1,64}$' THEN
            RETURN ARRAY['attributes', format('has the key %s', to_json(pair.key)),
                'A key has 1 to 64 lower-case letters (a to z), digits, _, . and -.'];
        ELSIF pair.type <> 'string' THEN
            RETURN ARRAY['attributes', format('has JSON of the type %s at %s', pair.type, to_json(pair.key)),
                'Values are strings: put it in quotes.'];
        ELSIF octet_length(convert_to(pair.value, 'UTF8')) > 1024 THEN
            RETURN ARRAY['attributes',
                format('has %s bytes at %s: the limit of a value is 1024', octet_length(convert_to(pair.value, 'UTF8')), to_json(pair.key)),
                'Keep large data in the value of the event.'];
        END IF;
        control := substring(pair.value COLLATE "C" FROM '[\u0001-\u001f\u007f-\u009f]');
        IF control IS NOT NULL THEN
            RETURN ARRAY['attributes',
                format('has the control character U+%s at %s', upper(lpad(to_hex(ascii(control)), 4, '0')), to_json(pair.key)),
                'Leave out line ends, tabs and other control characters.'];
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- The attributes of an emit over those of the setting events_v2.attributes, which a session or a transaction has for all
-- of its emits, triggers included; NULL: none.
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

-- Checks an event and inserts it with a pending notification. The NOTIFY is sent with the commit and wakes the relay,
-- which publishes the notification; the relay's own timer finds it in any case (I1). Postgres merges equal NOTIFYs of a
-- transaction. Error messages begin with source. The id is drawn before the INSERT, and not returned by it, so that the
-- caller needs no right to read events; an event without attributes and parent needs no right to write these.
-- +goose StatementBegin
CREATE FUNCTION events_emit_from(source text, canvas uuid, module text, name text, value text, modifier text,
    delay interval, delay_until timestamptz, attributes jsonb DEFAULT NULL, parent_id bigint DEFAULT NULL) RETURNS bigint
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
    attributes := events_emit_attributes(source, attributes);
    mistake := coalesce(mistake, events_mistake_in_origin(attributes, parent_id));
    IF mistake IS NOT NULL THEN
        RAISE EXCEPTION '%: % %', source, mistake[1], mistake[2]
            USING ERRCODE = 'invalid_parameter_value', COLUMN = mistake[1], HINT = mistake[3];
    END IF;
    id := nextval('events_id_seq');
    IF attributes IS NULL AND parent_id IS NULL THEN
        INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, delay_until, enqueued_at)
        VALUES (id, canvas, module, name, modifier, value, greatest(coalesce(delay_until, at + delay), at), at);
    ELSE
        INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, delay_until, enqueued_at, attributes, parent_id)
        VALUES (id, canvas, module, name, modifier, value, greatest(coalesce(delay_until, at + delay), at), at, attributes, parent_id);
    END IF;
    PERFORM pg_notify(events_v2_channel('events_v2_pending'), '');
    RETURN id;
END
$$;
-- +goose StatementEnd

-- Emits an event and returns its id: one function for each type that a value may have. A literal or a parameter without
-- a type is text.
CREATE FUNCTION events_emit(canvas uuid, module text, name text, value text, modifier text DEFAULT '_',
    delay interval DEFAULT '0', delay_until timestamptz DEFAULT NULL, attributes jsonb DEFAULT NULL, parent_id bigint DEFAULT NULL)
RETURNS bigint LANGUAGE sql
RETURN events_emit_from('events_emit', canvas, module, name, value, modifier, delay, delay_until, attributes, parent_id);

CREATE FUNCTION events_emit(canvas uuid, module text, name text, value json, modifier text DEFAULT '_',
    delay interval DEFAULT '0', delay_until timestamptz DEFAULT NULL, attributes jsonb DEFAULT NULL, parent_id bigint DEFAULT NULL)
RETURNS bigint LANGUAGE sql
RETURN events_emit_from('events_emit', canvas, module, name, value::text, modifier, delay, delay_until, attributes, parent_id);

CREATE FUNCTION events_emit(canvas uuid, module text, name text, value jsonb, modifier text DEFAULT '_',
    delay interval DEFAULT '0', delay_until timestamptz DEFAULT NULL, attributes jsonb DEFAULT NULL, parent_id bigint DEFAULT NULL)
RETURNS bigint LANGUAGE sql
RETURN events_emit_from('events_emit', canvas, module, name, value::text, modifier, delay, delay_until, attributes, parent_id);

-- send_to_outbox(canvas, module [, modifier [, value]]) emits an event for each row that is inserted, updated or deleted;
-- its name is like insert_person. canvas is a uuid, or the column with the canvas. value is 'row' (the row; for an update
-- the new one) or 'change' (operation, schema, table, old and new row). The format of the row does not depend on the
-- settings of the session. For a partition the name of the partitioned table is used.
-- +goose StatementBegin
CREATE FUNCTION send_to_outbox() RETURNS trigger
LANGUAGE plpgsql SET standard_conforming_strings = on SET timezone = 'UTC' SET datestyle = 'ISO' SET intervalstyle = 'iso_8601'
SET bytea_output = 'hex' SET extra_float_digits = 1 AS $$
DECLARE
    schema   text := TG_TABLE_SCHEMA;
    "table"  text := TG_TABLE_NAME;
    source   text := format('send_to_outbox on %I.%I', schema, "table");
    attach   text := 'CREATE TRIGGER … AFTER INSERT OR UPDATE OR DELETE ON … '
        'FOR EACH ROW EXECUTE FUNCTION send_to_outbox(canvas, module).';
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
    ELSIF "table" = ANY (events_v2_tables()) AND (SELECT relnamespace FROM pg_class WHERE oid = TG_RELID)
            = (SELECT relnamespace FROM pg_class WHERE oid = 'events_v2'::regclass) THEN
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
                    HINT = 'The first argument of the trigger is a canvas (a uuid) '
                        'or the name of the column that holds the uuid of each row''s canvas.';
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

-- Webhooks ------------------------------------------------------------------------------------------------------------

-- The requests of one source with one outcome in one minute. Programs that serve webhooks hand in their counts, once a
-- minute at most. Both tables have rows of configured sources only; a source for all canvases has the canvas
-- 00000000-0000-0000-0000-000000000000.
CREATE TABLE webhook_minutes (
    minute    timestamptz NOT NULL,
    source    text        NOT NULL,
    canvas_id uuid        NOT NULL,
    outcome   text        NOT NULL, -- accepted, duplicate, ignored, or why the requests were refused
    requests  bigint      NOT NULL,

    CONSTRAINT webhook_minutes_pkey PRIMARY KEY (minute, source, canvas_id, outcome)
);

-- The sources, with their newest refusals.
CREATE TABLE webhook_sources (
    source      text        NOT NULL,
    canvas_id   uuid        NOT NULL,
    scheme      text        NOT NULL, -- as in the handlers file; empty: a verifier of the program's own
    served_at   timestamptz NOT NULL, -- when a program that serves it last wrote this row
    received_at timestamptz,          -- when a request last came; NULL: none has
    refusals    jsonb       NOT NULL DEFAULT '[]', -- the newest: when, outcome and reason

    CONSTRAINT webhook_sources_pkey PRIMARY KEY (source, canvas_id)
);

-- Access, and changes of many events ----------------------------------------------------------------------------------

-- The tokens of the HTTP API and the dashboard.
CREATE TABLE access_tokens (
    id         uuid        NOT NULL,
    name       text        NOT NULL,
    hash       bytea       NOT NULL, -- SHA-256 of the token, which has 256 random bits: nobody finds the token by it
    canvases   uuid[],               -- that it is for; NULL: all
    verbs      text[]      NOT NULL, -- that it may use
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text        NOT NULL,
    expires_at timestamptz,          -- NULL: never
    revoked_at timestamptz,          -- NULL: it is valid

    CONSTRAINT access_tokens_pkey PRIMARY KEY (id),
    CONSTRAINT access_tokens_hash_key UNIQUE (hash)
);

-- One row per change by an operator, written in the transaction of the change.
CREATE TABLE audit_log (
    id           bigint      GENERATED ALWAYS AS IDENTITY,
    at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor        text        NOT NULL, -- who: a token, a user
    source       text        NOT NULL, -- from where: an address, a host
    via          text        NOT NULL, -- by what: api, dashboard, eventctl, cron
    operation_id uuid,                 -- the change of many events that it belongs to; NULL: none
    action       text        NOT NULL,
    canvas_id    uuid,                 -- NULL: of no canvas, or of several
    target       jsonb       NOT NULL, -- what was changed
    before       jsonb,                -- NULL: it was not there
    after        jsonb,                -- NULL: it is gone

    CONSTRAINT audit_log_pkey PRIMARY KEY (id)
);

-- The newest changes of a canvas, and what a change of many events has done.
CREATE INDEX audit_log_canvas_idx ON audit_log (canvas_id, id);
CREATE INDEX audit_log_operation_idx ON audit_log (operation_id, id) WHERE operation_id IS NOT NULL;

-- Changes of many events that go on in the background: what was asked for, and how far each is.
CREATE TABLE bulk_operations (
    id           uuid        NOT NULL,
    counted_at   timestamptz NOT NULL DEFAULT clock_timestamp(), -- from which the ages of the filter count
    expires_at   timestamptz NOT NULL, -- until when it can be confirmed
    identity     text        NOT NULL, -- who can confirm it
    actor        text        NOT NULL, -- for audit_log
    source       text        NOT NULL,
    via          text        NOT NULL,
    canvas_id    uuid,                 -- of the filter; NULL: all
    change       text        NOT NULL, -- the verb, the filter, and what is written; JSON
    counted      bigint      NOT NULL, -- events that the filter selected at counted_at
    last_id      bigint      NOT NULL, -- events above it are left alone
    state        text        NOT NULL,
    started_at   timestamptz,          -- NULL: not confirmed
    ended_at     timestamptz,          -- NULL: not ended
    after_id     bigint      NOT NULL DEFAULT 0, -- up to it, all events are done
    changed      bigint      NOT NULL DEFAULT 0, -- events that were changed
    running      bigint      NOT NULL DEFAULT 0, -- events that were left alone because they were running,
    busy         bigint      NOT NULL DEFAULT 0, -- because others were writing them,
    refused      bigint      NOT NULL DEFAULT 0, -- because the database refused the change
    failures     integer     NOT NULL DEFAULT 0, -- failed tries since the last progress
    lease        uuid,                 -- of the program that works on it; NULL: none has
    leased_until timestamptz NOT NULL DEFAULT '-infinity',
    paced_until  timestamptz,          -- until when the events that it emits at a rate are spread; NULL: none was emitted yet

    CONSTRAINT bulk_operations_pkey PRIMARY KEY (id),
    CONSTRAINT bulk_operations_state_check CHECK (state IN ('counted', 'running', 'done', 'stopped', 'failed'))
);

-- The operations that a program can take on, and the old ones, which are deleted.
CREATE INDEX bulk_operations_running_idx ON bulk_operations (leased_until) WHERE state = 'running';
CREATE INDEX bulk_operations_counted_idx ON bulk_operations (counted_at);

-- Settings ------------------------------------------------------------------------------------------------------------

-- What all programs of a database share, so that it does not depend on the environment of each. One row at most: the
-- first program that starts writes it, or eventctl.
CREATE TABLE events_v2_settings (
    singleton           boolean  NOT NULL DEFAULT true,
    lock_timeout        interval NOT NULL, -- how long a lock is valid without being renewed
    lock_timeout_before interval,          -- the one before a change, as long as programs may still renew by it: the longer of
                                           -- the two decides whether a lock is valid; NULL: no change is under way

    CONSTRAINT events_v2_settings_pkey PRIMARY KEY (singleton),
    CONSTRAINT events_v2_settings_singleton CHECK (singleton),
    CONSTRAINT events_v2_settings_times CHECK (lock_timeout BETWEEN interval '1 second' AND interval '30 days'
        AND lock_timeout_before BETWEEN interval '1 second' AND interval '30 days')
);

-- Every program that decides whether a lock is valid reads them.
GRANT SELECT ON events_v2_settings TO PUBLIC;

-- The notifier on Postgres (NOTIFIER=postgres) ------------------------------------------------------------------------

-- The notifications that wait for a worker. With Pub/Sub no program uses this table. Unlogged, for less WAL: a crash of
-- Postgres or a failover empties it, and the relay publishes the lost notifications again (I2).
CREATE UNLOGGED TABLE events_v2_notifications (
    event_id    bigint NOT NULL,
    canvas_id   uuid   NOT NULL,
    traceparent text,            -- W3C trace context of the emitter; NULL: none
    place       bigint NOT NULL GENERATED ALWAYS AS IDENTITY, -- about the order of arrival

    -- I11: one per event, however often the relay publishes while a backlog waits.
    CONSTRAINT events_v2_notifications_pkey PRIMARY KEY (event_id),
    CONSTRAINT events_v2_notifications_readable CHECK (event_id > 0 AND octet_length(traceparent) <= 128)
)
-- Every row is soon dead.
WITH (autovacuum_vacuum_scale_factor = 0.01,
      autovacuum_vacuum_threshold = 5000,
      autovacuum_vacuum_cost_delay = 0);

-- The order in which workers take them.
CREATE INDEX events_v2_notifications_place ON events_v2_notifications (place);

-- The statistics of a queue are outdated as soon as they are made. With them the planner would search for the lowest
-- place of all, beginning with the rows that were taken.
ALTER TABLE events_v2_notifications ALTER COLUMN place SET STATISTICS 0;

-- For autoscalers (docs/scaling.md) -----------------------------------------------------------------------------------

-- How many more events the group of a stage admits now; NULL: any number.
CREATE FUNCTION events_v2_room(stage integer, canvas uuid, module text, name text, ordering_key text) RETURNS bigint
LANGUAGE sql STABLE
RETURN (
    SELECT greatest(of_group.max_running - (
        SELECT count(*) FROM event_groups g WHERE g.canvas_id = canvas AND g.group_key = own.group_key AND g.admitted), 0)
    FROM events_v2_group_key(stage, module, name, ordering_key) AS own (group_key),
        events_v2_max_running(stage, canvas, own.group_key) AS of_group (max_running)
    WHERE of_group.max_running IS NOT NULL);

-- How many more events a rate limit lets run in its present windows; NULL: any number. Module and name are empty for the
-- limit of the canvas. Windows are whole minutes and days of UTC, and an overshoot of one counts in the next.
CREATE FUNCTION events_v2_rate_room(canvas uuid, module text, name text) RETURNS bigint
LANGUAGE sql VOLATILE
RETURN (
    SELECT greatest(least(
        l.per_minute - CASE minutes WHEN 0 THEN c.minute_count ELSE greatest(c.minute_count - minutes * l.per_minute, 0) END,
        l.per_day - CASE days WHEN 0 THEN c.day_count ELSE greatest(c.day_count - days * l.per_day, 0) END), 0)
    FROM rate_limits l JOIN rate_counters c ON c.canvas_id = l.canvas_id AND c.module = l.module AND c.name = l.name
    CROSS JOIN LATERAL (
        SELECT
            round(extract(epoch FROM greatest(date_bin('1 minute', clock_timestamp(), 'epoch'), c.minute_at) - c.minute_at) / 60)::bigint
                AS minutes,
            round(extract(epoch FROM greatest(date_bin('1 day', clock_timestamp(), 'epoch'), c.day_at) - c.day_at) / 86400)::bigint AS days
    ) AS elapsed
    WHERE l.canvas_id = events_v2_rate_room.canvas AND l.module = events_v2_rate_room.module AND l.name = events_v2_rate_room.name);

-- Counts the events that run and those that could be claimed now, up to most: an autoscaler asks for no more than its
-- limit needs. Not counted is what is not due, held back by a rule, behind others of its ordering group, over a
-- concurrency or rate limit, or for a handler that none of the known workers has; as long as event_workers is empty,
-- every handler counts. It goes by handlers, and reads the oldest and the newest events of each and the delayed ones that
-- are due, all by index. So its cost is bounded, and a few events that could run between thousands that cannot are
-- overlooked.
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
    expired      CONSTANT timestamptz := now_at
        - coalesce((SELECT greatest(s.lock_timeout, s.lock_timeout_before) FROM events_v2_settings s), interval '1 minute');
    narrow       CONSTANT boolean := EXISTS (
        SELECT FROM scheduling_rules r WHERE r.prefix OR r.modifier <> '' OR r.released_to IS NOT NULL);
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
    canvas       uuid;    -- of canvas_room and canvas_rate
    canvas_room  bigint;  -- under its concurrency limit; NULL: it has none
    canvas_rate  bigint;  -- and under its rate limit
    handler_room bigint;
    handler_rate bigint;
    ruled        boolean;
    was_read     bigint;
    running      bigint;
    free         bigint;  -- events that need join no group any more
    joining      bigint;  -- events that the groups of their keys would admit
    runnable     bigint;
BEGIN
    IF most IS NULL OR most < 1 THEN
        RAISE EXCEPTION 'events_v2_runnable: most is %, it must be 1 or more', coalesce(most::text, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
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
            WHERE r.canvas_id = at_canvas AND r.event_space = at_module AND r.handler_name = at_name
              AND r.modifier = '' AND r.released_to IS NULL)
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
             WHERE e.delay_until > e.enqueued_at AND e.notified_at IS NOT NULL
               AND (e.canvas_id, e.module, e.name) >= (at_canvas, at_module, at_name)
               AND (e.canvas_id, e.module, e.name, e.delay_until) <= (at_canvas, at_module, at_name, now_at)
             ORDER BY e.canvas_id, e.module, e.name, e.delay_until LIMIT share)
        ), judged AS MATERIALIZED (
            SELECT e.ordering_key, e.group_state, coalesce(e.locked_at > expired, false) AS running,
                NOT ruled AND e.delay_until <= now_at
                AND (known IS NULL OR known ? concat_ws(U&'\001f', at_module, at_name, e.modifier)
                  OR known ? concat_ws(U&'\001f', at_canvas, at_module, at_name, e.modifier))
                AND NOT (narrow AND (EXISTS (
                    SELECT FROM scheduling_rules r
                    WHERE r.canvas_id = at_canvas AND r.event_space = at_module AND r.handler_name = at_name
                      AND r.modifier IN ('', e.modifier) AND (r.released_to IS NULL OR e.id > r.released_to))
                  OR EXISTS (
                    SELECT FROM scheduling_rules r
                    WHERE r.prefix AND r.canvas_id = at_canvas AND r.event_space = at_module AND starts_with(at_name, r.handler_name)
                      AND r.modifier IN ('', e.modifier) AND (r.released_to IS NULL OR e.id > r.released_to)))) AS may,
                e.group_state IN (1, 3)
                  OR e.group_state = 0 AND e.locked_at IS NULL AND (canvas_room IS NOT NULL OR handler_room IS NOT NULL) AS joins
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

-- The schema as a whole -----------------------------------------------------------------------------------------------

-- The names of the tables that belong to the queue: for the grants of roles, and for send_to_outbox, which refuses them.
CREATE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers',
    'event_minutes', 'event_hours', 'access_tokens', 'audit_log', 'bulk_operations', 'webhook_minutes', 'webhook_sources',
    'event_minute_totals'];

-- Functions whose body is a text look names up when they run: these find the queue's tables whatever the search path of
-- their caller is. Only roles that may create objects in this schema can replace what they call, and pg_temp comes last:
-- so an owner may make events_emit_from SECURITY DEFINER. That is less safe for send_to_outbox, since row_to_json calls
-- casts to json that the owners of the table's types define.
-- +goose StatementBegin
DO $do$
DECLARE
    schema   text := (SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'events_v2'::regclass);
    function text;
BEGIN
    FOREACH function IN ARRAY ARRAY['events_v2_advance', 'events_v2_needs_read_committed', 'events_v2_runnable', 'rate_limit_changed',
        'events_emit_from', 'send_to_outbox']
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %s, pg_temp', function::regproc, schema);
    END LOOP;
END
$do$;
-- +goose StatementEnd

-- +goose Down
-- This fails as long as a table of the application has the trigger send_to_outbox: drop the triggers first.
DROP FUNCTION send_to_outbox;
DROP FUNCTION events_emit(uuid, text, text, text, text, interval, timestamptz, jsonb, bigint);
DROP FUNCTION events_emit(uuid, text, text, json, text, interval, timestamptz, jsonb, bigint);
DROP FUNCTION events_emit(uuid, text, text, jsonb, text, interval, timestamptz, jsonb, bigint);
DROP FUNCTION events_emit_from;
DROP FUNCTION events_emit_attributes;
DROP FUNCTION events_mistake_in_origin;
DROP FUNCTION events_mistake_in_value;
DROP FUNCTION events_depth;
DROP FUNCTION events_mistake_in_delay;
DROP FUNCTION events_mistake_in_key;
DROP FUNCTION events_v2_channel;
DROP FUNCTION events_v2_runnable;
DROP FUNCTION events_v2_rate_room;
DROP FUNCTION events_v2_room;
DROP FUNCTION events_v2_advance;
DROP FUNCTION events_v2_max_running;
DROP FUNCTION events_v2_group_key;
DROP FUNCTION events_v2_needs_read_committed;
DROP FUNCTION events_v2_tables;
DROP TABLE events_v2_notifications, events_v2_settings, bulk_operations, audit_log, access_tokens, webhook_sources, webhook_minutes,
    grid_outputs, cleanups, event_minute_totals, event_hours, event_minutes, event_workers, cron_records, cron_definitions,
    rate_counters, rate_limits, event_group_locks, event_groups, concurrency_limits, unique_expiries, unique_keys,
    event_attempts, event_log, claim_barrier, scheduling_rules, events_v2;
DROP FUNCTION rate_limit_changed;
DROP TYPE cron_missed_policy, event_log_status, scheduling_rule_type;
