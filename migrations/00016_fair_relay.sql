-- Indexes of the pending notifications, by age and by canvas. When the relay is behind it
-- goes from canvas to canvas, so that no event waits behind a million of another canvas
-- (I20).
-- Locks: events_v2, ACCESS EXCLUSIVE, while it is read twice, once for each index.

-- +goose Up
DROP INDEX events_v2_owed;
CREATE INDEX events_v2_pending ON events_v2 (delay_until, id) WHERE notified_at IS NULL;
CREATE INDEX events_v2_pending_canvas ON events_v2 (canvas_id, delay_until, id) WHERE notified_at IS NULL;

-- +goose Down
DROP INDEX events_v2_pending_canvas;
DROP INDEX events_v2_pending;
CREATE INDEX events_v2_owed ON events_v2 (delay_until) WHERE notified_at IS NULL;
