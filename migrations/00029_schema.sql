-- The functions find the queue's tables whatever the search path of their caller is, and
-- the channels of a queue that is in another schema than public begin with its name.
-- Locks: none on tables.

-- +goose Up

-- The name of a channel in this schema, for NOTIFY and LISTEN.
-- +goose StatementBegin
DO $do$
DECLARE
    home   oid := (SELECT relnamespace FROM pg_class WHERE oid = 'events_v2'::regclass);
    schema text := home::regnamespace::text;
    f      regprocedure;
BEGIN
    EXECUTE format($$
        CREATE FUNCTION events_v2_channel(name text) RETURNS text
        LANGUAGE sql IMMUTABLE
        RETURN %L || name$$, CASE WHEN schema <> 'public' THEN (SELECT nspname || '.' FROM pg_namespace WHERE oid = home) ELSE '' END);
    EXECUTE replace(pg_get_functiondef('events_emit_from'::regproc), $$pg_notify('events_v2_pending', '')$$,
        $$pg_notify(events_v2_channel('events_v2_pending'), '')$$);
    -- Functions whose body is a text look names up when they run.
    FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = home AND p.prosqlbody IS NULL
        AND p.proname IN ('events_v2_advance', 'events_v2_needs_read_committed', 'rate_limit_changed')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %s, pg_temp', f, schema);
    END LOOP;
END
$do$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
DO $do$
BEGIN
    EXECUTE replace(pg_get_functiondef('events_emit_from'::regproc), $$pg_notify(events_v2_channel('events_v2_pending'), '')$$,
        $$pg_notify('events_v2_pending', '')$$);
END
$do$;
-- +goose StatementEnd
ALTER FUNCTION events_v2_advance RESET search_path;
ALTER FUNCTION events_v2_needs_read_committed RESET search_path;
ALTER FUNCTION rate_limit_changed RESET search_path;
DROP FUNCTION events_v2_channel;
