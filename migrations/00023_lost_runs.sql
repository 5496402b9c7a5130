-- lost_run records that a claim has counted a lost run, until a run begins or the event is
-- delayed. A claimant that gives its claim back must not delete the information that the
-- last run was lost (I9).
-- Locks: events_v2, ACCESS EXCLUSIVE, for a moment (no row is written).

-- +goose Up
ALTER TABLE events_v2 ADD COLUMN lost_run boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE events_v2 DROP COLUMN lost_run;
