package main

import (
	"context"
	"time"

	"eventsv2/internal/backoff"
	"eventsv2/test/oracle"
)

// A statement that takes a millisecond on a machine that has time. Where it takes slowAnswer, one of
// a program, which does more, may take longer than the program waits for it, which is half of a lock:
// a lock of three seconds is lost then, and what held it runs again, as it does when the machine stands still.
// So it is when a pause of this program lasts so much longer than it should: all programs wait for a processor then.
const (
	probeEvery = 100 * time.Millisecond
	slowAnswer = 300 * time.Millisecond
	slowAfter  = 5 * time.Second // of a lock that was lost, until its event runs again
	probeSQL   = `SELECT txid_current()`
)

// watchMachine excuses what runs again because the machine was too busy. It asks the Postgres of the
// stage, which no scenario attacks, until the rig is closed.
func (r *rig) watchMachine(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	stopped := make(chan struct{})
	slow := 0
	go func() {
		defer close(stopped)
		for ctx.Err() == nil {
			began := time.Now()
			_, err := r.stage.admin.Exec(ctx, probeSQL)
			backoff.Sleep(ctx, probeEvery)
			if ctx.Err() == nil && (err != nil || time.Since(began) > probeEvery+slowAnswer) {
				slow++
				r.fault(oracle.LostDatabase, "", began.Add(-slowAnswer), time.Now().Add(slowAfter))
			}
		}
	}()
	r.OnCleanup(func(context.Context) error {
		stop()
		<-stopped
		if slow > 0 {
			r.figure("machine_slow=%d", slow)
		}
		return nil
	})
}
