-- Results and progress: what a handler says of its run, while that goes on and when it has completed the event.
-- Locks: events_v2 and event_log, ACCESS EXCLUSIVE, for a moment: emits, claims and ends wait.

-- +goose Up

-- How far a run is, of 0 to 1, with a sentence, and when the worker wrote that. attempt is the claim of the run: under a later one it is outdated.
CREATE TYPE event_progress AS (attempt integer, fraction double precision, note text, at timestamptz);

ALTER TABLE events_v2 ADD COLUMN progress event_progress; -- NULL: no handler has said anything
ALTER TABLE event_log ADD COLUMN result text; -- the result of a COMPLETED event, as JSON; NULL: none

-- +goose Down
ALTER TABLE event_log DROP COLUMN result;
ALTER TABLE events_v2 DROP COLUMN progress;
DROP TYPE event_progress;
