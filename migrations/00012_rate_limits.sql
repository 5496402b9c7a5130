-- Rate limits: how many events of a canvas, or of one handler on it, may begin to run
-- per minute and per day; and how many have.
-- Locks: events_v2, ACCESS EXCLUSIVE, for a moment (no row is written).

-- +goose Up

-- Which claim a limit has put off: its attempts, folded into what fits between the
-- columns that are there, so that a row is no longer than before. A later claim has
-- another number, so nobody takes it back. 0 costs nothing. Not NULL, as unique_seconds.
ALTER TABLE events_v2 ADD COLUMN limited_attempt smallint NOT NULL DEFAULT 0;

CREATE TABLE rate_limits (
    canvas_id  uuid        NOT NULL,
    module     text        NOT NULL DEFAULT '', -- module and name both empty: the whole canvas
    name       text        NOT NULL DEFAULT '',
    per_minute integer,                         -- NULL: any number
    per_day    integer,
    mode       text        NOT NULL DEFAULT 'exact',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),

    CONSTRAINT rate_limits_pkey PRIMARY KEY (canvas_id, module, name),
    CONSTRAINT rate_limits_scope CHECK ((module = '') = (name = '')),
    CONSTRAINT rate_limits_some CHECK (per_minute IS NOT NULL OR per_day IS NOT NULL),
    CONSTRAINT rate_limits_positive CHECK (per_minute BETWEEN 1 AND 1000000000 AND per_day BETWEEN 1 AND 1000000000),
    CONSTRAINT rate_limits_mode CHECK (mode IN ('exact', 'approximate'))
);

-- Apart from the limits, which every claim looks at: a row that is written a thousand
-- times a second has many dead versions.
CREATE TABLE rate_counters (
    canvas_id    uuid        NOT NULL,
    module       text        NOT NULL,
    name         text        NOT NULL,
    minute_at    timestamptz NOT NULL DEFAULT 'epoch', -- when the window of minute_count began
    minute_count bigint      NOT NULL DEFAULT 0,
    day_at       timestamptz NOT NULL DEFAULT 'epoch',
    day_count    bigint      NOT NULL DEFAULT 0,
    waiting      bigint      NOT NULL DEFAULT 0, -- put off, to windows later than these

    CONSTRAINT rate_counters_pkey PRIMARY KEY (canvas_id, module, name),
    CONSTRAINT rate_counters_limit FOREIGN KEY (canvas_id, module, name) REFERENCES rate_limits ON DELETE CASCADE ON UPDATE CASCADE
)
-- Room for the next versions of each row (HOT updates).
WITH (fillfactor = 20,
      autovacuum_vacuum_scale_factor = 0,
      autovacuum_vacuum_threshold = 1000,
      autovacuum_vacuum_cost_delay = 0);

-- Whoever changes a limit, with eventctl or in SQL: it has counters, a lower limit is
-- no overshoot that later windows would have to pay for, and who waits is planned anew.
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

-- +goose Down
DROP TABLE rate_counters;
DROP TABLE rate_limits;
DROP FUNCTION rate_limit_changed();
ALTER TABLE events_v2 DROP COLUMN limited_attempt;
