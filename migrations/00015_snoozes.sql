-- Snoozes: how often an event has been snoozed in a row, so that a policy can bound it.
-- Locks: events_v2, ACCESS EXCLUSIVE, for a moment (no row is written or read).

-- +goose Up

-- Fits between the columns that are there: a row is no longer than before. A snooze adds
-- one, a failed attempt sets it to 0.
ALTER TABLE events_v2
    ADD COLUMN snoozes smallint NOT NULL DEFAULT 0,
    ADD CONSTRAINT events_v2_snoozes CHECK (snoozes >= 0) NOT VALID;

-- +goose Down
ALTER TABLE events_v2 DROP COLUMN snoozes;
