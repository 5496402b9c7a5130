package main

import (
	"context"
	"fmt"
	"time"

	"eventsv2/internal/backoff"
	"eventsv2/test/attack/harness"
)

// fault is one kind of attack.
type fault struct {
	what string
	do   func(a *attacker, ctx context.Context) error
}

// frozenFor is longer than a lock lasts.
const frozenFor = lockTimeout + 3*time.Second

// downFor is how long a server stays down.
const downFor = 2 * time.Second

// rotation are the faults in their order. What is frozen changes, so that the
// long-lived programs have to live through it as well.
func rotation() []fault {
	return []fault{
		{"kill -9 of " + juniorWorker, (*attacker).killJunior},
		{"SIGSTOP of " + juniorWorker + " past its locks", freeze(juniorWorker)},
		{"kill -9 of Postgres", (*attacker).killPostgres},
		{"all connections to Postgres cut", (*attacker).cutConnections},
		{"kill -9 of the emulator, which loses everything", (*attacker).killEmulator},
		{"SIGTERM and restart of " + juniorWorker, (*attacker).restartJunior},
		{"SIGSTOP of " + longLivedWorker + " past its locks", freeze(longLivedWorker)},
		{"kill -9 of " + juniorWorker, (*attacker).killJunior},
		{"SIGSTOP of " + longLivedLibrary + " past its locks", freeze(longLivedLibrary)},
		{"kill -9 of Postgres", (*attacker).killPostgres},
		{"kill -9 of the emulator, which loses everything", (*attacker).killEmulator},
		{"all connections to Postgres cut", (*attacker).cutConnections},
		{"SIGSTOP of " + longLivedCron + " past its locks", freeze(longLivedCron)},
	}
}

// attacker carries out the rotation, one fault after the other.
type attacker struct {
	*stage
	counts map[string]int // by kind; read when run has ended
}

// run attacks in each interval, first in the middle of the first one, until ctx
// ends; then everything is repaired. An error means that something could not be
// repaired.
func (a *attacker) run(ctx context.Context, every time.Duration) error {
	began := time.Now()
	for n := 0; ; n++ {
		if !backoff.Sleep(ctx, time.Until(began.Add(every/2+time.Duration(n)*every))) {
			return nil
		}
		f := rotation()[n%len(rotation())]
		a.Progress.Report("fault %d: %s", n+1, f.what)
		if err := f.do(a, ctx); err != nil {
			return fmt.Errorf("%s: %w", f.what, err)
		}
		a.counts[f.what]++
	}
}

func (a *attacker) total() int {
	sum := 0
	for _, n := range a.counts {
		sum += n
	}
	return sum
}

func (a *attacker) killJunior(context.Context) error {
	a.fleet.Process(juniorWorker).Kill()
	return a.start(juniorWorker)
}

func (a *attacker) restartJunior(context.Context) error {
	if err := a.fleet.Process(juniorWorker).Stop(stopLimit); err != nil {
		return err
	}
	return a.start(juniorWorker)
}

// freeze stops a process until its locks have expired, less when ctx ends.
func freeze(name string) func(*attacker, context.Context) error {
	return func(a *attacker, ctx context.Context) error {
		harness.Freeze(ctx, a.fleet.Process(name), frozenFor)
		return nil
	}
}

func (a *attacker) killPostgres(ctx context.Context) error { return a.Postgres.Crash(ctx, downFor) }
func (a *attacker) killEmulator(ctx context.Context) error { return a.Emulator.Crash(ctx, downFor) }

const cutSQL = `
SELECT count(pg_terminate_backend(pid))
  FROM pg_stat_activity
 WHERE backend_type = 'client backend'
   AND pid <> pg_backend_pid()`

func (a *attacker) cutConnections(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	var n int
	// The first try may hit a connection that an earlier fault has cut.
	err := a.pool.QueryRow(ctx, cutSQL).Scan(&n)
	if err != nil {
		err = a.pool.QueryRow(ctx, cutSQL).Scan(&n)
	}
	return err
}
