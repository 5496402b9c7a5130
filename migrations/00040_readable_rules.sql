-- Times of rules that no program can work with, and that only SQL can write, are refused. Existing ones are
-- replaced by the present time: nothing else can be known of them. Other existing rows are not checked.
-- Locks: scheduling_rules, ACCESS EXCLUSIVE, while it is read once; it has a row per rule. Claims read that
-- table: they wait that long.

-- +goose Up

LOCK TABLE scheduling_rules IN ACCESS EXCLUSIVE MODE;
UPDATE scheduling_rules SET created_at = DEFAULT
WHERE NOT (created_at >= '0001-01-01' AND created_at < '10000-01-01');
-- A second ago: what one second allows may be released at once.
UPDATE scheduling_rules SET released_at = clock_timestamp() - interval '1 s'
WHERE NOT (released_at >= '0001-01-01 00:00Z' AND released_at < '10000-01-01 00:00Z');
-- until may be infinity: the rule then has no end.
ALTER TABLE scheduling_rules ADD CONSTRAINT scheduling_rules_readable CHECK (
    created_at >= '0001-01-01' AND created_at < '10000-01-01'
    AND (released_at IS NULL OR released_at >= '0001-01-01 00:00Z' AND released_at < '10000-01-01 00:00Z')) NOT VALID;

-- +goose Down
ALTER TABLE scheduling_rules DROP CONSTRAINT scheduling_rules_readable;
