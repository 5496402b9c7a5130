-- The outputs of the complete actions of a grid's run, so that the run can continue where
-- it stopped.
-- Locks: none on existing tables (everything here is new).

-- +goose Up
CREATE TABLE grid_outputs (
    event_id   bigint      NOT NULL, -- the run
    action     text        COLLATE "C" NOT NULL,
    canvas_id  uuid        NOT NULL,
    -- The action when it ran: the hash of its definition and of the definitions of the
    -- actions whose outputs it used.
    definition bytea       NOT NULL,
    attempt    integer     NOT NULL, -- the claim under which it ran
    output     text,                 -- JSON; NULL: the action was skipped
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),

    -- An action completes once per run.
    CONSTRAINT grid_outputs_pkey PRIMARY KEY (event_id, action)
);

-- +goose Down
DROP TABLE grid_outputs;
