-- What sources of webhooks receive: counts per minute, and the sources with their newest refusals.
-- Locks: none on existing tables (everything here is new).

-- +goose Up

-- A row is of one source and one outcome in one minute. Programs that serve webhooks add what they have counted
-- since they last did, once a minute at most and only while there is something to count. Both tables have rows of
-- configured sources only. A source for all canvases has the canvas 00000000-0000-0000-0000-000000000000.
CREATE TABLE webhook_minutes (
    minute    timestamptz NOT NULL,
    source    text        NOT NULL,
    canvas_id uuid        NOT NULL,
    outcome   text        NOT NULL, -- accepted, duplicate, ignored, or why they were refused
    requests  bigint      NOT NULL,

    CONSTRAINT webhook_minutes_pkey PRIMARY KEY (minute, source, canvas_id, outcome)
);

CREATE TABLE webhook_sources (
    source      text        NOT NULL,
    canvas_id   uuid        NOT NULL,
    scheme      text        NOT NULL, -- as in the handlers file; empty: a verifier of the program's own
    served_at   timestamptz NOT NULL, -- when a program that serves it last wrote this row
    received_at timestamptz,          -- when a request last came; NULL: none has
    refusals    jsonb       NOT NULL DEFAULT '[]', -- the newest: when, outcome and reason

    CONSTRAINT webhook_sources_pkey PRIMARY KEY (source, canvas_id)
);

CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers', 'event_minutes', 'event_hours',
    'access_tokens', 'audit_log', 'bulk_operations', 'webhook_minutes', 'webhook_sources'];

-- +goose Down
CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers', 'event_minutes', 'event_hours',
    'access_tokens', 'audit_log', 'bulk_operations'];
DROP TABLE webhook_sources;
DROP TABLE webhook_minutes;
