-- Rate limits: how many events of a canvas, or of one handler on it, may begin to run per
-- minute and per day, and how many have begun.
-- Locks: events_v2, ACCESS EXCLUSIVE, for a moment (no row is written).

-- +goose Up

-- The claim that a limit has put off: its attempts, reduced to a number that fits into the
-- padding between existing columns, so that rows are no longer than before. A later claim
-- has another number, so the column need not be reset. It is NOT NULL for the same reason
-- as unique_seconds.
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

-- The counters are not in the table of limits, which every claim reads: a row that is
-- written a thousand times a second has many dead versions.
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

-- Whenever a limit changes, with eventctl or in SQL: it gets counters, a lower limit does
-- not count as an overshoot of later windows, and the waiting events are planned anew.
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
