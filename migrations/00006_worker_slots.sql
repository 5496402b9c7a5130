-- Workers: how they are occupied.
-- Locks: event_workers, ACCESS EXCLUSIVE, while an index is built. It has a row per worker of the last days.

-- +goose Up

-- Written with the heartbeats of a worker that has something in hand, so as they were some seconds ago; NULL: unknown.
ALTER TABLE event_workers
    ADD COLUMN slots        integer,     -- how many events it may hold at once
    ADD COLUMN busy         integer,     -- how many it holds
    ADD COLUMN hung         integer,     -- of how many the handlers have not returned though their time is over
    ADD COLUMN oldest_since timestamptz, -- since when it has held the one that it has held for longest
    -- I15: only SQL can write times that no program can read.
    ADD CONSTRAINT event_workers_readable CHECK (oldest_since >= '0001-01-01 00:00Z' AND oldest_since < '10000-01-01 00:00Z') NOT VALID;

-- The workers that have not stopped: a worker asks for them when it gets events whose handlers it does not have.
CREATE INDEX event_workers_running ON event_workers (number) WHERE stopped_at IS NULL;

-- +goose Down
DROP INDEX event_workers_running;
ALTER TABLE event_workers DROP CONSTRAINT event_workers_readable,
    DROP COLUMN slots, DROP COLUMN busy, DROP COLUMN hung, DROP COLUMN oldest_since;
