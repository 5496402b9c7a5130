package grid

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
)

// SweeperConfig configures a Sweeper. The zero value is ready to use.
type SweeperConfig struct {
	// Interval is the time between two passes. Default (0): 1 hour.
	Interval time.Duration

	// Schema is the schema of the queue. Default (""): public.
	Schema pgsession.Schema

	// Logger gets an info line for a pass that has removed outputs, and a warning for
	// one that has failed. Default (nil): none.
	Logger *zap.Logger
}

// Sweeper removes the outputs of runs that can no longer continue: their event is
// neither in the queue nor in event_log as FAILED, from where it could be retried. So the
// outputs of a failed run stay as long as its entry in the history. Completed runs leave
// no outputs behind. Any number of sweepers may run at once.
type Sweeper struct {
	db     eventqueue.DB
	config SweeperConfig
}

// NewSweeper makes a Sweeper; Run starts it. db must be on the queue's database.
func NewSweeper(db eventqueue.DB, config SweeperConfig) (*Sweeper, error) {
	if db == nil {
		return nil, errors.New("grid.NewSweeper: the database must not be nil")
	}
	if config.Interval < 0 {
		return nil, fmt.Errorf("grid.NewSweeper: Interval is %s: it must not be negative", config.Interval)
	}
	if config.Interval == 0 {
		config.Interval = time.Hour
	}
	if config.Logger == nil {
		config.Logger = zap.NewNop()
	}
	return &Sweeper{db: config.Schema.On(db), config: config}, nil
}

// Run does a pass at once and then one in each interval, until ctx ends; then it
// returns nil. A failed pass is logged, and the next one begins at its usual time: the
// only effect is that the outputs stay in the database for longer.
func (s *Sweeper) Run(ctx context.Context) error {
	for {
		removed, err := s.Pass(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			s.config.Logger.Warn("could not remove old outputs of grids; nothing is lost", zap.Duration(logWait, s.config.Interval), zap.Error(err))
		case removed > 0:
			s.config.Logger.Info("removed old outputs of grids", zap.Int(logCount, removed))
		}
		select {
		case <-time.After(s.config.Interval*9/10 + rand.N(s.config.Interval/5+1)):
		case <-ctx.Done():
			return nil
		}
	}
}

const (
	// sweepRuns is how many runs one statement checks, sweepTakes bounds it.
	sweepRuns  = 500
	sweepTakes = 30 * time.Second
)

// An event that is being retried leaves event_log and enters events_v2 in one
// transaction, so a snapshot finds it in one of them.
const sweepSQL = `
WITH page AS MATERIALIZED (
    SELECT DISTINCT event_id FROM grid_outputs
    WHERE event_id > $1
    ORDER BY event_id
    LIMIT $2
), removed AS (
    DELETE FROM grid_outputs o
    USING page p
    WHERE o.event_id = p.event_id
      AND NOT EXISTS (SELECT FROM events_v2 e WHERE e.id = p.event_id)
      AND NOT EXISTS (SELECT FROM event_log l WHERE l.id = p.event_id AND l.status = 'FAILED')
    RETURNING o.event_id
)
SELECT (SELECT count(*) FROM removed), (SELECT count(*) FROM page), (SELECT coalesce(max(event_id), 0) FROM page)`

// Pass checks all runs that have outputs, page by page, and returns how many outputs
// it has removed, even if it fails. Run calls it in its loop.
func (s *Sweeper) Pass(ctx context.Context) (removed int, err error) {
	for last := int64(0); ; {
		count, runs, upTo, err := s.page(ctx, last)
		if err != nil {
			return removed, fmt.Errorf("remove old outputs of grids: %w", err)
		}
		removed += count
		if runs < sweepRuns {
			return removed, nil
		}
		last = upTo
	}
}

func (s *Sweeper) page(ctx context.Context, last int64) (removed, runs int, upTo int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTakes)
	defer cancel()
	err = s.db.QueryRow(ctx, sweepSQL, last, sweepRuns).Scan(&removed, &runs, &upTo)
	return removed, runs, upTo, err
}
