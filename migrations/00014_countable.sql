-- Counts that the next claim could not raise any more are refused. Any role that may insert
-- events could write them, and a row that no claim can write is tried again and again.
-- Existing rows with such counts get the highest permitted ones: otherwise no statement could
-- update them, and the relay updates many rows in one statement (I15).
-- Locks: events_v2, while it is read no more than an update of these rows takes, then
-- ACCESS EXCLUSIVE, for a moment (no row is read).

-- +goose Up
UPDATE events_v2 SET attempts = least(attempts, 999999999), retries = least(retries, 999999999)
WHERE attempts > 1000000000 OR retries > 1000000000;
ALTER TABLE events_v2 ADD CONSTRAINT events_v2_countable
    CHECK (attempts <= 1000000000 AND retries <= 1000000000) NOT VALID;

-- +goose Down
ALTER TABLE events_v2 DROP CONSTRAINT events_v2_countable;
