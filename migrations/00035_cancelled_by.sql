-- Who cancelled an event and why, and how many events were cancelled in a minute.
-- Locks: event_log, event_minutes and event_hours, ACCESS EXCLUSIVE, for a moment (no row is read or
-- written). Ends of events wait that long.

-- +goose Up

-- NULL unless the event was cancelled and it is known. A row without them is no longer for it.
ALTER TABLE event_log
    ADD COLUMN reason text,
    ADD COLUMN actor text;
ALTER TABLE event_minutes ADD COLUMN cancelled bigint NOT NULL DEFAULT 0; -- events that an operator cancelled
ALTER TABLE event_hours ADD COLUMN cancelled bigint NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE event_hours DROP COLUMN cancelled;
ALTER TABLE event_minutes DROP COLUMN cancelled;
ALTER TABLE event_log DROP COLUMN actor, DROP COLUMN reason;
