package main

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/test/testenv"
)

// answerStart is twice what is promised for an event after a single failure.
const answerStart = 4 * time.Second

// relayAnswersLost has the relay take pending notifications by statements that commit, and whose answers are cut
// off or never come.
func relayAnswersLost(ctx context.Context, r *rig) {
	between, stop, err := testenv.OpenProxy(hostOf(r.databaseURL))
	r.must(err)
	defer stop()
	through, err := url.Parse(r.databaseURL)
	r.must(err)
	through.Host = between.Address
	cron := r.cron(ctx, map[string]string{"DATABASE_URL": through.String()})
	r.worker(ctx, "worker", nil)
	backoff.Sleep(ctx, workerLooks) // a worker that looks by itself would do the relay's work
	inTransaction := func(ctx context.Context, events []eventqueue.NewEvent) (ids []eventqueue.EventID, err error) {
		err = pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
			pending, err := r.emitter.EmitTx(ctx, tx, events...)
			if err == nil {
				ids = pending.IDs
			}
			return err
		})
		return ids, err
	}
	losses := 0
	for i, silent := range []bool{false, true, false, true, false, true} {
		// The relay takes all that one transaction has left, and nobody else writes so many rows.
		b := batch{label: fmt.Sprintf("take_%d", i), n: 31 + i, canvas: byte(i)}
		lost := between.Lose(fmt.Sprintf("UPDATE %d\x00", b.n), silent)
		r.emitBy(ctx, b, inTransaction)
		if !r.awaitDone(ctx, b.label, 90*time.Second) {
			return
		}
		select {
		case <-lost:
			losses++
		default: // the worker, which looks for a while after each loss, was first
		}
		r.punctual(b.label, 1, answerStart)
	}
	if losses < 3 {
		r.failf("%d answers of the relay were lost: the scenario shows nothing", losses)
	}
	r.figure("lost=%d", losses)
	if !cron.Running() {
		r.failf("cron ended: %s", cron.LastWords())
	}
}
