package memstore

import (
	"context"

	"eventsv2/eventqueue/locktimeout"
)

// ExpireLocks moves the locks so far back that they are as old as the default lock timeout, and no older: some are
// judged by whether they expired before or after the last notification.
func (s *Store) ExpireLocks(context.Context) error {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	for _, r := range s.db.events {
		if !r.LockedAt.IsZero() {
			s.db.update(r, func(row *Row) { row.LockedAt = row.LockedAt.Add(-locktimeout.Default) })
		}
	}
	return nil
}
