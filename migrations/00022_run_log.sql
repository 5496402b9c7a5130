-- Logs of runs: the last that a handler has logged with the context of its run, for applications that attach it.
-- Locks: event_log and event_attempts, ACCESS EXCLUSIVE, for a moment.

-- +goose Up

-- Lines of text, of 8 KiB or less.
CREATE DOMAIN event_run_log AS text;

ALTER TABLE event_log ADD COLUMN run_log event_run_log; -- of the run that ended the event; NULL: none
ALTER TABLE event_attempts ADD COLUMN run_log event_run_log; -- NULL: none

-- +goose Down
ALTER TABLE event_attempts DROP COLUMN run_log;
ALTER TABLE event_log DROP COLUMN run_log;
DROP DOMAIN event_run_log;
