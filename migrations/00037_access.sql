-- Who may use the HTTP API and the dashboard, and who has changed what.
-- Locks: none on existing tables (everything here is new).

-- +goose Up

-- Of a token only the SHA-256 is known: it has 256 random bits, so nobody finds it by that.
CREATE TABLE access_tokens (
    id         uuid        NOT NULL,
    name       text        NOT NULL,
    hash       bytea       NOT NULL,
    canvases   uuid[],               -- that it is for; NULL: all
    verbs      text[]      NOT NULL, -- that it may use
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text        NOT NULL,
    expires_at timestamptz,          -- NULL: never
    revoked_at timestamptz,

    CONSTRAINT access_tokens_pkey PRIMARY KEY (id),
    CONSTRAINT access_tokens_hash_key UNIQUE (hash)
);

-- One row for each change of an operator, written by the transaction of the change.
CREATE TABLE audit_log (
    id           bigint      GENERATED ALWAYS AS IDENTITY,
    at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor        text        NOT NULL, -- who: a token, a user
    source       text        NOT NULL, -- from where: an address, a host
    via          text        NOT NULL, -- by what: api, dashboard, eventctl, cron
    operation_id uuid,                 -- the change of many events that it belongs to
    action       text        NOT NULL,
    canvas_id    uuid,                 -- NULL: of no canvas, or of several
    target       jsonb       NOT NULL, -- what was changed
    before       jsonb,                -- NULL: it was not there
    after        jsonb,                -- NULL: it is gone

    CONSTRAINT audit_log_pkey PRIMARY KEY (id)
);
CREATE INDEX audit_log_canvas_idx ON audit_log (canvas_id, id);

CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers', 'event_minutes', 'event_hours',
    'access_tokens', 'audit_log'];

-- +goose Down
CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers', 'event_minutes', 'event_hours'];
DROP TABLE audit_log;
DROP TABLE access_tokens;
