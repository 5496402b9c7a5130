-- Unique events: which event has reserved a key of a canvas, and for how long after its
-- end.
-- Locks: events_v2, ACCESS EXCLUSIVE, for a moment (no row is written).

-- +goose Up

-- How long the key of an event stays reserved after its end; with 0 the end costs nothing
-- more. It is NOT NULL because a claimed row has no NULLs and should not need room for a
-- map of them. With that map half a page was not enough for the next version of its rows,
-- and one claim in twenty was no HOT update.
ALTER TABLE events_v2 ADD COLUMN unique_seconds integer NOT NULL DEFAULT 0;

CREATE TABLE unique_keys (
    canvas_id uuid   NOT NULL,
    key       text   COLLATE "C" NOT NULL,
    event_id  bigint, -- NULL only within the transaction that makes the row

    -- One event per key: a second transaction waits here for the first.
    CONSTRAINT unique_keys_pkey PRIMARY KEY (canvas_id, key)
)
-- Room for the event that follows an expired one (a HOT update).
WITH (fillfactor = 80);

-- The ends of events whose keys are still reserved. They are not in the table of keys, so
-- that an emit in a long transaction never blocks the end of an event.
CREATE TABLE unique_ends (
    event_id       bigint      NOT NULL,
    unique_seconds integer     NOT NULL,
    expires_at     timestamptz NOT NULL,

    CONSTRAINT unique_ends_pkey PRIMARY KEY (event_id)
);

-- +goose Down
DROP TABLE unique_ends;
DROP TABLE unique_keys;
ALTER TABLE events_v2 DROP COLUMN unique_seconds;
