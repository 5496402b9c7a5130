-- Failures: failed and cancelled events are found by their end, by their handler and by their id, however many have completed.
-- Locks: event_log, SHARE, while it is read three times: workers that write how events ended wait that long.

-- +goose Up

-- No completed event is in these indexes, so that what a worker writes for one stays as it is.
CREATE INDEX event_log_ended ON event_log (status, created_at, id) WHERE status <> 'COMPLETED';
CREATE INDEX event_log_handler ON event_log (canvas_id, module, name, status, created_at, id) WHERE status <> 'COMPLETED';
CREATE INDEX event_log_status ON event_log (status, id) WHERE status <> 'COMPLETED';

-- +goose Down
DROP INDEX event_log_status;
DROP INDEX event_log_handler;
DROP INDEX event_log_ended;
