-- Events carry attributes, and know the event whose handler emitted them; the history has
-- both. Existing events have neither, and their rows are not rewritten. What has neither is
-- not larger than before when it is inserted, into either table, since there are NULLs in
-- such a row anyway. A claim leaves none in a row without these columns, and eight bytes
-- more for the bitmap of NULLs in a row with them.
-- Locks: events_v2 and event_log, ACCESS EXCLUSIVE. No row is written, but each of the two
-- tables is read once, for an index that begins empty.

-- +goose Up
-- attributes is a flat object of strings. parent_id may name an event that has ended, or
-- one that no table knows any more.
ALTER TABLE events_v2 ADD COLUMN attributes jsonb, ADD COLUMN parent_id bigint;
ALTER TABLE event_log ADD COLUMN attributes jsonb, ADD COLUMN parent_id bigint;

-- Room for the claims of all rows of a page: the shortest row takes 120 bytes when it is
-- inserted and 144 when it is claimed, each with a pointer of 4. A page that was filled by
-- half lacks room for the claims of its last rows, which go to other pages: the old row is
-- locked and two indexes are written, 280 bytes of WAL. Only pages that are written from now on
-- have the room.
ALTER TABLE events_v2 SET (fillfactor = 45);

-- The children of an event. Only children cost an entry.
CREATE INDEX events_v2_parent ON events_v2 (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX event_log_parent ON event_log (parent_id) WHERE parent_id IS NOT NULL;

-- +goose Down
DROP INDEX event_log_parent;
DROP INDEX events_v2_parent;
ALTER TABLE events_v2 SET (fillfactor = 50);
ALTER TABLE event_log DROP COLUMN attributes, DROP COLUMN parent_id;
ALTER TABLE events_v2 DROP COLUMN attributes, DROP COLUMN parent_id;
