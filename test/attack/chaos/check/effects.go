package check

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/test/attack/record"
)

// AuditSQL makes the record of the database, a table for what handlers write in the transactions that complete
// their events, and one for what asks whether Postgres answers.
const AuditSQL = record.AuditSQL + `
CREATE TABLE chaos_effects (
    event_id bigint  NOT NULL,
    attempt  integer NOT NULL
);

CREATE TABLE chaos_probe (at timestamptz);
INSERT INTO chaos_probe VALUES (now())`

const readEffectsSQL = `
SELECT event_id, attempt
  FROM chaos_effects`

// readEffects reads which attempts of events wrote an effect.
func readEffects(ctx context.Context, pool *pgxpool.Pool) (map[eventqueue.EventID][]int32, error) {
	effects := map[eventqueue.EventID][]int32{}
	var id eventqueue.EventID
	var attempt int32
	rows, _ := pool.Query(ctx, readEffectsSQL) // ForEachRow returns its error
	_, err := pgx.ForEachRow(rows, []any{&id, &attempt}, func() error {
		effects[id] = append(effects[id], attempt)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the effects of transactions: %w", err)
	}
	return effects, nil
}
