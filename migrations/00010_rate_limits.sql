-- Rate limits: a changed limit forgets no run of its windows.
-- Locks: rate_counters and rate_limits, ACCESS EXCLUSIVE, for a moment.

-- +goose Up
ALTER TABLE rate_counters
    -- The highest limits under which runs of these windows were granted; NULL: the present ones. Only what is above them is an overshoot,
    -- which is subtracted from later windows.
    ADD COLUMN minute_most bigint,
    ADD COLUMN day_most    bigint,
    ADD COLUMN removed_at  timestamptz, -- since when there is no limit; NULL: there is one
    -- A limit that is removed and set again goes on with its counts.
    DROP CONSTRAINT rate_counters_limit;

CREATE INDEX rate_counters_removed ON rate_counters (removed_at) WHERE removed_at IS NOT NULL;

-- Whenever a limit changes, with eventctl or in SQL: it has counters, and the waiting events are planned anew. The counters of a
-- limit that was removed are kept until all of their windows are over. So whoever sets it again finds them, and whoever deletes
-- them does not find those of a limit that was just set again: that has written removed_at in the same row.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION rate_limit_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND (TG_OP = 'DELETE' OR (OLD.canvas_id, OLD.module, OLD.name) <> (NEW.canvas_id, NEW.module, NEW.name)) THEN
        UPDATE rate_counters c SET removed_at = clock_timestamp(), waiting = 0
        WHERE (c.canvas_id, c.module, c.name) = (OLD.canvas_id, OLD.module, OLD.name);
        DELETE FROM rate_counters WHERE (canvas_id, module, name) IN (
            SELECT c.canvas_id, c.module, c.name FROM rate_counters c
            WHERE c.removed_at < clock_timestamp() - interval '2 days' AND c.day_at < clock_timestamp() - interval '2 days'
            FOR UPDATE SKIP LOCKED);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO rate_counters AS c (canvas_id, module, name)
        VALUES (NEW.canvas_id, NEW.module, NEW.name)
        ON CONFLICT (canvas_id, module, name) DO UPDATE SET removed_at = NULL, waiting = 0;
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- Functions that run with settings of their own see this schema only.
-- +goose StatementBegin
DO $do$
BEGIN
    EXECUTE format('ALTER FUNCTION rate_limit_changed SET search_path = pg_catalog, %s, pg_temp',
        (SELECT relnamespace::regnamespace FROM pg_class WHERE oid = 'events_v2'::regclass));
END
$do$;
-- +goose StatementEnd

CREATE OR REPLACE TRIGGER rate_limit_changed AFTER INSERT OR UPDATE OR DELETE ON rate_limits
    FOR EACH ROW EXECUTE FUNCTION rate_limit_changed();

-- How many more events a rate limit lets run in its present windows; NULL: any number. Module and name are empty for the
-- limit of the canvas. Windows are whole minutes and days of UTC, and an overshoot of one counts in the next.
CREATE OR REPLACE FUNCTION events_v2_rate_room(canvas uuid, module text, name text) RETURNS bigint
LANGUAGE sql VOLATILE
RETURN (
    SELECT greatest(least(
        l.per_minute - CASE minutes WHEN 0 THEN c.minute_count
            ELSE greatest(greatest(c.minute_count - coalesce(c.minute_most, l.per_minute), 0) - (minutes - 1) * l.per_minute, 0) END,
        l.per_day - CASE days WHEN 0 THEN c.day_count
            ELSE greatest(greatest(c.day_count - coalesce(c.day_most, l.per_day), 0) - (days - 1) * l.per_day, 0) END), 0)
    FROM rate_limits l JOIN rate_counters c ON c.canvas_id = l.canvas_id AND c.module = l.module AND c.name = l.name
    CROSS JOIN LATERAL (
        SELECT
            round(extract(epoch FROM greatest(date_bin('1 minute', clock_timestamp(), 'epoch'), c.minute_at) - c.minute_at) / 60)::bigint
                AS minutes,
            round(extract(epoch FROM greatest(date_bin('1 day', clock_timestamp(), 'epoch'), c.day_at) - c.day_at) / 86400)::bigint AS days
    ) AS elapsed
    WHERE l.canvas_id = events_v2_rate_room.canvas AND l.module = events_v2_rate_room.module AND l.name = events_v2_rate_room.name);

-- +goose Down
CREATE OR REPLACE FUNCTION events_v2_rate_room(canvas uuid, module text, name text) RETURNS bigint
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

CREATE OR REPLACE TRIGGER rate_limit_changed AFTER INSERT OR UPDATE ON rate_limits
    FOR EACH ROW EXECUTE FUNCTION rate_limit_changed();

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION rate_limit_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO rate_counters AS c (canvas_id, module, name)
    VALUES (NEW.canvas_id, NEW.module, NEW.name)
    ON CONFLICT (canvas_id, module, name) DO UPDATE
    SET minute_count = least(c.minute_count, NEW.per_minute), day_count = least(c.day_count, NEW.per_day), waiting = 0;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- Functions that run with settings of their own see this schema only.
-- +goose StatementBegin
DO $do$
BEGIN
    EXECUTE format('ALTER FUNCTION rate_limit_changed SET search_path = pg_catalog, %s, pg_temp',
        (SELECT relnamespace::regnamespace FROM pg_class WHERE oid = 'events_v2'::regclass));
END
$do$;
-- +goose StatementEnd

DELETE FROM rate_counters c WHERE NOT EXISTS (
    SELECT FROM rate_limits l WHERE (l.canvas_id, l.module, l.name) = (c.canvas_id, c.module, c.name));
DROP INDEX rate_counters_removed;
ALTER TABLE rate_counters DROP COLUMN minute_most, DROP COLUMN day_most, DROP COLUMN removed_at,
    ADD CONSTRAINT rate_counters_limit FOREIGN KEY (canvas_id, module, name) REFERENCES rate_limits ON DELETE CASCADE ON UPDATE CASCADE;
