package main

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/test/attack/harness"
	"eventsv2/test/oracle"
	"eventsv2/test/pubsubproxy"
	"eventsv2/test/services"
)

// togetherScenarios have several faults at once.
func togetherScenarios() []scenario {
	return []scenario{
		{"declined-beside-outage", "workers with different handlers leave events to each other while Pub/Sub is down", 40 * time.Second, declinedBesideOutage},
		{"both-down-postgres-first", "Postgres ends and comes back during an outage of Pub/Sub", 70 * time.Second, bothDown(true)},
		{"both-down-pubsub-first", "so it may, and come back after Pub/Sub", 70 * time.Second, bothDown(false)},
		{"everything-at-once", "limits, order, pauses, kill -9 and failing publishes on one canvas keep every promise", 120 * time.Second, everythingAtOnce},
		{"immediate-stop-sync-commit-off", "a stop that forgets the last commits costs these alone", 60 * time.Second, immediateStop},
	}
}

// declinedBesideOutage has each of two workers find events in the database that only the other
// one has the handler of, and a third handler that both have.
func declinedBesideOutage(ctx context.Context, r *rig) {
	r.cron(ctx, nil)
	both := r.handlers
	r.handlers = append(slices.Clone(both), handler("old"))
	r.worker(ctx, "worker-1", nil)
	r.handlers = append(slices.Clone(both), handler("new"))
	r.worker(ctx, "worker-2", nil)
	r.pubsubServer.Set(pubsubproxy.EveryMethod, refuseAll)
	labels := []string{"old", "new", "work"}
	for range 150 {
		for _, name := range labels {
			r.emit(ctx, batch{label: name, n: 1, name: name, every: 10 * time.Millisecond})
		}
	}
	for _, name := range labels {
		r.emit(ctx, batch{label: name + "_crowd", n: 1000, name: name, canvas: 1})
		r.insert(ctx, batch{label: name + "_sql", n: 20, name: name, canvas: 2})
	}
	for _, name := range labels {
		for _, label := range []string{name, name + "_crowd", name + "_sql"} {
			r.awaitDone(ctx, label, time.Minute)
		}
		r.punctual(name, 1, outageStart)
		r.punctual(name+"_crowd", 1, outageStart)
	}
	r.pubsubServer.Heal()
	r.awaitPubSub(ctx)
}

// bothDown ends Postgres while Pub/Sub is down, and has one of them come back before the other.
func bothDown(postgresFirst bool) func(context.Context, *rig) {
	return func(ctx context.Context, r *rig) {
		postgres := r.ownPostgres(ctx)
		settings := impatient("5s")
		programs := []*program{r.cron(ctx, settings), r.worker(ctx, "worker", settings), r.embed(ctx, "app", settings)}
		r.target.behave("work", takes(50*time.Millisecond))
		r.emit(ctx, batch{label: "before", n: 2000})
		if !r.eventually(ctx, startLimit, func() bool { return r.begun("before") >= 200 }) {
			r.fatalf("%d events have begun, want 200", r.begun("before"))
		}
		r.pubsubServer.Set(pubsubproxy.EveryMethod, refuseAll)
		r.emit(ctx, batch{label: "during", n: 50, every: 20 * time.Millisecond})
		r.emit(ctx, batch{label: "crowd", n: 2000, key: func(i int) string { return strconv.Itoa(i % 500) }})
		from := time.Now()
		if r.number(ctx, `SELECT count(*) FROM events_v2`) < 500 {
			r.failf("few events were left when Postgres ended: the scenario shows nothing")
		}
		harness.KillTree(postgres.PID)
		backoff.Sleep(ctx, 6*time.Second) // longer than a lock lasts
		if !postgresFirst {
			r.pubsubServer.Heal()
			backoff.Sleep(ctx, 6*time.Second) // its return is noticed
		}
		r.restart(ctx, postgres)
		r.fault(oracle.LostDatabase, "", from, time.Now().Add(time.Second))
		back := time.Now()
		for _, label := range []string{"before", "during", "crowd"} {
			r.awaitDone(ctx, label, time.Minute)
		}
		r.figure("caught_up=%.1fs", time.Since(back).Seconds())
		r.inOrder("crowd")
		if postgresFirst {
			r.emit(ctx, batch{label: "still", n: 50, every: 20 * time.Millisecond})
			r.awaitDone(ctx, "still", startLimit)
			r.punctual("still", 1, outageStart)
			r.pubsubServer.Heal()
		}
		r.awaitPubSub(ctx)
		for _, p := range programs {
			if !p.Running() {
				r.failf("%s ended with status %d: %s", p.Name, p.Status, p.LastWords())
			}
		}
	}
}

// everySecond fails every second call.
func everySecond() pubsubproxy.Behaviour {
	var calls atomic.Int64
	return func(_ context.Context, pass func() error) error {
		if calls.Add(1)%2 == 0 {
			return status.Error(codes.Unavailable, "try again")
		}
		return pass()
	}
}

// The canvas that has everything at once.
const (
	fullCanvas    byte = 30
	fullPerMinute int  = 60
	fullGroups    int  = 8
)

// everythingAtOnce has a canvas with a concurrency limit, a rate limit and ordering groups, whose
// handler is paused and unpaused, while publishes fail, and a worker dies of kill -9 in a pause and
// another one out of it.
func everythingAtOnce(ctx context.Context, r *rig) {
	settings := impatient("3s")
	r.cron(ctx, settings)
	workers := []*program{r.worker(ctx, "worker-1", settings), r.worker(ctx, "worker-2", settings)}
	r.target.behave("work", takes(150*time.Millisecond))
	of := []string{"--canvas", canvas(fullCanvas).String()}
	ctl := func(args ...string) {
		if text, status := r.ctl(ctx, append(args, of...)...); status != 0 {
			r.fatalf("eventctl %v: %s", args, text)
		}
	}
	pausable := []string{"--module", "WORKER", "--name", "work"}
	ctl("limit", "concurrency", "set", "--max", strconv.Itoa(runningMax))
	ctl("limit", "rate", "set", "--per-minute", strconv.Itoa(fullPerMinute))
	r.pubsubServer.Set("Publish", everySecond())
	keyed := func(i int) string { return strconv.Itoa(i % fullGroups) }
	r.emit(ctx, batch{label: "full", n: 56, canvas: fullCanvas, key: keyed})
	r.insert(ctx, batch{label: "full_sql", n: 20, canvas: fullCanvas})
	stillFor := func() {
		backoff.Sleep(ctx, 2*time.Second) // what was claimed before may begin, and end
		begun := r.begun("full") + r.begun("full_sql")
		backoff.Sleep(ctx, 3*time.Second)
		if now := r.begun("full") + r.begun("full_sql"); now != begun {
			r.failf("%d events began while their handler was paused", now-begun)
		}
	}
	for i, victim := range workers {
		r.emit(ctx, batch{label: "beside", n: 50, canvas: plainCanvas, every: 10 * time.Millisecond})
		begun := r.begun("full")
		if !r.eventually(ctx, untilWindow(3), func() bool { return r.begun("full") > begun }) {
			r.failf("no further event has begun since %d", begun)
		}
		if i == 0 {
			r.kill(victim)
		}
		ctl(append([]string{"pause"}, pausable...)...)
		if i == 1 {
			r.kill(victim)
		}
		r.worker(ctx, "worker-"+strconv.Itoa(3+i), settings)
		stillFor()
		r.emit(ctx, batch{label: "full", n: 12, canvas: fullCanvas, key: keyed})
		ctl(append([]string{"unpause"}, pausable...)...)
	}
	r.emit(ctx, batch{label: "beside", n: 50, canvas: plainCanvas, every: 10 * time.Millisecond})
	r.awaitDone(ctx, "beside", startLimit)
	r.awaitDone(ctx, "full", untilWindow(4)) // 100 events at 60 per minute, and two minutes that the faults cost
	r.awaitDone(ctx, "full_sql", untilWindow(3))
	r.pubsubServer.Heal()
	r.punctual("beside", 1, outageStart)
	r.inOrder("full")
	all := append(r.of("full"), r.of("full_sql")...)
	r.mu.Lock()
	r.labels["canvas"] = all // the limits are of both
	r.mu.Unlock()
	r.atMost("canvas", runningMax)
	r.perMinute("canvas", fullPerMinute, 0)
}

// immediateStop stops a Postgres that commits without waiting for its disk, as pg_ctl stop -m
// immediate does, in the middle of a drain.
func immediateStop(ctx context.Context, r *rig) {
	postgres := r.ownPostgres(ctx, services.Setting("synchronous_commit", "off"),
		services.Setting("wal_writer_delay", strconv.FormatInt(walWriterDelay.Milliseconds(), 10)))
	r.exempt = []string{withoutClaim} // it forgets the last claims, and their record with them
	settings := impatient("3s")
	r.cron(ctx, settings)
	r.worker(ctx, "worker-1", settings)
	r.worker(ctx, "worker-2", settings)
	r.target.behave("work", takes(100*time.Millisecond))
	if text, status := r.ctl(ctx, "limit", "concurrency", "set", "--canvas", canvas(limitedCanvas).String(), "--max", strconv.Itoa(runningMax)); status != 0 {
		r.fatalf("eventctl limit concurrency set: %s", text)
	}
	const lines = 1000 // eight seconds at least
	r.emit(ctx, batch{label: "lines", n: lines, canvas: groupCanvas, key: func(i int) string { return strconv.Itoa(i % 12) }})
	r.emit(ctx, batch{label: "limited", n: 200, canvas: limitedCanvas})
	r.emit(ctx, batch{label: "plain", n: 3000, canvas: plainCanvas})
	backoff.Sleep(ctx, forgets+walWriterDelay) // all of these are on the disk
	if !r.eventually(ctx, startLimit, func() bool { return r.done("lines") >= 50 }) || r.done("lines") > lines-100 {
		r.failf("%d of %d events of ordering groups are done: the scenario shows nothing", r.done("lines"), lines)
	}
	// Just after everything was written to the disk, which comes again after a second.
	if !r.eventually(ctx, startLimit, func() bool { return r.number(ctx, unwrittenSQL) < 10_000 }) {
		r.fatalf("Postgres is never done with writing to its disk")
	}
	writer := r.stopWALWriter(ctx)
	r.emit(ctx, batch{label: "last", n: 40, canvas: plainCanvas}) // more ids than Postgres draws at once
	backoff.Sleep(ctx, walWriterDelay/5)
	from := time.Now()
	r.must(syscall.Kill(postgres.PID, syscall.SIGQUIT))
	_ = syscall.Kill(writer, syscall.SIGKILL) // it does not see the signal of its parent, which waits for it
	backoff.Sleep(ctx, 2*time.Second)
	r.restart(ctx, postgres)
	back := time.Now()
	r.fault(oracle.LostDatabase, "", from.Add(-forgets), back.Add(time.Second))
	backoff.Sleep(ctx, 2*time.Second)
	r.emit(ctx, batch{label: "after", n: 200, canvas: plainCanvas, every: 5 * time.Millisecond})
	for _, label := range []string{"lines", "limited", "plain", "after"} {
		r.awaitDone(ctx, label, time.Minute)
	}
	r.settle(ctx)
	given := map[eventqueue.EventID]int{}
	for _, e := range r.of("") {
		given[e.id]++
	}
	forgotten := r.forget(ctx, from)
	givenAgain := len(r.of("")) + forgotten - len(given)
	again := 0
	for _, e := range r.of("") {
		if visits := r.target.of(e.id); len(visits) > 1 {
			again++
		}
	}
	r.figure("forgotten=%d ids_given_again=%d run_again=%d", forgotten, givenAgain, again)
	if forgotten+again == 0 {
		r.failf("Postgres has forgotten nothing: the scenario shows nothing")
	}
	// What began before the stop has claims that may be forgotten, and is not bound to what
	// others are told afterwards.
	for _, began := range []func(v visit) bool{
		func(v visit) bool { return v.began.Before(from) },
		func(v visit) bool { return v.began.After(back) },
	} {
		r.inOrderOf("lines", began)
		r.atMostOf("limited", runningMax, began)
	}
}

const survivedSQL = `
SELECT EXISTS (SELECT FROM event_log WHERE id = $1 AND value = $2) OR EXISTS (SELECT FROM events_v2 WHERE id = $1 AND value = $2)`

// forget takes those events off the ledger whose emit a Postgres has forgotten that does not wait
// for its disk, and which was stopped at a time. Their ids may be those of other events now.
func (r *rig) forget(ctx context.Context, stopped time.Time) (n int) {
	gone := map[*entry]bool{}
	for _, e := range r.of("") {
		if e.emitted.After(stopped) || e.emitted.Before(stopped.Add(-forgets)) {
			continue
		}
		var survived bool
		r.must(r.db.QueryRow(ctx, survivedSQL, int64(e.id), e.value).Scan(&survived))
		if !survived {
			gone[e] = true
			r.target.forget(e.id, e.value)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	isGone := func(e *entry) bool { return gone[e] }
	r.ledger = slices.DeleteFunc(r.ledger, isGone)
	for label, entries := range r.labels {
		r.labels[label] = slices.DeleteFunc(entries, isGone)
	}
	return len(gone)
}

// forget deletes the runs of an event with a value.
func (t *target) forget(id eventqueue.EventID, value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.visits[id] = slices.DeleteFunc(t.visits[id], func(v *visit) bool { return v.value == value })
}
