-- Cancelling what runs: an event may have a cancellation that an operator asked for while a worker ran it.
-- Locks: events_v2, ACCESS EXCLUSIVE, for a moment: emits, claims and ends wait.

-- +goose Up

-- Why an event is cancelled, and by whom; both may be empty. Whether there is one is asked with IS DISTINCT FROM NULL, as IS NOT NULL of a row asks
-- each of its fields.
CREATE TYPE event_cancellation AS (reason text, actor text);

-- The cancellation of an event that a worker ran when it was asked for; NULL: none. The worker learns of it with its heartbeat and ends the run. It stays
-- until the event ends, so that whoever claims the event next, as after the death of that worker, ends it without a run.
ALTER TABLE events_v2 ADD COLUMN cancellation event_cancellation;

-- +goose Down
ALTER TABLE events_v2 DROP COLUMN cancellation;
DROP TYPE event_cancellation;
