package pgsession

import (
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// closeTakes bounds how long Close waits for connections to end.
const closeTakes = 100 * time.Millisecond

// Close closes a pool, and returns soon also when the server does not answer, for which the driver
// would wait for up to 15 s per connection. Such connections end by themselves, in the background.
func Close(pool *pgxpool.Pool) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		pool.Close()
	}()
	timer := time.NewTimer(closeTakes)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
}
