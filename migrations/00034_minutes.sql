-- What charts, alerts and autoscaling read: counts per minute, and per hour.
-- Locks: none on existing tables (everything here is new).

-- +goose Up

-- A row is of the events of one handler on one canvas in one minute. Programs add what they
-- have counted since they last did, once a minute at most and only while there is something to
-- count; cron writes pending and oldest_due. A minute has at most 3,001 rows, but for hand-ins
-- at the same moment: where more handlers have counts, those of further canvases are added
-- to a row with the canvas 00000000-0000-0000-0000-000000000000, and those of further
-- handlers to one with an empty module and name as well.
-- waits and runs are histograms: element i counts durations of up to 2 ^ ((i - 1) / 2.0)
-- milliseconds that are longer than those of the element before, and the last, 64, all others.
CREATE TABLE event_minutes (
    minute     timestamptz NOT NULL,
    canvas_id  uuid        NOT NULL,
    module     text        NOT NULL,
    name       text        NOT NULL,
    emitted    bigint      NOT NULL DEFAULT 0,    -- new events
    completed  bigint      NOT NULL DEFAULT 0,    -- runs that completed their event
    failed     bigint      NOT NULL DEFAULT 0,    -- runs after which the event was FAILED
    retried    bigint      NOT NULL DEFAULT 0,    -- runs that failed, and the event is tried again
    waits      bigint[]    NOT NULL DEFAULT '{}', -- from when the event was due to its claim
    runs       bigint[]    NOT NULL DEFAULT '{}', -- how long the handler ran
    pending    bigint,                            -- events that had not ended; NULL: not counted
    oldest_due interval,                          -- how long one that nobody runs had been due; NULL: there was none

    CONSTRAINT event_minutes_pkey PRIMARY KEY (minute, canvas_id, module, name)
)
-- Room for the next versions of the rows of the current minute (HOT updates).
WITH (fillfactor = 60);

-- The sums of whole hours, and the highest pending and oldest_due of their minutes.
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

    CONSTRAINT event_hours_pkey PRIMARY KEY (hour, canvas_id, module, name)
);

CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers', 'event_minutes', 'event_hours'];

-- +goose Down
CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers'];
DROP TABLE event_hours;
DROP TABLE event_minutes;
