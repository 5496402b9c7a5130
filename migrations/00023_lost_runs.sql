-- A claim that has counted a lost run is remembered until a run begins or the event is
-- given a wait: a claimant that gives the claim back must not make the event forget that
-- its last run was lost (I9).
-- Locks: events_v2, ACCESS EXCLUSIVE, for a moment (no row is written).

-- +goose Up
ALTER TABLE events_v2 ADD COLUMN lost_run boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE events_v2 DROP COLUMN lost_run;
