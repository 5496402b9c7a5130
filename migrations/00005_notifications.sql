-- The doorbell on Postgres (NOTIFIER=postgres): the notifications that wait for
-- a worker. With Pub/Sub nobody uses this table.
-- Locks: none on existing tables (everything here is new).

-- +goose Up

-- Unlogged: no WAL. A crash of Postgres, and a failover, empty it; it is a
-- doorbell, and the relay rings again for what it forgot (I2).
CREATE UNLOGGED TABLE events_v2_notifications (
    event_id    bigint NOT NULL,
    canvas_id   uuid   NOT NULL,
    traceparent text,            -- W3C trace context of the emitter
    place       bigint NOT NULL GENERATED ALWAYS AS IDENTITY, -- about the order of arrival

    -- I11: one per event, however often the relay rings while a backlog waits.
    CONSTRAINT events_v2_notifications_pkey PRIMARY KEY (event_id),
    CONSTRAINT events_v2_notifications_readable CHECK (event_id > 0 AND octet_length(traceparent) <= 128)
)
-- Every row is soon dead.
WITH (autovacuum_vacuum_scale_factor = 0.01,
      autovacuum_vacuum_threshold = 5000,
      autovacuum_vacuum_cost_delay = 0);

-- The order in which workers take them.
CREATE INDEX events_v2_notifications_place ON events_v2_notifications (place);

-- Statistics of a queue are wrong as soon as they are made; and with them the
-- planner looks for the lowest place there is, past all that was taken.
ALTER TABLE events_v2_notifications ALTER COLUMN place SET STATISTICS 0;

-- +goose Down
DROP TABLE events_v2_notifications;
