-- Two indexes for the relay: of the events that were put off, to find those that are due
-- however many are not, and of the events that were running when their worker died, to find
-- them in a table of any size.
-- Locks: events_v2, SHARE (writes wait), while it is read twice.

-- +goose Up

-- Neither has an entry for an event that runs at once, and for a shorter time than the
-- interval in which workers renew locks.
CREATE INDEX events_v2_put_off ON events_v2 (canvas_id, module, name, delay_until) WHERE delay_until > enqueued_at AND notified_at IS NOT NULL;
CREATE INDEX events_v2_begun ON events_v2 (id) WHERE begun;

-- +goose Down
DROP INDEX events_v2_begun;
DROP INDEX events_v2_put_off;
