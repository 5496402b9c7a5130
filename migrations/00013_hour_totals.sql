-- Hour totals: the sums of an hour over all handlers, which overviews of a week read.
-- Locks: none that anybody waits for.

-- +goose Up

-- The sums of an hour over all handlers: of all canvases, and of each. cron derives them from event_hours, and retains them for as long
-- as an overview shows. Of what was pending it is the highest sum of a minute. Only speed depends on them.
CREATE TABLE event_hour_totals (
    hour       timestamptz NOT NULL,
    of_all     boolean     NOT NULL, -- the sum over all canvases, with the canvas 00000000-0000-0000-0000-000000000000
    canvas_id  uuid        NOT NULL,
    emitted    bigint      NOT NULL,
    completed  bigint      NOT NULL,
    failed     bigint      NOT NULL,
    retried    bigint      NOT NULL,
    cancelled  bigint      NOT NULL,
    waits      bigint[]    NOT NULL,
    pending    bigint,
    oldest_due interval,

    CONSTRAINT event_hour_totals_pkey PRIMARY KEY (hour, of_all, canvas_id),
    CONSTRAINT event_hour_totals_readable CHECK (
        hour >= '0001-01-01 00:00Z' AND hour < '10000-01-01 00:00Z'
        AND least(emitted, completed, failed, retried, cancelled, pending) >= 0 AND greatest(emitted, completed, failed, retried, cancelled, pending) <= 1000000000000000
        AND (0 <= ALL (waits) AND 1000000000000000 >= ALL (waits) AND cardinality(waits) <= 64) IS TRUE
        AND oldest_due BETWEEN interval '-40000 days' AND interval '40000 days')
);

CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers',
    'event_minutes', 'event_hours', 'access_tokens', 'audit_log', 'bulk_operations', 'webhook_minutes', 'webhook_sources',
    'event_minute_totals', 'ended_sessions', 'unique_heirs', 'event_hour_totals'];

-- +goose Down
CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers',
    'event_minutes', 'event_hours', 'access_tokens', 'audit_log', 'bulk_operations', 'webhook_minutes', 'webhook_sources',
    'event_minute_totals', 'ended_sessions', 'unique_heirs'];

DROP TABLE event_hour_totals;
