-- Canvas names: what people call a canvas, beside its uuid.
-- Locks: none that anybody waits for.

-- +goose Up

-- Applications write it, from their own table of tenants, and eventctl does. Pages and commands that select a canvas take its name in place of its uuid, so
-- that a name is that of one canvas, never looks like a uuid, and can be typed. No event depends on it.
CREATE TABLE canvas_names (
    canvas_id uuid NOT NULL,
    name      text COLLATE "C" NOT NULL,

    CONSTRAINT canvas_names_pkey PRIMARY KEY (canvas_id),
    CONSTRAINT canvas_names_name_key UNIQUE (name),
    CONSTRAINT canvas_names_canvas CHECK (canvas_id <> '00000000-0000-0000-0000-000000000000'),
    CONSTRAINT canvas_names_length CHECK (octet_length(convert_to(name, 'UTF8')) BETWEEN 1 AND 255),
    CONSTRAINT canvas_names_readable CHECK (name !~ '[\u0001-\u001f\u007f-\u009f]' AND name = btrim(name)),
    CONSTRAINT canvas_names_no_uuid CHECK (name !~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')
);

CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers',
    'event_minutes', 'event_hours', 'access_tokens', 'audit_log', 'bulk_operations', 'webhook_minutes', 'webhook_sources',
    'event_minute_totals', 'ended_sessions', 'unique_heirs', 'event_hour_totals', 'event_emits', 'canvas_names'];

-- +goose Down
CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers',
    'event_minutes', 'event_hours', 'access_tokens', 'audit_log', 'bulk_operations', 'webhook_minutes', 'webhook_sources',
    'event_minute_totals', 'ended_sessions', 'unique_heirs', 'event_hour_totals', 'event_emits'];

DROP TABLE canvas_names;
