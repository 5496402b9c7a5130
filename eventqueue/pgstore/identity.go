package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Identity is that of the queue, by which its notifications can be told from those of another one. It is empty where the
// lock timeout of the database is not yet agreed on.
func (s *Store) Identity(ctx context.Context) (identity string, err error) {
	err = s.pool.QueryRow(ctx, `SELECT queue_id::text FROM events_v2_settings`).Scan(&identity)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
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
