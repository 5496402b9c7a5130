-- Wake-ups: one function for all of them, which leaves them out while the server's queue of notifications fills up, and on request.
-- Locks: none that anybody waits for.

-- +goose Up

-- How full the server's queue of notifications may be for wake-ups to be sent. Postgres has one queue for all databases, of
-- 8 GB, and one session that listens and stays in its transaction keeps all of it. When it is full, a transaction
-- that has notified cannot commit, so whoever has other work in that transaction must not notify long before.
CREATE FUNCTION events_v2_notify_limit() RETURNS double precision
LANGUAGE sql STABLE
RETURN CASE WHEN pg_catalog.current_setting('events_v2.notify_limit', true) ~ '^(0|1|0\.[0-9]+)$'
    THEN pg_catalog.current_setting('events_v2.notify_limit', true)::double precision ELSE 0.5 END;

-- Wakes whoever listens, unless that could cost the transaction, or the setting events_v2.wake_up is off: as in a transaction that is
-- to be prepared, which must not have notified. Nothing but speed depends on a wake-up (I2): who listens polls meanwhile.
-- It returns whether it has notified.
-- +goose StatementBegin
CREATE FUNCTION events_v2_notify(channel text, payload text DEFAULT '') RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF pg_catalog.lower(pg_catalog.current_setting('events_v2.wake_up', true)) IN ('off', 'false', 'no', '0')
        OR pg_catalog.pg_notification_queue_usage() >= events_v2_notify_limit() THEN
        RETURN false;
    END IF;
    PERFORM pg_catalog.pg_notify(channel, payload);
    RETURN true;
END
$$;

-- events_emit_from keeps its owner's settings, such as SECURITY DEFINER.
DO $do$
DECLARE
    schema text := (SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'events_v2'::regclass);
BEGIN
    EXECUTE format('ALTER FUNCTION events_v2_notify SET search_path = pg_catalog, %s, pg_temp', schema);
    EXECUTE replace(pg_get_functiondef('events_emit_from'::regproc), 'PERFORM pg_notify(', 'PERFORM events_v2_notify(');
END
$do$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
DO $do$
BEGIN
    EXECUTE replace(pg_get_functiondef('events_emit_from'::regproc), 'PERFORM events_v2_notify(', 'PERFORM pg_notify(');
END
$do$;
-- +goose StatementEnd
DROP FUNCTION events_v2_notify;
DROP FUNCTION events_v2_notify_limit;
