-- Settings that all programs of a database share, so that they do not depend on the
-- environment of each program.
-- Locks: none on existing tables (everything here is new).

-- +goose Up
CREATE TABLE events_v2_settings (
    one boolean NOT NULL DEFAULT true,

    -- How long a lock is valid without being renewed. Written by the first program that
    -- starts, or by eventctl; without a row none has.
    lock_timeout interval NOT NULL,

    -- The lock timeout before a change, as long as programs may run that still renew their
    -- locks by it: the longer of the two decides whether a lock is valid.
    lock_timeout_before interval,

    CONSTRAINT events_v2_settings_pkey PRIMARY KEY (one),
    CONSTRAINT events_v2_settings_one CHECK (one),
    CONSTRAINT events_v2_settings_times CHECK (lock_timeout BETWEEN interval '1 second' AND interval '30 days'
        AND lock_timeout_before BETWEEN interval '1 second' AND interval '30 days')
);

-- Every program that decides whether a lock is valid reads it.
GRANT SELECT ON events_v2_settings TO PUBLIC;

-- +goose Down
DROP TABLE events_v2_settings;
