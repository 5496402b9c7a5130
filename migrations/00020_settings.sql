-- Settings that all programs of a database share: one truth instead of one in each
-- program's environment.
-- Locks: none on existing tables (everything here is new).

-- +goose Up
CREATE TABLE events_v2_settings (
    one boolean NOT NULL DEFAULT true,

    -- How long a lock is valid without being renewed. Written by the first program that
    -- starts, or by eventctl; without a row none has.
    lock_timeout interval NOT NULL,

    -- What it was before a change, as long as programs may run that renew their locks in
    -- its time: locks are judged by the longer of the two.
    lock_timeout_before interval,

    CONSTRAINT events_v2_settings_pkey PRIMARY KEY (one),
    CONSTRAINT events_v2_settings_one CHECK (one),
    CONSTRAINT events_v2_settings_times CHECK (lock_timeout BETWEEN interval '1 second' AND interval '30 days'
        AND lock_timeout_before BETWEEN interval '1 second' AND interval '30 days')
);

-- Whoever judges a lock reads it.
GRANT SELECT ON events_v2_settings TO PUBLIC;

-- +goose Down
DROP TABLE events_v2_settings;
