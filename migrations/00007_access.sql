-- Access: who a token was made by, which sessions were logged out, and who exactly is in the audit log.
-- Locks: access_tokens, audit_log, event_workers and the tables of counts (event_minutes, event_hours, event_minute_totals,
-- webhook_minutes), ACCESS EXCLUSIVE, for a moment: requests of the API and the dashboard wait, and counts that are handed in.

-- +goose Up
ALTER TABLE access_tokens
    ADD COLUMN created_by_token uuid, -- whose holder made it: it is revoked with that one; NULL: whoever has the database, or a login of an issuer
    ADD COLUMN origin text;           -- who began the line of makers that it comes from: the actor_key of a token or a login; NULL: whoever has the database
CREATE INDEX access_tokens_origin_idx ON access_tokens (origin, created_at) WHERE origin IS NOT NULL;

ALTER TABLE audit_log
    -- Names can be given twice. token: and the id of the token, or oidc: with the issuer and the subject; '': the name says all.
    ADD COLUMN actor_key text NOT NULL DEFAULT '';

-- Sessions of the dashboard that were logged out before their end. The next log-out deletes those whose end has come.
CREATE TABLE ended_sessions (
    id       uuid        NOT NULL,
    token_id uuid        NOT NULL, -- that it was begun with
    ends_at  timestamptz NOT NULL, -- when it would have ended by itself

    CONSTRAINT ended_sessions_pkey PRIMARY KEY (id)
);
CREATE INDEX ended_sessions_ends_at ON ended_sessions (ends_at);

-- I15: a worker whose handlers nobody can list would fail whoever lists workers. Only SQL can write such a row.
UPDATE event_workers SET handlers = '[]' WHERE jsonb_typeof(handlers) <> 'array';
ALTER TABLE event_workers
    ADD CONSTRAINT event_workers_handlers CHECK (jsonb_typeof(handlers) = 'array') NOT VALID;

-- I15: only SQL can write counts that no sum can be made of: sums of these rows stay below the largest bigint. Rows that were there
-- are not looked at, since there may be millions.
ALTER TABLE event_minutes ADD CONSTRAINT event_minutes_readable CHECK (
    minute >= '0001-01-01 00:00Z' AND minute < '10000-01-01 00:00Z'
    AND least(emitted, completed, failed, retried, cancelled, pending) >= 0 AND greatest(emitted, completed, failed, retried, cancelled, pending) <= 1000000000000000
    AND (0 <= ALL (waits) AND 1000000000000000 >= ALL (waits) AND cardinality(waits) <= 64) IS TRUE
    AND (0 <= ALL (runs) AND 1000000000000000 >= ALL (runs) AND cardinality(runs) <= 64) IS TRUE
    AND oldest_due BETWEEN interval '-40000 days' AND interval '40000 days') NOT VALID;

ALTER TABLE event_hours ADD CONSTRAINT event_hours_readable CHECK (
    hour >= '0001-01-01 00:00Z' AND hour < '10000-01-01 00:00Z'
    AND least(emitted, completed, failed, retried, cancelled, pending) >= 0 AND greatest(emitted, completed, failed, retried, cancelled, pending) <= 1000000000000000
    AND (0 <= ALL (waits) AND 1000000000000000 >= ALL (waits) AND cardinality(waits) <= 64) IS TRUE
    AND (0 <= ALL (runs) AND 1000000000000000 >= ALL (runs) AND cardinality(runs) <= 64) IS TRUE
    AND oldest_due BETWEEN interval '-40000 days' AND interval '40000 days') NOT VALID;

ALTER TABLE event_minute_totals ADD CONSTRAINT event_minute_totals_readable CHECK (
    minute >= '0001-01-01 00:00Z' AND minute < '10000-01-01 00:00Z'
    AND least(emitted, completed, failed, retried, cancelled, pending) >= 0 AND greatest(emitted, completed, failed, retried, cancelled, pending) <= 1000000000000000
    AND (0 <= ALL (waits) AND 1000000000000000 >= ALL (waits) AND cardinality(waits) <= 64) IS TRUE
    AND oldest_due BETWEEN interval '-40000 days' AND interval '40000 days') NOT VALID;

ALTER TABLE webhook_minutes ADD CONSTRAINT webhook_minutes_readable CHECK (
    minute >= '0001-01-01 00:00Z' AND minute < '10000-01-01 00:00Z'
    AND requests BETWEEN 0 AND 1000000000000000) NOT VALID;

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

ALTER TABLE webhook_minutes DROP CONSTRAINT webhook_minutes_readable;
ALTER TABLE event_minute_totals DROP CONSTRAINT event_minute_totals_readable;
ALTER TABLE event_hours DROP CONSTRAINT event_hours_readable;
ALTER TABLE event_minutes DROP CONSTRAINT event_minutes_readable;
ALTER TABLE event_workers DROP CONSTRAINT event_workers_handlers;
DROP TABLE ended_sessions;
ALTER TABLE audit_log DROP COLUMN actor_key;
DROP INDEX access_tokens_origin_idx;
ALTER TABLE access_tokens DROP COLUMN origin, DROP COLUMN created_by_token;
