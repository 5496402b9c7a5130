-- Runs: what completed an event is kept in the history with how long it took, and a failed attempt with the stack of its panic.
-- Locks: event_log and event_attempts, ACCESS EXCLUSIVE, for a moment.

-- +goose Up
ALTER TABLE event_log
    ADD COLUMN duration interval, -- of the run that completed the event; NULL: none did, or it is not known
    ADD COLUMN worker bigint;     -- of that run: event_workers.number; NULL: unknown

ALTER TABLE event_attempts
    ADD COLUMN stack text;        -- of a handler that panicked; NULL: it did not

-- +goose Down
ALTER TABLE event_attempts DROP COLUMN stack;
ALTER TABLE event_log DROP COLUMN worker, DROP COLUMN duration;
