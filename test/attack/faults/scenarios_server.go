package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/test/attack/harness"
	"eventsv2/test/oracle"
	"eventsv2/test/programs"
	"eventsv2/test/services"
)

// serverScenarios have what others do to Postgres, and programs whose notifier it is.
func serverScenarios() []scenario {
	return []scenario{
		{"features-postgres-refuses", "limits, groups, chains and unique keys keep their promises beside a locked table, a full disk, a revoked right and a changed password", 120 * time.Second, postgresRefuses},
		{"features-notifier-postgres", "so they do with Postgres as the notifier, which dies, and whose connections others take", 120 * time.Second, postgresNotifies},
		{"unique-answers-lost", "an emit with a unique key whose answer is lost, and that is tried again, makes one event", 60 * time.Second, uniqueAnswersLost},
		{"emit-answers-lost", "events whose emits commit and are not answered start as soon as others", 60 * time.Second, emitAnswersLost},
		{"requeued-while-blocked", "requeues and retries of what is blocked, beside kill -9, start nothing and double nothing", 40 * time.Second, requeuedWhileBlocked},
	}
}

// aWhile is longer than a lock lasts, and than the ten seconds that a statement waits for a lock of
// Postgres.
const aWhile = 12 * time.Second

// postgresRefuses has one thing after the other keep all programs from writing.
func postgresRefuses(ctx context.Context, r *rig) {
	r.asRole(ctx)
	features(func(ctx context.Context, r *rig, _ []*program) {
		from := time.Now()
		r.must(pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `LOCK TABLE events_v2 IN ACCESS EXCLUSIVE MODE`)
			backoff.Sleep(ctx, aWhile)
			return err
		}))
		r.everyWriteFails(ctx, "53100")
		r.everyWriteFails(ctx, "42501")
		r.otherPassword(ctx)
		r.fault(oracle.LostDatabase, "", from, time.Now().Add(time.Second))
	})(ctx, r)
}

// refusesFor is longer than a lock of these scenarios lasts.
const refusesFor = 5 * time.Second

const refuseAllSQL = `
CREATE OR REPLACE FUNCTION refuse_all() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'not now' USING ERRCODE = TG_ARGV[0];
END $$`

// everyWriteFails has the database refuse each statement that writes events, whatever its rows.
func (r *rig) everyWriteFails(ctx context.Context, code string) {
	r.exec(ctx, refuseAllSQL)
	r.exec(ctx, `CREATE TRIGGER refuse_all BEFORE INSERT OR UPDATE OR DELETE ON events_v2 FOR EACH STATEMENT EXECUTE FUNCTION refuse_all('`+code+`')`)
	backoff.Sleep(ctx, refusesFor)
	r.exec(ctx, `DROP TRIGGER refuse_all ON events_v2`)
}

// otherPassword gives the programs' role a password that they do not know, for a while, and cuts
// their connections.
func (r *rig) otherPassword(ctx context.Context) {
	u, err := url.Parse(r.databaseURL)
	r.must(err)
	password, _ := u.User.Password()
	set := func(password string) {
		_, err := r.stage.admin.Exec(ctx, `ALTER ROLE `+pgx.Identifier{u.User.Username()}.Sanitize()+` PASSWORD '`+password+`'`)
		r.must(err)
	}
	set(rand.Text())
	r.setDatabase(ctx)
	backoff.Sleep(ctx, refusesFor)
	set(password)
}

// postgresNotifies has Postgres be the notifier of all programs, and somebody replicate its tables.
func postgresNotifies(ctx context.Context, r *rig) {
	r.postgresNotifier = true
	postgres := r.ownPostgres(ctx, services.Setting("max_connections", "120"), services.Setting("wal_level", "logical"))
	r.exec(ctx, `CREATE PUBLICATION everything FOR ALL TABLES`)
	r.exec(ctx, `SELECT pg_create_logical_replication_slot('somebody', 'pgoutput')`)
	features(func(ctx context.Context, r *rig, workers []*program) {
		from := time.Now()
		harness.KillTree(postgres.PID)
		r.kill(workers[0])
		r.kill(workers[2])
		backoff.Sleep(ctx, refusesFor)
		r.restart(ctx, postgres)
		backoff.Sleep(ctx, 2*time.Second) // programs listen again
		r.takeConnections(ctx)
		r.fault(oracle.LostDatabase, "", from, time.Now().Add(time.Second))
	})(ctx, r)
	if n := r.pubsubServer.Answered("Publish"); n > 0 {
		r.failf("%d notifications were published to Pub/Sub, which is not the notifier", n)
	}
}

const cutProgramsSQL = `
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
 WHERE application_name <> '' AND backend_type = 'client backend' AND pid <> pg_backend_pid()`

// takeConnections cuts the connections of all programs, and takes all that the server has. It gives
// them back a while after the server has refused one.
func (r *rig) takeConnections(ctx context.Context) {
	var held []*pgx.Conn
	var refused time.Time
	for began := time.Now(); refused.IsZero() && time.Since(began) < startLimit || time.Since(refused) < refusesFor; {
		conn, err := pgx.Connect(ctx, r.databaseURL)
		if err != nil {
			if refused.IsZero() {
				refused = time.Now()
			}
			backoff.Sleep(ctx, 50*time.Millisecond)
			continue
		}
		held = append(held, conn)
		_, err = conn.Exec(ctx, cutProgramsSQL)
		r.must(err)
	}
	for _, conn := range held {
		r.must(conn.Close(ctx))
	}
	r.db.Reset()
	// The server takes a moment to end their processes.
	r.eventually(ctx, startLimit, func() bool {
		var left int
		err := r.db.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'`).Scan(&left)
		return err == nil && left < len(held)
	})
	if refused.IsZero() {
		r.failf("the server always had a connection left: the scenario shows nothing")
	}
}

// uniqueAnswersLost has a program emit with unique keys while the answers of Postgres are lost, and
// emit each event until it is told an id.
func uniqueAnswersLost(ctx context.Context, r *rig) {
	settings := impatient("5s")
	r.cron(ctx, settings) // who was not answered has published nothing
	r.worker(ctx, "worker", settings)
	way, err := r.stage.proxies.Open(r.name+"-emitter", hostOf(r.databaseURL))
	r.must(err)
	defer way.Close()
	through, err := way.Through(r.databaseURL, "cut")
	r.must(err)
	cut, err := programs.OpenEmitter(ctx, &r.Cleanups, through, "cut", 4, r.pubsub())
	r.must(err)
	lost := 0
	unique := func(ctx context.Context, events []eventqueue.NewEvent) (ids []eventqueue.EventID, err error) {
		for i := range events {
			events[i].UniqueKey, events[i].UniqueFor = string(events[i].Value), time.Hour
		}
		cure, err := way.Infect(harness.Mute(harness.Answers))
		if err != nil {
			return nil, err
		}
		trying, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err = cut.Queue.EmitUnique(trying, events...); err != nil {
			lost++
		}
		if err := cure(ctx); err != nil {
			return nil, err
		}
		again, err := cut.Queue.EmitUnique(ctx, events...)
		for _, e := range again {
			ids = append(ids, e.ID)
		}
		return ids, err
	}
	for i := range 10 {
		r.emitBy(ctx, batch{label: fmt.Sprint("unique_", i), n: 20, canvas: uniqueCanvas}, unique)
		r.awaitDone(ctx, fmt.Sprint("unique_", i), startLimit)
	}
	if lost == 0 {
		r.failf("no answer was lost: the scenario shows nothing")
	}
	r.figure("lost=%d", lost)
	if n := r.number(ctx, `SELECT count(*) FROM (SELECT id FROM event_log UNION SELECT id FROM events_v2) AS e`); n != int64(len(r.of(""))) {
		r.failf("%d events were made for %d keys", n, len(r.of("")))
	}
}

// emitAnswersLost loses the answers of emits, of every kind, with all settings at their defaults: the
// relay takes a notification for lost after a minute.
func emitAnswersLost(ctx context.Context, r *rig) {
	r.cron(ctx, nil)
	r.worker(ctx, "worker", nil)
	way, err := r.stage.proxies.Open(r.name+"-emitter", hostOf(r.databaseURL))
	r.must(err)
	defer way.Close()
	through, err := way.Through(r.databaseURL, "cut")
	r.must(err)
	emitter, err := programs.OpenEmitter(ctx, &r.Cleanups, through, "cut", 4, r.pubsub())
	r.must(err)
	type emits = []eventqueue.NewEvent
	kinds := map[string]func(ctx context.Context, lose func() error, events emits) error{
		"plain": func(ctx context.Context, lose func() error, events emits) error {
			return errors.Join(lose(), only(emitter.Queue.EmitMany(ctx, events)))
		},
		"unique": func(ctx context.Context, lose func() error, events emits) error {
			for i := range events {
				events[i].UniqueKey = string(events[i].Value)
			}
			return errors.Join(lose(), only(emitter.Queue.EmitUnique(ctx, events...)))
		},
		"ordered": func(ctx context.Context, lose func() error, events emits) error {
			for i := range events {
				events[i].OrderingKey = fmt.Sprint("key ", i%5)
			}
			return errors.Join(lose(), only(emitter.Queue.EmitMany(ctx, events)))
		},
		"in_tx": func(ctx context.Context, lose func() error, events emits) error {
			return emitter.Queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
				_, err := tx.Emit(ctx, events...)
				return errors.Join(err, lose())
			})
		},
	}
	lost := 0
	for kind, emit := range kinds {
		for i, toxic := range []string{harness.Mute(harness.Answers), harness.CutAfter(harness.Answers, 1), harness.Mute(harness.Answers)} {
			unheard := func(ctx context.Context, events emits) ([]eventqueue.EventID, error) {
				trying, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				var cure func(context.Context) error
				err := emit(trying, func() (err error) {
					cure, err = way.Infect(toxic)
					return err
				}, events)
				if cure == nil {
					return nil, err
				}
				if err != nil {
					lost++
				}
				if err := cure(ctx); err != nil {
					return nil, err
				}
				return r.committed(ctx, events)
			}
			label := fmt.Sprint(kind, "_", i)
			// The connection is in use; one that is not is asked first whether it lives.
			if err := emit(ctx, func() error { return nil }, emits{batch{label: label + "_before"}.event(0)}); err != nil {
				r.fatalf("emit: %v", err)
			}
			r.emitBy(ctx, batch{label: label, n: 20, canvas: byte(i)}, unheard)
			r.awaitDone(ctx, label, 90*time.Second)
			r.punctual(label, 1, 20*time.Second) // 2 s are promised
		}
	}
	if lost < 6 {
		r.failf("%d answers were lost: the scenario shows nothing", lost)
	}
	r.figure("lost=%d", lost)
}

func only[T any](_ T, err error) error { return err }

// committed returns the ids of events by their values, and emits those that are not there.
func (r *rig) committed(ctx context.Context, events []eventqueue.NewEvent) (ids []eventqueue.EventID, err error) {
	for _, e := range events {
		var id eventqueue.EventID
		err := r.db.QueryRow(ctx, `SELECT id FROM events_v2 WHERE value = $1 UNION SELECT id FROM event_log WHERE value = $1`, string(e.Value)).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			id, err = r.emitter.Emit(ctx, e)
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// requeuedWhileBlocked has an operator requeue and retry everything, again and again, while the
// handler is blocked, a worker dies, and the canvas has a limit and ordering groups.
func requeuedWhileBlocked(ctx context.Context, r *rig) {
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
	ctl("limit", "concurrency", "set", "--max", fmt.Sprint(runningMax))
	r.emit(ctx, batch{label: "lines", n: 100, canvas: fullCanvas, key: func(i int) string { return fmt.Sprint(i % fullGroups) }})
	r.emit(ctx, batch{label: "later", n: 20, canvas: fullCanvas, delay: 25 * time.Second})
	requeue := func() {
		var args []string
		for _, e := range r.of("lines") {
			args = append(args, e.id.String())
		}
		r.ctl(ctx, append([]string{"requeue"}, args...)...) // both refuse what runs or has ended
		r.ctl(ctx, append([]string{"retry"}, args...)...)
	}
	for _, victim := range workers {
		begun := r.begun("lines")
		if !r.eventually(ctx, startLimit, func() bool { return r.begun("lines") > begun+5 }) {
			r.fatalf("no further event has begun since %d", begun)
		}
		requeue()
		ctl("block", "--module", "WORKER", "--name", "work")
		r.kill(victim)
		r.worker(ctx, victim.Name+"-again", settings)
		backoff.Sleep(ctx, 2*time.Second)
		begun = r.begun("")
		for range 3 {
			requeue()
		}
		if now := r.begun(""); now != begun {
			r.failf("%d events began while their handler was blocked", now-begun)
		}
		ctl("unblock", "--module", "WORKER", "--name", "work")
	}
	requeue()
	r.awaitDone(ctx, "lines", time.Minute)
	r.awaitDone(ctx, "later", time.Minute)
	r.inOrder("lines")
	all := append(r.of("lines"), r.of("later")...)
	r.mu.Lock()
	r.labels["canvas"] = all // the limit is of both
	r.mu.Unlock()
	r.atMost("canvas", runningMax)
}
