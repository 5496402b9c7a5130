-- Times that no program can work with, and that only SQL can write, are refused. Existing
-- locks of that kind are removed: otherwise no statement could update their rows, and the
-- relay updates many rows in one statement (I15). Other existing rows are not checked.
-- Locks: events_v2, while it is read no more than an update of these rows takes, then
-- events_v2, cron_definitions and cron_records, ACCESS EXCLUSIVE, for a moment (no row
-- is read).

-- +goose Up

-- A lock that is centuries ahead never expires.
UPDATE events_v2 SET locked_at = NULL WHERE locked_at >= '3000-01-01 00:00Z';
ALTER TABLE events_v2 ADD CONSTRAINT events_v2_lock_expires CHECK (locked_at < '3000-01-01 00:00Z') NOT VALID;
ALTER TABLE cron_definitions ADD CONSTRAINT cron_definitions_readable
    CHECK (starts_at >= '0001-01-01 00:00Z' AND starts_at < '10000-01-01 00:00Z') NOT VALID;
ALTER TABLE cron_records ADD CONSTRAINT cron_records_readable CHECK (isfinite(slot)) NOT VALID;

-- +goose Down
ALTER TABLE cron_records DROP CONSTRAINT cron_records_readable;
ALTER TABLE cron_definitions DROP CONSTRAINT cron_definitions_readable;
ALTER TABLE events_v2 DROP CONSTRAINT events_v2_lock_expires;
