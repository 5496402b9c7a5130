-- The identity of a queue, by which a subscription shows that two queues use it.
-- Locks: events_v2_settings, ACCESS EXCLUSIVE, for a moment; it has one row. Claims read it.

-- +goose Up
ALTER TABLE events_v2_settings
    -- A notification carries it. Copies of a database have the same one, and cannot be told apart.
    ADD COLUMN queue_id uuid NOT NULL DEFAULT gen_random_uuid(),
    -- When a worker last got a notification of another queue.
    ADD COLUMN foreign_at timestamptz;

-- NULL where the programs have not agreed on a lock timeout yet.
CREATE FUNCTION events_v2_queue_id() RETURNS uuid
LANGUAGE sql STABLE
RETURN (SELECT queue_id FROM events_v2_settings);

-- +goose Down
DROP FUNCTION events_v2_queue_id;
ALTER TABLE events_v2_settings DROP COLUMN foreign_at, DROP COLUMN queue_id;
