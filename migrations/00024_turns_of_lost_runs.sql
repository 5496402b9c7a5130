-- Who takes an expired lock away with its turn, and counts the run as failed, says so in
-- lost_run as a claim does: an event that has lost the last run that it was allowed ends
-- because of that, and for no other reason (I9).
-- Locks: none (a function is replaced).

-- +goose Up
-- +goose StatementBegin
DO $do$
DECLARE
    old CONSTANT text := 'retries = e.retries + (e.locked_at IS NOT NULL AND e.begun)::int, begin_first';
    new CONSTANT text := 'retries = e.retries + (e.locked_at IS NOT NULL AND e.begun)::int, lost_run = e.lost_run OR e.locked_at IS NOT NULL AND e.begun, begin_first';
    definition text := pg_get_functiondef('events_v2_turns'::regproc);
BEGIN
    IF strpos(definition, old) = 0 THEN
        RAISE EXCEPTION 'events_v2_turns is not as the migrations before this one have made it: it lacks "%"', old;
    END IF;
    EXECUTE replace(definition, old, new);
END
$do$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
DO $do$
DECLARE
    old CONSTANT text := 'retries = e.retries + (e.locked_at IS NOT NULL AND e.begun)::int, begin_first';
    new CONSTANT text := 'retries = e.retries + (e.locked_at IS NOT NULL AND e.begun)::int, lost_run = e.lost_run OR e.locked_at IS NOT NULL AND e.begun, begin_first';
BEGIN
    EXECUTE replace(pg_get_functiondef('events_v2_turns'::regproc), new, old);
END
$do$;
-- +goose StatementEnd
