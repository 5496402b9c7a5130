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
			if err := checkTexts(e.Module, e.Name, e.Modifier, e.UniqueKey, e.OrderingKey, string(e.Value)); err != nil {
				return err
			}
		}
		if err := tx.lockKeys(ctx, events); err != nil {
			return err
		}
		now := s.db.now()
		lined := map[orderingLine]bool{}
		for i := range events {
			if events[i].UniqueKey != "" {
				if id, holds := tx.holder(keyOf(&events[i]), now); holds {
					inserted = append(inserted, eventqueue.Inserted{ID: id, Repeat: true})
					continue
				}
			}
			row := newRow(&events[i], now, announce)
			heard := alone(&events[i]) || !lined[row.orderingLine()]
			if !heard { // the end of the one before it has it notified
				row.NotifiedAt = now
			}
			lined[row.orderingLine()] = lined[row.orderingLine()] || !alone(&events[i])
			s.db.lastEvent++
			row.ID = s.db.lastEvent
			tx.write(row.ID, &row)
			tx.wake = tx.wake || announce == eventqueue.AnnounceRelay
			if events[i].UniqueKey != "" {
				tx.name(keyOf(&events[i]), row.ID)
			}
			inserted = append(inserted, eventqueue.Inserted{ID: row.ID, Announced: heard && !row.NotifiedAt.IsZero()})
		}
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

// alone tells that an event gets a notification of its own, whatever others go into
// its line with it.
func alone(e *eventqueue.NewEvent) bool {
	return e.OrderingKey == "" || e.UniqueKey != "" || e.Delay != 0 || !e.DelayUntil.IsZero()
}

func newRow(e *eventqueue.NewEvent, now time.Time, announce eventqueue.Announce) Row {
	due := now.Add(roundUp(e.Delay))
	if !e.DelayUntil.IsZero() {
		due = e.DelayUntil.Add(time.Microsecond - 1).Truncate(time.Microsecond)
	}
	row := Row{
		Canvas: e.Canvas, Module: e.Module, Name: e.Name, Modifier: e.Modifier, Value: string(e.Value),
		DelayUntil: latest(due, now), EnqueuedAt: now, UniqueFor: wholeSeconds(e.UniqueFor),
	}
	if row.OrderingKey = e.OrderingKey; e.OrderingKey != "" {
		row.Line = lineLater
		if !row.DelayUntil.After(now) {
			row.Line = lineWaits
		}
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
