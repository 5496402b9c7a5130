-- Cron definitions, and one record per slot that was emitted.
-- Locks: none on existing tables (everything here is new).

-- +goose Up
CREATE TYPE cron_missed_policy AS ENUM ('latest', 'all', 'none');

CREATE TABLE cron_definitions (
    id         bigint             GENERATED ALWAYS AS IDENTITY,
    canvas_id  uuid               NOT NULL,
    name       text               NOT NULL,
    schedule   text               NOT NULL,
    time_zone  text               NOT NULL DEFAULT 'UTC',
    missed     cron_missed_policy NOT NULL DEFAULT 'latest',
    enabled    boolean            NOT NULL DEFAULT true,

    -- Slots before this time get no event. It is set when the definition is added,
    -- changed or enabled again.
    starts_at  timestamptz        NOT NULL DEFAULT now(),
    created_at timestamptz        NOT NULL DEFAULT now(),

    CONSTRAINT cron_definitions_pkey PRIMARY KEY (id),
    CONSTRAINT cron_definitions_once UNIQUE (canvas_id, name)
);

CREATE TABLE cron_records (
    cron_id    bigint      NOT NULL REFERENCES cron_definitions ON DELETE CASCADE,
    slot       timestamptz NOT NULL, -- the time that was due
    event_id   bigint      NOT NULL, -- the event that was emitted for it
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),

    -- I10: at most one event per (cron, slot), with any number of checkers.
    CONSTRAINT cron_records_pkey PRIMARY KEY (cron_id, slot)
);

-- +goose Down
DROP TABLE cron_records;
DROP TABLE cron_definitions;
DROP TYPE cron_missed_policy;
