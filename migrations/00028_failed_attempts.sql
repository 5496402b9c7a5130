-- Why an event is tried again: its failed attempts.
-- Locks: none on existing tables (everything here is new).

-- +goose Up

-- A row is written by the statement that completes the run which failed; a run that
-- succeeds writes none. An event has no more than 20 rows. They go when the event is neither
-- in events_v2 nor in event_log: the relay deletes them.
CREATE TABLE event_attempts (
    event_id   bigint      NOT NULL,
    attempt    integer     NOT NULL, -- events_v2.attempts of the claim
    canvas_id  uuid        NOT NULL,
    started_at timestamptz NOT NULL,
    duration   interval    NOT NULL,
    worker     bigint,               -- the number of the worker; NULL: a program older than these numbers
    error      text        NOT NULL,

    CONSTRAINT event_attempts_pkey PRIMARY KEY (event_id, attempt)
);

CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts'];

-- +goose Down
CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings'];
DROP TABLE event_attempts;
