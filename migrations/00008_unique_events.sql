-- Unique events: which event a key of a canvas stands for, and for how long after
-- its end.
-- Locks: events_v2, ACCESS EXCLUSIVE, for a moment (no row is written).

-- +goose Up

-- How long the key of an event holds after its end; 0 costs its end nothing. Not
-- NULL: a row that is claimed has no NULLs, and would need room for the map of them.
-- Half of its page would not be enough for its next version then, and one claim in
-- twenty was no HOT update.
ALTER TABLE events_v2 ADD COLUMN unique_seconds integer NOT NULL DEFAULT 0;

CREATE TABLE unique_keys (
    canvas_id uuid   NOT NULL,
    key       text   COLLATE "C" NOT NULL,
    event_id  bigint, -- NULL only within the transaction that makes the row

    -- One event per key: who comes second waits here for the first.
    CONSTRAINT unique_keys_pkey PRIMARY KEY (canvas_id, key)
)
-- Room for the event that follows an expired one (a HOT update).
WITH (fillfactor = 80);

-- The ends of events whose keys still hold. Apart from the keys, so that nobody
-- who emits in a long transaction is in the way of an end.
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
