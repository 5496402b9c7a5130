-- Rules: an index of those that hold back less than a whole handler, and times that no program can read are refused.
-- Locks: scheduling_rules, ACCESS EXCLUSIVE, while an index is built and it is read twice more; it has a row per rule.
-- Claims read that table: they wait that long.

-- +goose Up

LOCK TABLE scheduling_rules IN ACCESS EXCLUSIVE MODE;

-- The rules for one modifier, for a prefix, or lifted at a rate. There are few, if any, and a claim asks for them.
CREATE INDEX scheduling_rules_narrow ON scheduling_rules (canvas_id, event_space)
    WHERE prefix OR modifier <> '' OR released_to IS NOT NULL;

-- I15: only SQL can write times that no program can read. Existing ones are replaced, since otherwise no statement could
-- update their rows: created_at by the present time, and released_at by a second before, so that what the rate allows in
-- a second is released at once. until may be infinity: such a rule has no end.
UPDATE scheduling_rules SET created_at = DEFAULT
WHERE NOT (created_at >= '0001-01-01' AND created_at < '10000-01-01');
UPDATE scheduling_rules SET released_at = clock_timestamp() - interval '1 s'
WHERE NOT (released_at >= '0001-01-01 00:00Z' AND released_at < '10000-01-01 00:00Z');
-- NOT VALID: the rows were corrected above, so the table need not be read once more.
ALTER TABLE scheduling_rules ADD CONSTRAINT scheduling_rules_readable CHECK (
    created_at >= '0001-01-01' AND created_at < '10000-01-01'
    AND (released_at IS NULL OR released_at >= '0001-01-01 00:00Z' AND released_at < '10000-01-01 00:00Z')) NOT VALID;

-- +goose Down
ALTER TABLE scheduling_rules DROP CONSTRAINT scheduling_rules_readable;
DROP INDEX scheduling_rules_narrow;
