package check

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
)

// CronEvidence is what is known of the cron definition of the run.
type CronEvidence struct {
	ID       int64
	StartsAt time.Time
	Until    time.Time // slots up to this time must be there
	Records  []cronRecord
}

type cronRecord struct {
	slot  time.Time
	event eventqueue.EventID
	at    time.Time
}

// Slots lists the minutes that were due.
func (e CronEvidence) Slots() []time.Time {
	var slots []time.Time
	for at := e.StartsAt.UTC().Truncate(time.Minute).Add(time.Minute); !at.After(e.Until); at = at.Add(time.Minute) {
		slots = append(slots, at)
	}
	return slots
}

const readCronSQL = `
SELECT slot, event_id, created_at
  FROM cron_records
 WHERE cron_id = $1`

// Read reads which slots are on record.
func (e *CronEvidence) read(ctx context.Context, pool *pgxpool.Pool) error {
	rows, err := pool.Query(ctx, readCronSQL, e.ID)
	if err != nil {
		return fmt.Errorf("read cron_records: %w", err)
	}
	e.Records, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r cronRecord, err error) {
		err = row.Scan(&r.slot, &r.event, &r.at)
		return r, err
	})
	if err != nil {
		return fmt.Errorf("read cron_records: %w", err)
	}
	return nil
}
