package memstore

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"eventsv2/eventqueue"
)

// KeyRow is a row of unique_keys.
type KeyRow struct {
	eventqueue.UniqueKey
	Event eventqueue.EventID
}

// EndRow is a row of unique_ends.
type EndRow struct {
	Event     eventqueue.EventID
	UniqueFor time.Duration
	ExpiresAt time.Time
}

// Keys returns a copy of the committed rows of unique_keys, by canvas and key.
func (s *Store) Keys() []KeyRow {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	return s.db.keyRows()
}

func (db *database) keyRows() []KeyRow {
	rows := make([]KeyRow, 0, len(db.keys))
	for key, id := range db.keys {
		rows = append(rows, KeyRow{key, id})
	}
	slices.SortFunc(rows, func(a, b KeyRow) int { return compareKeys(a.UniqueKey, b.UniqueKey) })
	return rows
}

// Ends returns a copy of the committed rows of unique_ends, by event.
func (s *Store) Ends() []EndRow {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	rows := make([]EndRow, 0, len(s.db.ends))
	for _, row := range s.db.ends {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b EndRow) int { return cmp.Compare(a.Event, b.Event) })
	return rows
}

// wholeSeconds rounds up, as the database does.
func wholeSeconds(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

func compareKeys(a, b eventqueue.UniqueKey) int {
	return cmp.Or(bytes.Compare(a.Canvas[:], b.Canvas[:]), cmp.Compare(a.Key, b.Key))
}

func keyOf(e *eventqueue.NewEvent) eventqueue.UniqueKey {
	return eventqueue.UniqueKey{Canvas: e.Canvas, Key: e.UniqueKey}
}

// lockKeys takes the keys of events for a transaction, in their order, and waits
// for the transactions that have them. The lock is held, and given away while it
// waits.
func (tx *Tx) lockKeys(ctx context.Context, events []eventqueue.NewEvent) error {
	var keys []eventqueue.UniqueKey
	for i := range events {
		if events[i].UniqueKey != "" {
			keys = append(keys, keyOf(&events[i]))
		}
	}
	slices.SortFunc(keys, compareKeys)
	db := tx.store.db
	for _, key := range keys {
		for owner := db.keyLocks[key]; owner != nil && owner != tx; owner = db.keyLocks[key] {
			ended := make(chan struct{})
			owner.onEnd = append(owner.onEnd, func(bool) { close(ended) })
			db.mu.Unlock()
			select {
			case <-ended:
			case <-ctx.Done():
			}
			db.mu.Lock()
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := tx.usable(); err != nil {
				return err
			}
		}
		db.keyLocks[key] = tx
	}
	return nil
}

// holder is the event that a key stands for, if it holds.
func (tx *Tx) holder(key eventqueue.UniqueKey, now time.Time) (eventqueue.EventID, bool) {
	id, named := tx.keys[key]
	if !named {
		id, named = tx.store.db.keys[key]
	}
	if !named {
		return 0, false
	}
	if _, queued := tx.row(id); queued {
		return id, true
	}
	end, kept := tx.ends[id]
	if !kept {
		end, kept = tx.store.db.ends[id]
	}
	return id, kept && end.ExpiresAt.After(now)
}

// name has a key stand for a new event.
func (tx *Tx) name(key eventqueue.UniqueKey, id eventqueue.EventID) {
	before, named := tx.keys[key]
	if !named {
		before = tx.store.db.keys[key]
	}
	tx.keys[key] = id
	tx.ends[before] = EndRow{}
}

// stamp keeps the end of an event whose key holds beyond it.
func (tx *Tx) stamp(row *Row, now time.Time) {
	if row.UniqueFor > 0 {
		tx.ends[row.ID] = EndRow{Event: row.ID, UniqueFor: row.UniqueFor, ExpiresAt: now.Add(row.UniqueFor)}
	}
}

// applyKeys writes keys and ends into the tables.
func (tx *Tx) applyKeys() {
	db := tx.store.db
	for key, id := range tx.keys {
		db.keys[key] = id
	}
	for id, end := range tx.ends {
		if end == (EndRow{}) {
			delete(db.ends, id)
		} else {
			db.ends[id] = end
		}
	}
}

// ForgetKeys implements eventqueue.UniqueStore.
func (s *Store) ForgetKeys(ctx context.Context, after eventqueue.UniqueKey, limit int) (forgotten int, next eventqueue.UniqueKey, err error) {
	err = s.atOnce(ctx, OpForgetKeys, func() {
		now, seen := s.db.now(), 0
		for _, row := range s.db.keyRows() {
			if seen == limit || compareKeys(row.UniqueKey, after) <= 0 {
				continue
			}
			if seen++; seen == limit {
				next = row.UniqueKey
			}
			_, queued := s.db.events[row.Event]
			if queued || s.db.ends[row.Event].ExpiresAt.After(now) || s.db.keyLocks[row.UniqueKey] != nil {
				continue
			}
			delete(s.db.keys, row.UniqueKey)
			delete(s.db.ends, row.Event)
			forgotten++
		}
	})
	if err != nil {
		return 0, eventqueue.UniqueKey{}, err
	}
	return forgotten, next, nil
}
