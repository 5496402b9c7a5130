-- Changes of many events that go on in the background: a row for each, and its progress.
-- Locks: SHARE on audit_log while its index is built.

-- +goose Up
CREATE TABLE bulk_operations (
    id           uuid        NOT NULL,
    counted_at   timestamptz NOT NULL DEFAULT clock_timestamp(), -- what the ages of the filter count from
    expires_at   timestamptz NOT NULL, -- until when it can be confirmed
    identity     text        NOT NULL, -- who can confirm it
    actor        text        NOT NULL, -- who, as in audit_log
    source       text        NOT NULL,
    via          text        NOT NULL,
    canvas_id    uuid,                 -- that of the filter; NULL: all
    change       text        NOT NULL, -- the verb, the filter, and what is written; JSON
    counted      bigint      NOT NULL, -- events that the filter selected when it was counted
    last_id      bigint      NOT NULL, -- events above it are left alone
    state        text        NOT NULL CHECK (state IN ('counted', 'running', 'done', 'stopped', 'failed')),
    started_at   timestamptz,
    ended_at     timestamptz,

    after_id     bigint      NOT NULL DEFAULT 0, -- up to it, all events are done
    changed      bigint      NOT NULL DEFAULT 0,
    running      bigint      NOT NULL DEFAULT 0, -- refused, as they were running
    busy         bigint      NOT NULL DEFAULT 0, -- refused, as others were writing them
    refused      bigint      NOT NULL DEFAULT 0, -- refused by the database
    failures     integer     NOT NULL DEFAULT 0, -- failed tries since the last progress

    lease        uuid,                 -- of the program that works on it
    leased_until timestamptz NOT NULL DEFAULT '-infinity',

    CONSTRAINT bulk_operations_pkey PRIMARY KEY (id)
);
CREATE INDEX bulk_operations_running_idx ON bulk_operations (leased_until) WHERE state = 'running';
CREATE INDEX bulk_operations_counted_idx ON bulk_operations (counted_at);

-- What an operation has done is what its rows say.
CREATE INDEX audit_log_operation_idx ON audit_log (operation_id, id) WHERE operation_id IS NOT NULL;

CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers', 'event_minutes', 'event_hours',
    'access_tokens', 'audit_log', 'bulk_operations'];

-- +goose Down
CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers', 'event_minutes', 'event_hours',
    'access_tokens', 'audit_log'];
DROP INDEX audit_log_operation_idx;
DROP TABLE bulk_operations;
