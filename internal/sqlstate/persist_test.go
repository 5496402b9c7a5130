package sqlstate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/internal/sqlstate"
)

func TestPersistTriesUntilItIsTakenRefusedOrOutOfTime(t *testing.T) {
	t.Parallel()
	refused, passing := &pgconn.PgError{Code: "23505"}, &pgconn.PgError{Code: "57P01"}
	for name, c := range map[string]struct {
		fails        int // tries, each with err
		err          error
		ends, beyond time.Duration // of the context, and what Persist has after that
		tries        int
		fine         bool
	}{
		"taken at once":                          {0, nil, time.Minute, 0, 1, true},
		"taken after an outage":                  {5, passing, time.Minute, 0, 6, true},
		"refused":                                {5, refused, time.Minute, time.Minute, 1, false},
		"tried once after the end":               {5, passing, 0, 0, 1, false},
		"taken after the end":                    {5, passing, 0, time.Second, 6, true},
		"an outage of all the time":              {1000, passing, 1900 * time.Millisecond, time.Second, 16, false},
		"an outage that began long before":       {12, passing, 1900 * time.Millisecond, time.Second, 13, true},
		"a try that hangs is cut off, and again": {1, context.DeadlineExceeded, time.Minute, 0, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.ends)
				defer cancel()
				tries := 0
				err := sqlstate.Persist(ctx, c.beyond, func(ctx context.Context) error {
					tries++
					if deadline, bounded := ctx.Deadline(); !bounded || time.Until(deadline) > 5*time.Second || ctx.Err() != nil {
						t.Errorf("try %d has until %v, %v", tries, deadline, ctx.Err())
					}
					switch {
					case tries > c.fails:
						return nil
					case errors.Is(c.err, context.DeadlineExceeded):
						<-ctx.Done()
						return ctx.Err()
					default:
						return c.err
					}
				})
				if tries != c.tries || (err == nil) != c.fine || err != nil && !errors.Is(err, c.err) {
					t.Errorf("%d tries, %v; want %d", tries, err, c.tries)
				}
			})
		})
	}
}
