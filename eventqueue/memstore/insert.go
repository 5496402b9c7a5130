package memstore

import (
	"context"
	"database/sql"
	"strings"
	"time"
	"unicode/utf8"

	"eventsv2/eventqueue"
)

// Insert implements eventqueue.EmitStore.
func (s *Store) Insert(ctx context.Context, in eventqueue.DB, events []eventqueue.NewEvent, announce eventqueue.Announce) ([]eventqueue.Inserted, error) {
	var inserted []eventqueue.Inserted
	err := s.inTx(ctx, in, OpInsert, func(tx *Tx) error {
		for i := range events {
			e := &events[i]
			if err := checkTexts(e.Module, e.Name, e.Modifier, string(e.Value)); err != nil {
				return err
			}
		}
		now := s.db.now()
		for i := range events {
			row := newRow(&events[i], now, announce)
			s.db.lastEvent++
			row.ID = s.db.lastEvent
			tx.write(row.ID, &row)
			inserted = append(inserted, eventqueue.Inserted{ID: row.ID, Announced: !row.NotifiedAt.IsZero()})
		}
		tx.wake = tx.wake || announce == eventqueue.AnnounceRelay && len(events) > 0
		return nil
	})
	if err != nil {
		return nil, err
	}
	return inserted, nil
}

// InsertSQL returns ErrNoSQL.
func (s *Store) InsertSQL(context.Context, *sql.Tx, []eventqueue.NewEvent, eventqueue.Announce) ([]eventqueue.Inserted, error) {
	return nil, ErrNoSQL
}

func newRow(e *eventqueue.NewEvent, now time.Time, announce eventqueue.Announce) Row {
	due := now.Add(roundUp(e.Delay))
	if !e.DelayUntil.IsZero() {
		due = e.DelayUntil.Add(time.Microsecond - 1).Truncate(time.Microsecond)
	}
	row := Row{
		Canvas: e.Canvas, Module: e.Module, Name: e.Name, Modifier: e.Modifier, Value: string(e.Value),
		DelayUntil: latest(due, now), EnqueuedAt: now,
	}
	if announce == eventqueue.AnnounceSelf && !row.DelayUntil.After(now.Add(eventqueue.MaxRequeue)) {
		row.NotifiedAt = now
	}
	return row
}

// checkTexts refuses what a text column refuses. As in Postgres, all that an
// operation is given is checked before it does anything.
func checkTexts(texts ...string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			return refusal("22021", `invalid byte sequence for encoding "UTF8"`)
		}
	}
	return nil
}

// roundUp keeps a delay from becoming shorter by the database's unit (I6).
func roundUp(d time.Duration) time.Duration {
	return (d + time.Microsecond - 1).Truncate(time.Microsecond)
}

// latest is greatest() of times: zero, which stands for NULL, does not count.
func latest(times ...time.Time) (t time.Time) {
	for _, other := range times {
		if other.After(t) {
			t = other
		}
	}
	return t
}
