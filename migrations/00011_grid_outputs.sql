-- What the finished actions of a grid's run have put out, so that the run goes on
-- where it stopped.
-- Locks: none on existing tables (everything here is new).

-- +goose Up
CREATE TABLE grid_outputs (
    event_id   bigint      NOT NULL, -- the run
    action     text        COLLATE "C" NOT NULL,
    canvas_id  uuid        NOT NULL,
    -- What the action was when it ran: the hash of its definition and of those
    -- that it took from.
    definition bytea       NOT NULL,
    attempt    integer     NOT NULL, -- the claim under which it ran
    output     text,                 -- JSON; NULL: there was nothing to be done
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),

    -- An action finishes once per run.
    CONSTRAINT grid_outputs_pkey PRIMARY KEY (event_id, action)
);

-- +goose Down
DROP TABLE grid_outputs;
