package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/operate"
)

// startRelay starts a program with a relay and a cron checker.
func (w *world) startRelay(slot int) {
	w.incarnation++
	p := w.newProcess(fmt.Sprintf("c%d.%d", slot+1, w.incarnation))
	w.relays[slot] = p
	p.restart = func() {
		w.startRelay(slot)
		w.note("start %s", w.relays[slot].name)
	}
	port := &relayPort{port: p.store(), rests: w.never()}
	relay, err := maintenance.NewRelay(port, port, maintenance.RelayConfig{
		Interval: relayInterval, LostAfter: lostAfter, PublishTimeout: 5 * time.Second, Jitter: p.jitter,
	})
	if err != nil {
		panic(err)
	}
	checker, err := cronchecker.New(cronPort{cronchecker.NewPostgres(p.db.Pool(), p.queue), p.store()}, cronchecker.Config{
		Interval: time.Minute, PassTimeout: 30 * time.Second, Jitter: p.jitter, Backoff: p.backoff(30 * time.Second),
	})
	if err != nil {
		panic(err)
	}
	rules, err := operate.NewRules(p.store(), p.queue)
	if err != nil {
		panic(err)
	}
	p.run(func(ctx context.Context) {
		var parts sync.WaitGroup
		parts.Go(func() { _ = relay.Run(ctx) })       // it returns nil
		parts.Go(func() { _ = rules.RunExpiry(ctx) }) // so does this
		parts.Go(func() { p.sweepGrids(ctx) })
		parts.Go(func() {
			cronCtx, stop := context.WithDeadline(ctx, w.cronStop)
			defer stop()
			_ = checker.Run(cronCtx) // it returns nil
		})
		parts.Wait()
	})
}

// defineCrons makes a definition for each policy, all due every minute.
func (w *world) defineCrons() {
	store := cronchecker.NewDefinitions(w.tables.pool)
	for _, policy := range crons {
		definition := cronchecker.NewDefinition{Canvas: eventqueue.CanvasID{9}, Name: string(policy), Schedule: "every minute", Missed: policy}
		if _, err := store.Add(context.Background(), definition, false); err != nil {
			panic(err)
		}
	}
}

// cronPort is the database as a cron checker sees it. The statements of its Emit pass the gate as those of any transaction.
type cronPort struct {
	*cronchecker.Postgres
	port *port
}

// Load implements cronchecker.Store.
func (s cronPort) Load(ctx context.Context) (snapshot cronchecker.Snapshot, err error) {
	err = s.port.do(ctx, "Cron.Load", "", func() (string, error) {
		snapshot, err = s.Postgres.Load(ctx)
		return "", err
	})
	return onlyIf(snapshot, err), err
}
