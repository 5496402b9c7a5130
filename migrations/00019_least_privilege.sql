-- Roles need no more rights than for the rows that they have to write. Locks that any role
-- could take by their number are now rows, a barrier that needed the right to write rules is
-- now a table, and the tables of the queue are listed by name.
-- Locks: none on existing tables (everything here is new).

-- +goose Up

-- Claims hold a lock on this table until they have committed, and adding a rule waits for
-- that (I7). So a role that claims needs no right to write rules. The table has no rows.
CREATE TABLE claim_barrier (
    nothing boolean,
    CONSTRAINT claim_barrier_empty CHECK (false) NO INHERIT
);

-- The locks of lines: a row per number, made when it is first needed, of which there are
-- 262144 for each stage at most. Two lines with the same number wait for each other, for
-- moments. Rows, since anybody may take an advisory lock, whose numbers all can see.
-- Unlogged: a lock is of no use after a crash, and writes no WAL.
CREATE UNLOGGED TABLE event_line_locks (
    number integer NOT NULL,
    CONSTRAINT event_line_locks_pkey PRIMARY KEY (number)
);

-- The names of the tables that belong to the queue.
CREATE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_ends', 'running_limits', 'event_lines', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_line_locks', 'eventsv2_schema_version'];

-- Both functions stay as the migrations before this one have made them, but for this.
-- +goose StatementBegin
DO $$
DECLARE
    change     record;
    definition text;
BEGIN
    FOR change IN VALUES ('events_v2_turns', $old$        PERFORM pg_advisory_xact_lock(number) FROM (
            SELECT DISTINCT hashtextextended(format('events_v2 %s %s %s', at, l.canvas_id, l.line), 0) AS number
            FROM unnest(canvases, lines) AS l (canvas_id, line) ORDER BY number) AS locks;
$old$, $new$        INSERT INTO event_line_locks AS held (number) -- makes what is missing, and locks the rest without writing it
        SELECT DISTINCT at * 262144 + (hashtextextended(format('%s %s', l.canvas_id, l.line), 0) & 262143)::integer AS number
        FROM unnest(canvases, lines) AS l (canvas_id, line) ORDER BY number
        ON CONFLICT (number) DO UPDATE SET number = held.number WHERE false;
$new$), ('send_to_outbox', $old$TG_RELID = ANY (ARRAY['events_v2', 'event_log', 'events_v2_notifications']::regclass[])$old$,
        $new$"table" = ANY (events_v2_tables()) AND (SELECT relnamespace FROM pg_class WHERE oid = TG_RELID)
            = (SELECT relnamespace FROM pg_class WHERE oid = 'events_v2'::regclass)$new$)
    LOOP
        definition := pg_get_functiondef(change.column1::regproc);
        IF strpos(definition, change.column2) = 0 THEN
            RAISE EXCEPTION '% is not as the migrations before this one have made it: it lacks "%"', change.column1, change.column2;
        END IF;
        EXECUTE replace(definition, change.column2, change.column3);
    END LOOP;
END
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
DO $$
DECLARE
    turns  text := pg_get_functiondef('events_v2_turns'::regproc);
    outbox text := pg_get_functiondef('send_to_outbox'::regproc);
    begins integer := strpos(turns, '        INSERT INTO event_line_locks AS held');
    ends   text := 'DO UPDATE SET number = held.number WHERE false;' || chr(10);
    place  integer := strpos(turns, ends);
BEGIN
    EXECUTE left(turns, begins - 1) || $old$        PERFORM pg_advisory_xact_lock(number) FROM (
            SELECT DISTINCT hashtextextended(format('events_v2 %s %s %s', at, l.canvas_id, l.line), 0) AS number
            FROM unnest(canvases, lines) AS l (canvas_id, line) ORDER BY number) AS locks;
$old$ || substr(turns, place + length(ends));
    EXECUTE regexp_replace(outbox, '"table" = ANY \(events_v2_tables\(\)\) AND .*?''events_v2''::regclass\)',
        $old$TG_RELID = ANY (ARRAY['events_v2', 'event_log', 'events_v2_notifications']::regclass[])$old$);
END
$$;
-- +goose StatementEnd
DROP FUNCTION events_v2_tables;
DROP TABLE event_line_locks;
DROP TABLE claim_barrier;
