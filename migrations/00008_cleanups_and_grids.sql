-- Cleanups and grids: what a frozen run sent late is searched for, and a limit of every ordering key keeps grids in order.
-- Locks: cleanups, ACCESS EXCLUSIVE, for a moment.

-- +goose Up
ALTER TABLE cleanups
    -- Send was called again, after a run that may have been frozen: more may be there than data deletes.
    ADD COLUMN resent boolean NOT NULL DEFAULT false;

-- How many events of a group may run at once; NULL: any number. The limit of every ordering key is not for the instance of a grid,
-- whose inputs run one at a time: a group in which one runs or would be next to run has none of it.
CREATE OR REPLACE FUNCTION events_v2_max_running(stage integer, canvas uuid, group_key text) RETURNS integer
LANGUAGE sql STABLE
RETURN coalesce(
    (SELECT l.max_running FROM concurrency_limits l WHERE l.canvas_id = canvas AND l.group_key = events_v2_max_running.group_key),
    (SELECT l.max_running FROM concurrency_limits l
        WHERE stage = 1 AND l.canvas_id = canvas AND l.group_key = 'keys'
          AND (l.max_running = 1 OR NOT EXISTS (
            SELECT FROM (
                (SELECT g.event_id FROM event_groups g
                    WHERE g.canvas_id = canvas AND g.group_key = events_v2_max_running.group_key AND g.admitted
                    ORDER BY g.canvas_id, g.group_key, g.admitted, g.event_id LIMIT l.max_running)
                UNION ALL
                (SELECT g.event_id FROM event_groups g
                    WHERE g.canvas_id = canvas AND g.group_key = events_v2_max_running.group_key AND NOT g.admitted
                    ORDER BY g.canvas_id, g.group_key, g.admitted, g.event_id LIMIT l.max_running)
            ) AS near
            JOIN events_v2 e ON e.id = near.event_id
            WHERE e.module = 'GRID'))),
    CASE stage WHEN 1 THEN 1 END);

-- +goose Down
CREATE OR REPLACE FUNCTION events_v2_max_running(stage integer, canvas uuid, group_key text) RETURNS integer
LANGUAGE sql STABLE
RETURN coalesce(
    (SELECT l.max_running FROM concurrency_limits l WHERE l.canvas_id = canvas AND l.group_key = events_v2_max_running.group_key),
    (SELECT l.max_running FROM concurrency_limits l WHERE stage = 1 AND l.canvas_id = canvas AND l.group_key = 'keys'),
    CASE stage WHEN 1 THEN 1 END);

ALTER TABLE cleanups DROP COLUMN resent;
