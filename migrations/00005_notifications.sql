-- The notifier on Postgres (NOTIFIER=postgres): the notifications that wait for a
-- worker. With Pub/Sub no program uses this table.
-- Locks: none on existing tables (everything here is new).

-- +goose Up

-- Unlogged: no WAL. A crash of Postgres or a failover empties the table. Then the relay
-- publishes the lost notifications again (I2).
CREATE UNLOGGED TABLE events_v2_notifications (
    event_id    bigint NOT NULL,
    canvas_id   uuid   NOT NULL,
    traceparent text,            -- W3C trace context of the emitter
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

-- The statistics of a queue are outdated as soon as they are made. With them the planner
-- would search for the lowest place of all, beginning with the rows that were taken.
ALTER TABLE events_v2_notifications ALTER COLUMN place SET STATISTICS 0;

-- +goose Down
DROP TABLE events_v2_notifications;
