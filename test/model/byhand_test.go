package model_test

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"pgregory.net/rapid"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memstore"
)

const insertRowSQL = `
INSERT INTO events_v2 (canvas_id, module, name, modifier, value, retries, delay_until, enqueued_at, locked_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
RETURNING id`

// insertRows writes rows as somebody does by hand who knows the documented columns, with
// whatever the table's constraints let in, and now and then with what they refuse.
func (w *world) insertRows(t *rapid.T) {
	rows := make([]memstore.InsertedRow, rapid.IntRange(1, 3).Draw(t, "rows"))
	for i := range rows {
		rows[i] = memstore.InsertedRow{
			Canvas: pick(t, "canvas", append(canvases, eventqueue.CanvasID{})), Module: pick(t, "module", modules), Name: pick(t, "name", names),
			Modifier: pick(t, "modifier", modifiers), Value: pick(t, "value", []string{"", "null", "no JSON", `{"n": 1}`}),
			Retries:    pick(t, "retries", []int32{0, 1, 7, 1_000_000, -1, 1_000_000_001}),
			DelayUntil: w.now.Add(pick(t, "until", durations)),
			EnqueuedAt: w.now.Add(pick(t, "enqueued", durations) - time.Hour).Truncate(time.Microsecond),
		}
		rows[i].DelayUntil = pick(t, "due", []time.Time{longAgo, w.now, rows[i].DelayUntil}).Truncate(time.Microsecond)
		if rapid.IntRange(0, 2).Draw(t, "locked") == 2 {
			centuries := time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)
			rows[i].LockedAt = pick(t, "lockedAt", []time.Time{longAgo, w.now, w.now.Add(-time.Minute), w.now.Add(time.Hour), centuries, centuries.AddDate(1, 0, 0)})
		}
	}
	pg, pgErr := w.insertRowsByHand(rows)
	mem, memErr := w.mem.InsertRows(w.ctx, rows)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "InsertRows", pg, mem)
	for _, id := range pg {
		w.lastID = max(w.lastID, id)
	}
}

func (w *world) insertRowsByHand(rows []memstore.InsertedRow) (ids []eventqueue.EventID, err error) {
	err = pgx.BeginFunc(w.ctx, w.pool, func(tx pgx.Tx) error {
		for _, r := range rows {
			var id eventqueue.EventID
			locked := pgtype.Timestamptz{Time: r.LockedAt, Valid: !r.LockedAt.IsZero()}
			if err := tx.QueryRow(w.ctx, insertRowSQL, [16]byte(r.Canvas), r.Module, r.Name, r.Modifier, r.Value, r.Retries,
				r.DelayUntil, r.EnqueuedAt, locked).Scan(&id); err != nil {
				return err
			}
			ids = append(ids, id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}
