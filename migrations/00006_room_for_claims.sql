-- Room on every page for the new version of each row on it, for a claim takes all
-- rows of a page at once: without it three of four claims are no HOT updates, and
-- write both indexes. Only pages that are written from now on have the room.
-- Locks: events_v2, SHARE UPDATE EXCLUSIVE, for a moment.

-- +goose Up
ALTER TABLE events_v2 SET (fillfactor = 50);

-- +goose Down
ALTER TABLE events_v2 SET (fillfactor = 80);
