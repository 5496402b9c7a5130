-- The relay finds by index what has been put off and is due, however many are not due yet,
-- and what was running when its worker died, whatever the size of the table.
-- Locks: events_v2, SHARE (writes wait), while it is read twice.

-- +goose Up

-- Neither has an entry of an event that runs at once and for less than a worker takes to
-- renew its locks.
CREATE INDEX events_v2_put_off ON events_v2 (canvas_id, module, name, delay_until) WHERE delay_until > enqueued_at AND notified_at IS NOT NULL;
CREATE INDEX events_v2_begun ON events_v2 (id) WHERE begun;

-- +goose Down
DROP INDEX events_v2_begun;
DROP INDEX events_v2_put_off;
