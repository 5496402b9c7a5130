-- Logs of runs: the last that a handler has logged with the context of its run, for applications that attach it.
-- Locks: event_log and event_attempts, ACCESS EXCLUSIVE, for a moment.

-- +goose Up

ALTER TABLE event_log ADD COLUMN run_log text; -- of the run that ended the event; NULL: none
ALTER TABLE event_attempts ADD COLUMN run_log text; -- NULL: none

-- +goose Down
ALTER TABLE event_attempts DROP COLUMN run_log;
ALTER TABLE event_log DROP COLUMN run_log;
