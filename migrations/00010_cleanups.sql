-- Cleanups: how to delete what handlers have published, one row per publication.
-- Locks: none on existing tables (everything here is new).

-- +goose Up
CREATE TABLE cleanups (
    id          bigint      GENERATED ALWAYS AS IDENTITY,
    canvas_id   uuid        NOT NULL,
    component   text        COLLATE "C" NOT NULL, -- the code that published, and can delete
    topic       text        COLLATE "C" NOT NULL, -- the key of the configuration
    inputs_hash text        COLLATE "C" NOT NULL, -- SHA-256 of the chosen inputs, or 'none'

    -- The event whose handler publishes. While it is in events_v2 the row belongs to it,
    -- and no other event cleans it up. NULL: put by hand.
    event_id    bigint,
    -- The token by which the publisher finds its publication.
    token       uuid        NOT NULL DEFAULT gen_random_uuid(),
    -- The data with which the publication can be deleted. NULL: an intent, written before
    -- publishing; it is not known (yet) whether the publication was sent.
    data        bytea,
    -- The event whose handler deletes the publication, or tried to. While it is in
    -- events_v2 no other event deletes it.
    cleaned_by  bigint,

    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at  timestamptz NOT NULL,

    CONSTRAINT cleanups_pkey PRIMARY KEY (id),
    -- One publication per key and event. Its index finds all rows of a key, too.
    CONSTRAINT cleanups_once UNIQUE (canvas_id, component, topic, inputs_hash, event_id),
    CONSTRAINT cleanups_intent CHECK (data IS NOT NULL OR event_id IS NOT NULL)
);

-- +goose Down
DROP TABLE cleanups;
