-- Who holds a handler back, why, and until when.
-- Locks: scheduling_rules, ACCESS EXCLUSIVE, for a moment (no row is read or written). Claims read
-- that table: they wait that long.

-- +goose Up

-- until: cron lifts the rule then; NULL: it stands until somebody lifts it.
ALTER TABLE scheduling_rules
    ADD COLUMN reason text NOT NULL DEFAULT '',
    ADD COLUMN actor text NOT NULL DEFAULT '',
    ADD COLUMN until timestamptz;

-- +goose Down
ALTER TABLE scheduling_rules DROP COLUMN until, DROP COLUMN actor, DROP COLUMN reason;
