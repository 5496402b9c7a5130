-- The workers of a queue: which programs run its events, or did.
-- Locks: none on existing tables (everything here is new).

-- +goose Up

-- A worker writes its row when it connects for the first time, and stopped_at when it
-- stops; in between it writes nothing. That it lives shows in an advisory lock of its
-- heartbeat's connection, of the class 1163284567 and its number. missed_at is when a relay
-- saw for the first time that the lock of a worker was gone which had not stopped. The
-- relay deletes rows a day after stopped_at or missed_at.
CREATE TABLE event_workers (
    number     integer     NOT NULL, -- in the upper bits of the number of each of its claims
    host       text        NOT NULL,
    pid        integer     NOT NULL,
    version    text        NOT NULL,
    handlers   jsonb       NOT NULL, -- that it has: module, name, modifier, and canvas_id if it is for one only
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    stopped_at timestamptz,
    missed_at  timestamptz,

    CONSTRAINT event_workers_pkey PRIMARY KEY (number)
);

CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers'];

-- +goose Down
CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts'];
DROP TABLE event_workers;
