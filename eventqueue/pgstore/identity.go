package pgstore

import (
	"context"
	"fmt"
)

// Identity identifies the queue, so that its notifications can be distinguished from another one's. It is empty where the
// lock timeout of the database is not yet agreed on.
func (s *Store) Identity(ctx context.Context) (identity string, err error) {
	err = s.pool.QueryRow(ctx, `SELECT coalesce(events_v2_queue_id()::text, '')`).Scan(&identity)
	if err != nil {
		return "", fmt.Errorf("read the identity of the queue: %w", err)
	}
	return identity, nil
}

// NoteForeign records that notifications of another queue came, for the overview.
func (s *Store) NoteForeign(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `UPDATE events_v2_settings SET foreign_at = clock_timestamp()`)
	return err
}
