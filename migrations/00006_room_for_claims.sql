-- Every page has room for a new version of each of its rows, since a claim takes all rows
-- of a page at once. Without that room three of four claims are no HOT updates, and write
-- both indexes. Only pages that are written from now on have the room.
-- Locks: events_v2, SHARE UPDATE EXCLUSIVE, for a moment.

-- +goose Up
ALTER TABLE events_v2 SET (fillfactor = 50);

-- +goose Down
ALTER TABLE events_v2 SET (fillfactor = 80);
