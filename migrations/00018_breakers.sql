-- Workers: which of their circuit breakers are open.
-- Locks: event_workers, ACCESS EXCLUSIVE, while an index is built. It has a row per worker of the last days.

-- +goose Up

-- Written with the heartbeats, as slots is: [{"module", "name", "modifier", "canvas_id", "since", "error"}, …]; NULL: none is open.
ALTER TABLE event_workers ADD COLUMN breakers jsonb;

-- Workers with open ones, of which there are mostly none.
CREATE INDEX event_workers_breakers ON event_workers (number) WHERE breakers IS NOT NULL;

-- +goose Down
DROP INDEX event_workers_breakers;
ALTER TABLE event_workers DROP COLUMN breakers;
