-- Which claim a lock belongs to, and whether its run has begun.
-- Locks: events_v2, ACCESS EXCLUSIVE, for a moment (no row is written).

-- +goose Up

-- claim_id: a random number that the claimant gave to the last claim. Together with attempts
-- it is the fence (I5): after a crash with synchronous_commit = off a claim may be lost, and
-- the next one has the same attempts. NULL: claimed by a program older than this column.
-- begun: the run of that claim is known to have begun. A claim that expires without it may
-- never have run, and uses no attempt (I18).
-- begin_first: a claim of this event has expired without begun. From then on the beginning of
-- each run is recorded before the run, so that an event that kills its workers ends (I9).
-- In this order the columns fill the padding up to the next multiple of eight bytes.
ALTER TABLE events_v2
    ADD COLUMN begun       boolean NOT NULL DEFAULT false,
    ADD COLUMN begin_first boolean NOT NULL DEFAULT false,
    ADD COLUMN claim_id    bigint;

-- events_v2_turns takes expired locks away as a claim does, and counts as one does.
-- +goose StatementBegin
DO $do$
DECLARE
    old CONSTANT text := 'locked_at = NULL, retries = e.retries + (e.locked_at IS NOT NULL)::int';
    new CONSTANT text := 'locked_at = NULL, retries = e.retries + (e.locked_at IS NOT NULL AND e.begun)::int, begin_first = e.begin_first OR e.locked_at IS NOT NULL AND NOT e.begun';
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
    old CONSTANT text := 'locked_at = NULL, retries = e.retries + (e.locked_at IS NOT NULL)::int';
    new CONSTANT text := 'locked_at = NULL, retries = e.retries + (e.locked_at IS NOT NULL AND e.begun)::int, begin_first = e.begin_first OR e.locked_at IS NOT NULL AND NOT e.begun';
BEGIN
    EXECUTE replace(pg_get_functiondef('events_v2_turns'::regproc), new, old);
END
$do$;
-- +goose StatementEnd
ALTER TABLE events_v2 DROP COLUMN claim_id, DROP COLUMN begin_first, DROP COLUMN begun;
