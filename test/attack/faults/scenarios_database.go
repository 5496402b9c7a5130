package main

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/internal/backoff"
	"eventsv2/test/oracle"
)

func databaseScenarios() []scenario {
	return []scenario{
		{"postgres-read-only", "a database that becomes read-only during a drain, and writes again, loses and doubles nothing", 60 * time.Second, readOnlyForAWhile},
		{"features-other-defaults", "limits, ordering groups, chains and unique keys keep their promises whatever the database's defaults are", 90 * time.Second, func(ctx context.Context, r *rig) {
			otherDefaults(ctx, r)
			features(pausedForAWhile)(ctx, r)
		}},
	}
}

// setDatabase changes settings of the scenario's database and cuts all connections to it, since
// those that are open go on with what they began with.
func (r *rig) setDatabase(ctx context.Context, settings ...string) {
	var name string
	r.must(r.db.QueryRow(ctx, `SELECT current_database()`).Scan(&name))
	for _, setting := range settings {
		_, err := r.stage.admin.Exec(ctx, `ALTER DATABASE `+pgx.Identifier{name}.Sanitize()+` `+setting)
		r.must(err)
	}
	_, err := r.stage.admin.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1`, name)
	r.must(err)
	r.db.Reset()
}

// readOnlyForAWhile has the database be as after a failover to a replica that does not write yet.
func readOnlyForAWhile(ctx context.Context, r *rig) {
	settings := impatient("5s")
	programs := []*program{r.cron(ctx, settings), r.worker(ctx, "worker", settings), r.embed(ctx, "app", settings)}
	r.target.behave("work", takes(50*time.Millisecond))
	r.emit(ctx, batch{label: "before", n: 1000})
	// Five seconds at least, so that they are not over when the database becomes read-only.
	r.emit(ctx, batch{label: "lines", n: 400, canvas: groupCanvas, key: func(i int) string { return strconv.Itoa(i % 4) }})
	if !r.eventually(ctx, startLimit, func() bool { return r.begun("before") >= 200 }) {
		r.fatalf("%d events have begun, want 200", r.begun("before"))
	}
	from := time.Now()
	r.setDatabase(ctx, `SET default_transaction_read_only = on`)
	backoff.Sleep(ctx, 8*time.Second)
	if left := r.number(ctx, `SELECT count(*) FROM events_v2`); left == 0 {
		r.failf("all events had ended before the database was read-only: the scenario shows nothing")
	}
	r.setDatabase(ctx, `RESET default_transaction_read_only`)
	r.fault(oracle.LostDatabase, "", from, time.Now().Add(time.Second))
	back := time.Now()
	r.awaitDone(ctx, "before", 60*time.Second)
	r.awaitDone(ctx, "lines", 60*time.Second)
	r.inOrder("lines")
	r.figure("caught_up=%.1fs", time.Since(back).Seconds())
	for _, p := range programs {
		if !p.Running() {
			r.failf("%s ended with status %d: %s", p.Name, p.Status, p.LastWords())
		}
	}
	r.emit(ctx, batch{label: "after", n: 100, every: 10 * time.Millisecond})
	r.awaitDone(ctx, "after", startLimit)
}

// otherDefaults gives the database defaults under which other programs work, and with which
// a queue that relied on those of Postgres would break its promises.
func otherDefaults(ctx context.Context, r *rig) {
	r.setDatabase(ctx, `SET default_transaction_isolation = 'repeatable read'`, `SET default_transaction_deferrable = on`,
		`SET idle_in_transaction_session_timeout = '1s'`, `SET statement_timeout = '2s'`, `SET synchronous_commit = off`,
		`SET search_path = pg_catalog, public`, `SET TimeZone = 'Asia/Kathmandu'`, `SET DateStyle = 'German, DMY'`, `SET IntervalStyle = 'sql_standard'`,
		`SET enable_indexscan = off`, `SET jit_above_cost = 0`, `SET work_mem = '64kB'`, `SET temp_file_limit = 0`)
}
