package memstore

import (
	"context"
	"time"

	"eventsv2/eventqueue/locktimeout"
)

// AgreeOnLockTimeout implements locktimeout.Store.
func (s *Store) AgreeOnLockTimeout(ctx context.Context, own time.Duration) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if s.db.lockTimeout == 0 {
		if s.db.lockTimeout = own; own == 0 {
			s.db.lockTimeout = locktimeout.Default
		}
	}
	return s.db.lockTimeout, nil
}
