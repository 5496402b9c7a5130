-- Access: who a token was made by, which sessions were logged out, and who exactly is in the audit log.
-- Locks: access_tokens, audit_log and event_workers, ACCESS EXCLUSIVE, for a moment: requests of the API and the dashboard wait.

-- +goose Up
ALTER TABLE access_tokens
    ADD COLUMN created_by_token uuid; -- whose holder made it: it is revoked with that one; NULL: whoever has the database, or a login of an issuer

ALTER TABLE audit_log
    -- Names can be given twice. token: and the id of the token, or oidc: with the issuer and the subject; '': the name says all.
    ADD COLUMN actor_id text NOT NULL DEFAULT '';

-- Sessions of the dashboard that were logged out before their end. The next log-out deletes those whose end has come.
CREATE TABLE ended_sessions (
    id       uuid        NOT NULL,
    token_id uuid        NOT NULL, -- that it was begun with
    ends_at  timestamptz NOT NULL, -- when it would have ended by itself

    CONSTRAINT ended_sessions_pkey PRIMARY KEY (id)
);

-- I15: a worker whose handlers nobody can list would fail whoever lists workers.
ALTER TABLE event_workers
    ADD CONSTRAINT event_workers_handlers CHECK (jsonb_typeof(handlers) = 'array') NOT VALID;

CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers',
    'event_minutes', 'event_hours', 'access_tokens', 'audit_log', 'bulk_operations', 'webhook_minutes', 'webhook_sources',
    'event_minute_totals', 'ended_sessions'];

-- +goose Down
CREATE OR REPLACE FUNCTION events_v2_tables() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['events_v2', 'scheduling_rules', 'event_log', 'cron_definitions', 'cron_records', 'events_v2_notifications',
    'unique_keys', 'unique_expiries', 'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters',
    'claim_barrier', 'event_group_locks', 'eventsv2_schema_version', 'events_v2_settings', 'event_attempts', 'event_workers',
    'event_minutes', 'event_hours', 'access_tokens', 'audit_log', 'bulk_operations', 'webhook_minutes', 'webhook_sources',
    'event_minute_totals'];

ALTER TABLE event_workers DROP CONSTRAINT event_workers_handlers;
DROP TABLE ended_sessions;
ALTER TABLE audit_log DROP COLUMN actor_id;
ALTER TABLE access_tokens DROP COLUMN created_by_token;
