-- The sums of the minutes, which the overviews of the dashboard read in place of thousands of rows.
-- Locks: none on existing tables.

-- +goose Up

-- A row is of all canvases (of_all, with the canvas 00000000-0000-0000-0000-000000000000), or of one canvas that
-- has many rows in that minute. cron writes it when the minute can no longer change. It is derived from
-- event_minutes, column by column; without cron it has no rows, and nothing but speed depends on them.
CREATE TABLE event_minute_totals (
    minute     timestamptz NOT NULL,
    of_all     boolean     NOT NULL,
    canvas_id  uuid        NOT NULL,
    emitted    bigint      NOT NULL,
    completed  bigint      NOT NULL,
    failed     bigint      NOT NULL,
    retried    bigint      NOT NULL,
    cancelled  bigint      NOT NULL,
    waits      bigint[]    NOT NULL,
    pending    bigint,
    oldest_due interval,

    CONSTRAINT event_minute_totals_pkey PRIMARY KEY (minute, of_all, canvas_id)
);

CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers', 'event_minutes', 'event_hours',
    'access_tokens', 'audit_log', 'bulk_operations', 'webhook_minutes', 'webhook_sources', 'event_minute_totals'];

-- +goose Down
CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers', 'event_minutes', 'event_hours',
    'access_tokens', 'audit_log', 'bulk_operations', 'webhook_minutes', 'webhook_sources'];
DROP TABLE event_minute_totals;
