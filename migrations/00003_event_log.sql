-- The history: how events ended. FAILED events always, COMPLETED ones if they are retained.
-- Locks: none on existing tables (everything here is new).

-- +goose Up
CREATE TYPE event_log_status AS ENUM ('COMPLETED', 'FAILED');

CREATE TABLE event_log (
    id          bigint           NOT NULL, -- of the event
    canvas_id   uuid             NOT NULL,
    module      text             NOT NULL,
    name        text             NOT NULL,
    modifier    text             NOT NULL,
    value       text             NOT NULL,
    status      event_log_status NOT NULL,
    retries     integer          NOT NULL,
    attempts    integer          NOT NULL,
    last_error  text,                      -- NULL when COMPLETED
    enqueued_at timestamptz      NOT NULL,
    created_at  timestamptz      NOT NULL DEFAULT clock_timestamp(),

    -- I1, I9: an event ends once.
    CONSTRAINT event_log_pkey PRIMARY KEY (id)
);

-- +goose Down
DROP TABLE event_log;
DROP TYPE event_log_status;
