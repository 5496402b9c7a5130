package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"eventsv2/eventqueue"
	"eventsv2/test/oracle"
)

// insertedRow is a row of events_v2 that is written with nothing but SQL. A zero time stands for the default of its column.
type insertedRow struct {
	Canvas                           eventqueue.CanvasID
	Module, Name, Modifier, Value    string
	Retries                          int32
	DelayUntil, EnqueuedAt, LockedAt time.Time
}

const insertRowSQL = `
INSERT INTO events_v2 (canvas_id, module, name, modifier, value, retries, delay_until, enqueued_at, locked_at)
VALUES ($1, $2, $3, $4, $5, $6, coalesce($7, clock_timestamp()), coalesce($8, clock_timestamp()), $9)
RETURNING id`

// insert inserts rows, all or none, and returns their ids in order. It sends no notification: the relay has to find the events.
func (t *tables) insert(ctx context.Context, rows []insertedRow) (ids []eventqueue.EventID, err error) {
	batch := &pgx.Batch{}
	for _, r := range rows {
		batch.Queue(insertRowSQL, r.Canvas, r.Module, r.Name, r.Modifier, r.Value, r.Retries,
			zeronull.Timestamptz(r.DelayUntil), zeronull.Timestamptz(r.EnqueuedAt), zeronull.Timestamptz(r.LockedAt)).
			QueryRow(func(r pgx.Row) error {
				var id eventqueue.EventID
				err := r.Scan(&id)
				ids = append(ids, id)
				return err
			})
	}
	return ids, t.pool.SendBatch(ctx, batch).Close()
}

func (s *port) insertByHand(ctx context.Context, rows []insertedRow) error {
	return s.do(ctx, "INSERT by hand", fmt.Sprint(len(rows)), func() (string, error) {
		ids, err := s.p.w.tables.insert(ctx, rows)
		if err != nil {
			return "", err
		}
		w := s.p.w
		w.mu.Lock()
		w.faults["row written by hand"] += len(ids)
		w.mu.Unlock()
		for i, id := range ids {
			r := rows[i]
			w.add(oracle.Record{Kind: oracle.Emitted, Actor: s.p.name, Event: id, Canvas: r.Canvas,
				Handler: eventqueue.HandlerKey{Module: r.Module, Name: r.Name, Modifier: r.Modifier}, Value: r.Value,
				Due: w.row(id).DelayUntil, Retries: int(r.Retries), LockedAt: r.LockedAt, Foreign: r.Name == foreign})
		}
		return fmt.Sprint(ids), nil
	})
}
