package main

import (
	"context"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/test/services"
)

// ownPostgres gives the scenario a server that it may end, which waits for its disk.
func (r *rig) ownPostgres(ctx context.Context, options ...services.Option) *services.Service {
	postgres, err := services.Postgres(ctx, append(options, services.Private(), services.Durable())...)
	r.must(err)
	r.OnCleanup(postgres.Stop)
	r.must(makeQueue(ctx, postgres.URL))
	r.databaseURL = postgres.URL
	r.db, err = pgxpool.New(ctx, postgres.URL)
	r.must(err)
	r.OnCleanup(func(context.Context) error { r.db.Close(); return nil })
	r.must(r.openEmitter(ctx))
	return postgres
}

// restart starts a Postgres that has ended.
func (r *rig) restart(ctx context.Context, postgres *services.Service) {
	r.must(postgres.Restart(ctx))
	r.db.Reset() // its connections are of the dead server
}

// forgets is how long ago the last commit was at most that a Postgres forgets which does not wait
// for its disk: three times wal_writer_delay.
const (
	walWriterDelay = time.Second
	forgets        = 3 * walWriterDelay
)

// stopWALWriter has the process stand still that writes to the disk what commits did not wait for.
func (r *rig) stopWALWriter(ctx context.Context) (pid int) {
	pid = int(r.number(ctx, `SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'`))
	r.must(syscall.Kill(pid, syscall.SIGSTOP))
	return pid
}

// unwrittenSQL is how many bytes of commits are not on the disk.
const unwrittenSQL = `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), pg_current_wal_flush_lsn())::bigint`
