-- Replays of events of the history, at a rate, and slots of cron that are skipped.
-- Locks: ACCESS EXCLUSIVE on bulk_operations, cron_definitions and cron_records, for a moment; no row is read.

-- +goose Up
-- Until when the events that an operation emits at a rate are spread; NULL before the first of them.
ALTER TABLE bulk_operations ADD COLUMN paced_until timestamptz;

-- A slot that comes while a rule holds the event back, or while an earlier event of the definition waits or runs, gets none.
ALTER TABLE cron_definitions
    ADD COLUMN skip_if_paused  boolean NOT NULL DEFAULT false,
    ADD COLUMN skip_if_running boolean NOT NULL DEFAULT false;

-- Why a slot was skipped; its event_id is 0. NULL: it was not.
ALTER TABLE cron_records
    ADD COLUMN skipped text,
    ADD CONSTRAINT cron_records_skipped CHECK (skipped IN ('paused', 'running')) NOT VALID;

-- +goose Down
ALTER TABLE cron_records DROP COLUMN skipped;
ALTER TABLE cron_definitions DROP COLUMN skip_if_paused, DROP COLUMN skip_if_running;
ALTER TABLE bulk_operations DROP COLUMN paced_until;
