-- Events that wait can be cancelled: they end in event_log as CANCELLED, with their value.
-- Locks: none on tables. The way down locks event_log, ACCESS EXCLUSIVE, and writes all of
-- its rows.

-- +goose Up
ALTER TYPE event_log_status ADD VALUE 'CANCELLED';

-- +goose Down
-- Versions before this one know an event that can be retried as FAILED.
ALTER TYPE event_log_status RENAME TO event_log_status_before;
CREATE TYPE event_log_status AS ENUM ('COMPLETED', 'FAILED');
UPDATE event_log SET last_error = 'cancelled by an operator' WHERE status = 'CANCELLED';
ALTER TABLE event_log ALTER COLUMN status TYPE event_log_status
    USING (CASE status::text WHEN 'COMPLETED' THEN 'COMPLETED' ELSE 'FAILED' END)::event_log_status;
DROP TYPE event_log_status_before;
