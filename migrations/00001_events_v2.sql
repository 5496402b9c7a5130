-- The queue itself: one row per event that has not ended.
-- Locks: none on existing tables (everything here is new).

-- +goose Up
CREATE SEQUENCE events_id_seq AS bigint;

CREATE TABLE events_v2 (
    id          bigint      NOT NULL DEFAULT nextval('events_id_seq'),
    canvas_id   uuid        NOT NULL,
    module      text        NOT NULL,
    name        text        NOT NULL,
    modifier    text        NOT NULL,
    value       text        NOT NULL,
    retries     integer     NOT NULL DEFAULT 0,
    delay_until timestamptz NOT NULL DEFAULT now(),
    enqueued_at timestamptz NOT NULL DEFAULT now(),
    locked_at   timestamptz,

    -- I5: the fence. Every claim adds one; every write after a claim names the
    -- number of that claim. Nothing else changes this column.
    attempts    integer     NOT NULL DEFAULT 0,

    -- I1, I2: when a notification was last published; NULL means that one is
    -- pending, and that the relay publishes it.
    notified_at timestamptz,

    CONSTRAINT events_v2_pkey PRIMARY KEY (id),
    -- I15: one row that no program can read would make the claim of a whole batch fail.
    CONSTRAINT events_v2_readable CHECK (id > 0 AND retries >= 0 AND attempts >= 0 AND isfinite(delay_until)
        AND isfinite(enqueued_at) AND isfinite(locked_at) AND isfinite(notified_at))
)
-- Every page has room for the row version that a claim writes (a HOT update: locked_at
-- and attempts are in no index). Autovacuum runs often, since every row is soon dead.
WITH (fillfactor = 80,
      autovacuum_vacuum_scale_factor = 0.01,
      autovacuum_vacuum_threshold = 5000,
      autovacuum_vacuum_cost_delay = 0);

ALTER SEQUENCE events_id_seq OWNED BY events_v2.id;

-- For counting the events of a handler, and for reading them by id when it is unpaused.
CREATE INDEX events_v2_handler ON events_v2 (canvas_id, module, name, id);

-- The events with pending notifications, by the time at which they are due.
CREATE INDEX events_v2_owed ON events_v2 (delay_until) WHERE notified_at IS NULL;

-- +goose Down
DROP TABLE events_v2;
