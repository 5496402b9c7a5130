-- Snoozes: how often an event has been snoozed in a row, so that a policy can bound it.
-- Locks: events_v2, ACCESS EXCLUSIVE, for a moment (no row is written or read).

-- +goose Up

-- It fits into the padding between existing columns, so rows are no longer than before. A
-- snooze adds one, and a failed attempt sets it to 0.
ALTER TABLE events_v2
    ADD COLUMN snoozes smallint NOT NULL DEFAULT 0,
    ADD CONSTRAINT events_v2_snoozes CHECK (snoozes >= 0) NOT VALID;

-- +goose Down
ALTER TABLE events_v2 DROP COLUMN snoozes;
