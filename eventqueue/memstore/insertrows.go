package memstore

import (
	"context"
	"time"

	"eventsv2/eventqueue"
)

// InsertedRow is a row as it was written with a plain INSERT into events_v2, with the documented
// columns only. A zero time stands for the default of its column.
type InsertedRow struct {
	Canvas     eventqueue.CanvasID
	Module     string
	Name       string
	Modifier   string
	Value      string
	Retries    int32
	DelayUntil time.Time
	EnqueuedAt time.Time
	LockedAt   time.Time
}

// The bounds of the table's constraints.
var locksExpireBefore = time.Date(3000, time.January, 1, 0, 0, 0, 0, time.UTC)

const maxCount = 1_000_000_000

// InsertRows inserts rows as plain SQL does, all or none, and returns their ids in order. It
// sends no notification: the relay has to find the events. It refuses rows that the table's
// constraints refuse.
func (s *Store) InsertRows(ctx context.Context, rows []InsertedRow) (ids []eventqueue.EventID, err error) {
	err = s.inTx(ctx, nil, OpInsertRows, func(tx *Tx) error {
		now := s.db.now()
		for i := range rows {
			r := &rows[i]
			if err := checkTexts(r.Module, r.Name, r.Modifier, r.Value); err != nil {
				return err
			}
			s.db.lastEvent++ // a refused row uses up a number as well
			if r.Retries < 0 || r.Retries > maxCount || !r.LockedAt.Before(locksExpireBefore) {
				return refusal("23514", "new row for relation \"events_v2\" violates a check constraint")
			}
			row := Row{Canvas: r.Canvas, Module: r.Module, Name: r.Name, Modifier: r.Modifier, Value: r.Value, Retries: r.Retries,
				DelayUntil: orNow(r.DelayUntil, now), EnqueuedAt: orNow(r.EnqueuedAt, now), LockedAt: r.LockedAt}
			row.ID = s.db.lastEvent
			tx.write(row.ID, &row)
			ids = append(ids, row.ID)
		}
		return nil
	})
	return resultOf(ids, err)
}

// orNow returns t, or now for a zero time, as DEFAULT now() does.
func orNow(t, now time.Time) time.Time {
	if t.IsZero() {
		return now
	}
	return t
}
