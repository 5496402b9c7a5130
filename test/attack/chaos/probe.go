package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/internal/backoff"
	"eventsv2/test/attack/chaos/check"
	"eventsv2/test/oracle"
)

// shiftSQL lets time pass for events that are far off, once they have lain there
// for a while. Nobody else moves a delay of an event that is not locked.
const shiftSQL = `
UPDATE events_v2 e
   SET delay_until = clock_timestamp() + interval '1 second'
  FROM (SELECT id
          FROM events_v2
         WHERE delay_until > clock_timestamp() + interval '300 seconds'
           AND enqueued_at < clock_timestamp() - interval '3 seconds'
           AND locked_at IS NULL
           AND canvas_id <> $1
           AND limited_attempt = 0 -- a rate limit has put it off
         ORDER BY id
           FOR UPDATE SKIP LOCKED) AS far
 WHERE e.id = far.id`

// shift brings far-off events near until ctx ends. What fails is done the next
// time.
func shift(ctx context.Context, pool *pgxpool.Pool, except [16]byte) {
	for ctx.Err() == nil {
		_, _ = pool.Exec(ctx, shiftSQL, except)
		backoff.Sleep(ctx, 2*time.Second)
	}
}

// How often the probe checks, and what it takes for a standstill: much less than
// a lock lasts.
const (
	probeEvery = 100 * time.Millisecond
	standstill = time.Second
)

const probeSQL = `UPDATE chaos_probe SET at = clock_timestamp()`

// probe watches what nobody plans: that the machine has no time for this
// process, or that Postgres takes long for a commit. Both make heartbeats late
// and count as faults. It asks Postgres directly, until ctx ends.
func probe(ctx context.Context, pool *pgxpool.Pool, f *check.Faults) {
	last := time.Now()
	for ctx.Err() == nil {
		backoff.Sleep(ctx, probeEvery)
		now := time.Now()
		if now.Sub(last) > standstill {
			f.Add("standstill of the machine", oracle.Frozen, "", last, now)
		}
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := pool.Exec(limited, probeSQL)
		cancel()
		last = time.Now()
		if took := last.Sub(now); took > standstill && ctx.Err() == nil {
			what := "standstill of Postgres"
			if err != nil {
				what = "Postgres does not answer"
			}
			f.Add(what, oracle.LostDatabase, "", now, last)
		}
	}
}
