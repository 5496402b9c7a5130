package memstore

import (
	"context"
	"database/sql"
	"strings"
	"time"
	"unicode/utf8"

	"eventsv2/eventqueue"
	"eventsv2/internal/attributes"
)

// Insert implements eventqueue.EmitStore.
func (s *Store) Insert(ctx context.Context, in eventqueue.DB, events []eventqueue.NewEvent, mode eventqueue.NotifyMode) ([]eventqueue.Inserted, error) {
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
		lined := map[group]bool{}
		for i := range events {
			if events[i].UniqueKey != "" {
				if id, holds := tx.holder(keyOf(&events[i]), now); holds {
					inserted = append(inserted, eventqueue.Inserted{ID: id, Repeat: true})
					continue
				}
			}
			row := newRow(&events[i], now, mode)
			heard := alone(&events[i]) || !lined[row.groupAt(stageKey)]
			if !heard { // the end of the one before it has it notified
				row.NotifiedAt = now
			}
			lined[row.groupAt(stageKey)] = lined[row.groupAt(stageKey)] || !alone(&events[i])
			s.db.lastEvent++
			row.ID = s.db.lastEvent
			tx.write(row.ID, &row)
			if row.Group == groupWaiting {
				tx.writePlace(placeID{row.ID, stageKey}, &place{group: row.groupAt(stageKey)})
			}
			tx.wake = tx.wake || mode != eventqueue.NotifyModeSelf
			if events[i].UniqueKey != "" {
				tx.name(keyOf(&events[i]), row.ID)
			}
			inserted = append(inserted, eventqueue.Inserted{ID: row.ID, MustNotify: heard && !row.NotifiedAt.IsZero()})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return inserted, nil
}

// InsertSQL returns ErrNoSQL.
func (s *Store) InsertSQL(context.Context, *sql.Tx, []eventqueue.NewEvent, eventqueue.NotifyMode) ([]eventqueue.Inserted, error) {
	return nil, ErrNoSQL
}

// alone reports whether an event gets a notification of its own even if others are inserted
// into its group together with it.
func alone(e *eventqueue.NewEvent) bool {
	return e.OrderingKey == "" || e.UniqueKey != "" || e.Delay != 0 || !e.DelayUntil.IsZero()
}

func newRow(e *eventqueue.NewEvent, now time.Time, mode eventqueue.NotifyMode) Row {
	due := now.Add(roundUp(e.Delay))
	if !e.DelayUntil.IsZero() {
		due = e.DelayUntil.Add(time.Microsecond - 1).Truncate(time.Microsecond)
	}
	row := Row{
		Canvas: e.Canvas, Module: e.Module, Name: e.Name, Modifier: e.Modifier, Value: string(e.Value),
		DelayUntil: latest(due, now), EnqueuedAt: now, UniqueFor: wholeSeconds(e.UniqueFor),
		Attributes: attributes.Encode(e.Attributes), Parent: e.ParentID,
	}
	if row.OrderingKey = e.OrderingKey; e.OrderingKey != "" {
		row.Group = groupLater
		if !row.DelayUntil.After(now) {
			row.Group = groupWaiting
		}
	}
	if mode == eventqueue.NotifyModeSelf && !row.DelayUntil.After(now.Add(eventqueue.MaxRequeue)) {
		row.NotifiedAt = now
	}
	return row
}

// checkTexts refuses texts that a text column refuses. As in Postgres, all arguments of an
// operation are checked before it has any effect.
func checkTexts(texts ...string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			return refusal("22021", `invalid byte sequence for encoding "UTF8"`)
		}
	}
	return nil
}

// roundUp rounds a delay up to the database's unit, so that it never becomes shorter (I6).
func roundUp(d time.Duration) time.Duration {
	return (d + time.Microsecond - 1).Truncate(time.Microsecond)
}

// latest returns the greatest() of times. A zero time stands for NULL and does not count.
func latest(times ...time.Time) (t time.Time) {
	for _, other := range times {
		if other.After(t) {
			t = other
		}
	}
	return t
}
