package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// A key that another event has reserved since the page was read is left; a locked one is
// skipped.
const deleteKeysSQL = `
WITH page AS MATERIALIZED (
    SELECT canvas_id, key, event_id
    FROM unique_keys
    WHERE (canvas_id, key) > ($1::uuid, $2::text)
    ORDER BY canvas_id, key
    LIMIT $3
), free AS MATERIALIZED (
    SELECT k.version
    FROM page
    CROSS JOIN LATERAL (
        SELECT page.event_id || ARRAY(SELECT h.heir_id FROM unique_heirs h WHERE h.event_id = page.event_id) AS ids OFFSET 0) AS holders
    CROSS JOIN LATERAL (
        SELECT k.ctid AS version FROM unique_keys k
        WHERE k.canvas_id = page.canvas_id AND k.key = page.key AND k.event_id IS NOT DISTINCT FROM page.event_id
          AND NOT EXISTS (SELECT FROM events_v2 e WHERE e.id = ANY (holders.ids))
          AND NOT EXISTS (SELECT FROM unique_expiries u WHERE u.event_id = ANY (holders.ids) AND u.expires_at > clock_timestamp())
        FOR UPDATE SKIP LOCKED) AS k
), gone AS (
    DELETE FROM unique_keys k WHERE k.ctid = ANY (ARRAY(SELECT version FROM free)) RETURNING k.event_id
), heirs AS (
    DELETE FROM unique_heirs h WHERE h.event_id = ANY (ARRAY(SELECT event_id FROM gone)) RETURNING h.heir_id
), expiries AS (
    DELETE FROM unique_expiries u WHERE u.event_id = ANY (ARRAY(SELECT event_id FROM gone UNION ALL SELECT heir_id FROM heirs))
), last AS (
    SELECT canvas_id, key FROM page ORDER BY canvas_id DESC, key DESC LIMIT 1
)
SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM page), (SELECT canvas_id FROM last), (SELECT key FROM last)`

// DeleteKeys implements maintenance.UniqueStore.
func (s *Store) DeleteKeys(ctx context.Context, after eventqueue.UniqueKey, limit int) (deleted int, next eventqueue.UniqueKey, err error) {
	var seen int
	var canvas *[16]byte
	var key *string
	err = s.run(ctx, skipping, query{
		forms:     forms{skips: deleteKeysSQL},
		arguments: []any{[16]byte(after.Canvas), after.Key, limit},
		read: func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&deleted, &seen, &canvas, &key}, func() error { return nil })
			return err
		},
	})
	if err != nil || seen < limit || canvas == nil {
		return deleted, eventqueue.UniqueKey{}, err
	}
	return deleted, eventqueue.UniqueKey{Canvas: *canvas, Key: *key}, nil
}
