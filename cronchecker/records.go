package cronchecker

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// Record is a slot for which an event was emitted, or that was skipped.
type Record struct {
	Cron      CronID
	Slot      time.Time
	Event     eventqueue.EventID // 0 of a slot that was skipped
	EmittedAt time.Time
	Skipped   Skip
}

const recordsSQL = `
SELECT of.id, r.slot, r.event_id, r.created_at, coalesce(r.skipped, '')
FROM unnest($1::bigint[]) AS of (id)
CROSS JOIN LATERAL (SELECT slot, event_id, created_at, skipped FROM cron_records
    WHERE cron_id = of.id AND isfinite(slot) AND isfinite(created_at) ORDER BY slot DESC LIMIT $2) AS r
ORDER BY of.id, r.slot DESC`

// Records returns the newest n records of each definition, the newest first. Older ones may have been
// pruned.
func (s *Definitions) Records(ctx context.Context, of []CronID, n int) (map[CronID][]Record, error) {
	rows, err := s.db.Query(ctx, recordsSQL, of, n)
	if err != nil {
		return nil, fmt.Errorf("list cron records: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Record])
	if err != nil {
		return nil, fmt.Errorf("list cron records: %w", err)
	}
	records := map[CronID][]Record{}
	for _, r := range list {
		records[r.Cron] = append(records[r.Cron], r)
	}
	return records, nil
}
