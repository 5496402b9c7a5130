package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
)

func relayScenarios() []scenario {
	return []scenario{
		{"fair-relay", "what one canvas has pending, paused, lost or in ordering groups delays no other", 80 * time.Second, fairRelay},
		{"relay-answers-lost", "events start in time although the answers of the relay's takes are lost, which commit", 40 * time.Second, relayAnswersLost},
		{"bad-row-in-claim", "a row that no claim can write costs itself only", 40 * time.Second, badRowInClaim},
		{"lock-centuries-ahead", "a lock far in the future stops no sweep", 40 * time.Second, lockCenturiesAhead},
		{"refused-rows", "rows that the database refuses to update or to insert cost themselves only, and are named", 60 * time.Second, refusedRows},
		{"cron-at-infinity", "a definition at infinity stops no other", 30 * time.Second, cronAtInfinity},
	}
}

// crowdSQL makes rows as a tenant has them who is far behind: due, and owed a
// notification or notified long ago.
const crowdSQL = `
INSERT INTO events_v2 (canvas_id, module, name, modifier, value, enqueued_at, delay_until, notified_at)
SELECT $1, 'WORKER', $2, '_', '{}', now() - interval '1 hour', now() - interval '1 hour', $3
  FROM generate_series(1, $4)`

// A relay that is slower than the default, so that a crowd of a size that a test
// can make takes minutes.
const (
	crowd     = 100_000
	perSecond = 500
	// fairInterval is how long an event waits for such a relay that is alone, and fairStart beside
	// a crowd: 5 s more are promised.
	fairInterval = 3 * time.Second
	fairStart    = fairInterval + 5*time.Second
)

// workerLooks is a little longer than a worker asks the database for due events by itself
// when it has started.
const workerLooks = 13 * time.Second

// fairRelay has one canvas be far behind, in three ways, and looks at the events of
// another one, which wait for the relay as well.
func fairRelay(ctx context.Context, r *rig) {
	r.worker(ctx, "worker", nil)
	backoff.Sleep(ctx, workerLooks) // a worker that looks by itself would do the relay's work
	behind := [16]byte(canvas(1))
	long := time.Now().Add(-30 * time.Minute)
	beside := func(label string) {
		for range 3 {
			r.insert(ctx, batch{label: label, n: 1})
			r.insertLost(ctx, batch{label: label + "_lost", n: 1}, long)
			r.awaitDone(ctx, label, 45*time.Second)
			r.awaitDone(ctx, label+"_lost", 45*time.Second)
		}
		r.punctual(label, 1, fairStart)
		r.punctual(label+"_lost", 1, fairStart)
	}
	cron := r.cron(ctx, map[string]string{"RELAY_PER_SECOND": strconv.Itoa(perSecond), "RELAY_LOST_AFTER": "5s", "RELAY_INTERVAL": fairInterval.String()})
	// Nobody has a handler for them: they wait, whatever is rung for them.
	r.unrecorded(ctx, crowdSQL, behind, "unknown", nil, crowd)
	beside("beside_pending")
	r.unrecorded(ctx, `DELETE FROM events_v2 WHERE canvas_id = $1`, behind)

	if text, status := r.ctl(ctx, "pause", "--canvas", canvas(1).String(), "--module", "WORKER", "--name", "paused"); status != 0 {
		r.fatalf("eventctl pause: %s", text)
	}
	r.unrecorded(ctx, crowdSQL, behind, "paused", long, 2*crowd)
	beside("beside_paused")
	r.unrecorded(ctx, `DELETE FROM events_v2 WHERE canvas_id = $1`, behind)

	r.unrecorded(ctx, crowdSQL, behind, "unknown", long, crowd)
	beside("beside_lost")
	r.unrecorded(ctx, `DELETE FROM events_v2 WHERE canvas_id = $1`, behind)

	r.crowdInGroups(ctx, canvas(1), long)
	beside("beside_lines")
	r.unrecorded(ctx, `DELETE FROM events_v2 WHERE canvas_id = $1`, behind)
	if !cron.Running() {
		r.failf("cron ended: %s", cron.LastWords())
	}
}

// A crowd in ordering groups, of which the first of each has been notified long ago.
const (
	crowdGroups   = 10_000
	crowdPerGroup = 3
)

// offRecord makes a change that is not recorded: of so many events that this would take minutes, and that are not judged.
func (r *rig) offRecord(ctx context.Context, change func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL audit.off = on`); err != nil {
			return err
		}
		return change(tx)
	})
}

// unrecorded is exec off the record.
func (r *rig) unrecorded(ctx context.Context, sql string, args ...any) {
	r.must(r.offRecord(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sql, args...)
		return err
	}))
}

const insertLostSQL = `
INSERT INTO events_v2 (canvas_id, module, name, modifier, value, enqueued_at, delay_until, notified_at)
VALUES ($1, $2, $3, $4, $5, $6, $6, $6)
RETURNING id`

// insertLost inserts a batch as if it had been notified at some time, and that was lost.
func (r *rig) insertLost(ctx context.Context, b batch, notified time.Time) {
	r.emitBy(ctx, b, func(ctx context.Context, events []eventqueue.NewEvent) (ids []eventqueue.EventID, err error) {
		for _, e := range events {
			var id eventqueue.EventID
			if err := r.db.QueryRow(ctx, insertLostSQL, [16]byte(e.Canvas), e.Module, e.Name, e.Modifier, string(e.Value), notified).Scan(&id); err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		return ids, nil
	})
}

func (r *rig) crowdInGroups(ctx context.Context, of eventqueue.CanvasID, notified time.Time) {
	r.must(r.offRecord(ctx, func(tx pgx.Tx) error {
		events := make([]eventqueue.NewEvent, 0, most)
		for i := range crowdGroups * crowdPerGroup {
			events = append(events, eventqueue.NewEvent{Canvas: of, Module: "WORKER", Name: "unknown", Modifier: "_", Value: json.RawMessage("{}"),
				OrderingKey: strconv.Itoa(i % crowdGroups)})
			if len(events) < most {
				continue
			}
			if _, err := r.emitter.EmitTx(ctx, tx, events...); err != nil {
				return err
			}
			events = events[:0]
		}
		_, err := tx.Exec(ctx, `UPDATE events_v2 SET notified_at = $2, delay_until = $2, enqueued_at = $2 WHERE canvas_id = $1`, [16]byte(of), notified)
		return err
	}))
}

// tooMuch tries to write what the table has to refuse.
func (r *rig) tooMuch(ctx context.Context, sql string, args ...any) {
	_, err := r.db.Exec(ctx, sql, args...)
	var refused *pgconn.PgError
	switch {
	case err == nil:
		r.failf("the table takes %v", args)
	case !errors.As(err, &refused) || refused.Code != checkViolation:
		r.fatalf("%.60s: %v", strings.TrimSpace(sql), err)
	}
}

const checkViolation = "23514"

const insertAttemptsSQL = `
INSERT INTO events_v2 (canvas_id, module, name, modifier, value, attempts)
VALUES ($1, 'WORKER', 'work', '_', '{"bad": "row"}', $2)
RETURNING id`

// refusesToClaim is what a worker says of a row that it cannot claim.
const refusesToClaim = "the database refuses to claim this event, and no other for it"

// badRowInClaim writes rows that a claim cannot raise any more, in one transaction
// with events of others, so that they are claimed together: first such as the table
// takes, then such as were there before it refused them.
func badRowInClaim(ctx context.Context, r *rig) {
	worker := r.worker(ctx, "worker", nil)
	r.cron(ctx, map[string]string{"RELAY_LOST_AFTER": "5s", "RELAY_INTERVAL": "2s"})
	const most, beyond = 1_000_000_000, math.MaxInt32
	bad := [16]byte(canvas(1))
	r.tooMuch(ctx, insertAttemptsSQL, bad, beyond)
	r.besideBadRows(ctx, worker, "beside_most", most)
	r.exec(ctx, `DELETE FROM events_v2 WHERE canvas_id = $1`, bad)
	r.exec(ctx, `ALTER TABLE events_v2 DROP CONSTRAINT events_v2_countable`)
	r.besideBadRows(ctx, worker, "beside_beyond", beyond)
	r.emit(ctx, batch{label: "later", n: 100, every: 20 * time.Millisecond})
	r.awaitDone(ctx, "later", 40*time.Second)
}

// besideBadRows inserts a bad row with every tenth event, which are many enough that
// hardly a batch has none, and looks for what the worker says of each.
func (r *rig) besideBadRows(ctx context.Context, worker *program, label string, attempts int) {
	var bad []eventqueue.EventID
	r.emitBy(ctx, batch{label: label, n: 200}, func(ctx context.Context, events []eventqueue.NewEvent) (ids []eventqueue.EventID, err error) {
		err = pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
			for i, e := range events {
				var id eventqueue.EventID
				if i%10 == 0 {
					if err := tx.QueryRow(ctx, insertAttemptsSQL, [16]byte(canvas(1)), attempts).Scan(&id); err != nil {
						return err
					}
					bad = append(bad, id)
				}
				values := []string{string(e.Value)}
				if err := tx.QueryRow(ctx, insertSQL, [16]byte(e.Canvas), e.Module, e.Name, e.Modifier, e.Delay, values).Scan(&id); err != nil {
					return err
				}
				ids = append(ids, id)
			}
			return nil
		})
		return ids, err
	})
	r.awaitDone(ctx, label, 40*time.Second)
	named := func() (n int) {
		said := r.saidOf(worker, refusesToClaim)
		for _, id := range bad {
			if said[id.String()] {
				n++
			}
		}
		return n
	}
	if !r.eventually(ctx, 40*time.Second, func() bool { return named() == len(bad) }) {
		r.failf("the worker's log names %d of %d rows that no claim can write", named(), len(bad))
	}
	if began := r.number(ctx, `SELECT count(*) FROM event_log WHERE value LIKE '%bad%'`); began > 0 {
		r.failf("%d rows that no claim can write have ended: the scenario shows nothing", began)
	}
	r.figure("%s_named=%d", label, named())
}

// saidOf are the events, by id, of which a program has said something.
func (r *rig) saidOf(p *program, message string) map[string]bool {
	said := map[string]bool{}
	for line := range strings.Lines(p.LogText()) {
		var entry struct {
			Message string `json:"message"`
			Event   string `json:"event_id"`
		}
		if json.Unmarshal([]byte(line), &entry) == nil && strings.HasPrefix(entry.Message, message) {
			said[entry.Event] = true
		}
	}
	return said
}

const insertLockedSQL = `
INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until, enqueued_at, notified_at, attempts, locked_at)
VALUES ($1, 'WORKER', 'work', '_', '{"bad": "row"}', now() - interval '1 hour', now() - interval '1 hour', now() - interval '30 minutes', 1, $2::timestamptz)`

// ofAnyYearSQL makes rows with other times with which arithmetic overflows.
const ofAnyYearSQL = `
INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until, enqueued_at, notified_at, attempts, locked_at)
SELECT $1, 'WORKER', 'work', '_', '{"bad": "row"}', d, e, n, 1, l
FROM (VALUES (now(), now(), '294276-12-31 00:00Z'::timestamptz, NULL),
             ('294276-12-31 00:00Z'::timestamptz, now(), now(), NULL),
             ('4714-11-24 00:00Z BC'::timestamptz, '4714-11-24 00:00Z BC'::timestamptz, '4714-11-24 00:00Z BC'::timestamptz, '4714-11-24 00:00Z BC'::timestamptz)) AS t (d, e, n, l)`

// lockCenturiesAhead has the relay look for lost events around rows whose locks are
// centuries ahead, and which were there before the table refused them.
func lockCenturiesAhead(ctx context.Context, r *rig) {
	r.worker(ctx, "worker", nil)
	bad, centuries := [16]byte(canvas(1)), []string{"200000-01-01 00:00:00+00", "294276-12-31 23:59:59+00"}
	for _, at := range centuries {
		r.tooMuch(ctx, insertLockedSQL, bad, at)
	}
	r.exec(ctx, `ALTER TABLE events_v2 DROP CONSTRAINT events_v2_lock_expires`)
	for _, at := range centuries {
		r.exec(ctx, insertLockedSQL, bad, at)
	}
	r.exec(ctx, ofAnyYearSQL, bad)
	backoff.Sleep(ctx, workerLooks) // a worker that looks by itself would do the relay's work
	for range 200 {
		r.insertLost(ctx, batch{label: "lost", n: 1}, time.Now().Add(-10*time.Minute))
	}
	cron := r.cron(ctx, map[string]string{"RELAY_LOST_AFTER": "1s", "RELAY_INTERVAL": "1s"})
	r.awaitDone(ctx, "lost", 40*time.Second)
	const ahead = "an event is locked until far in the future"
	if !r.eventually(ctx, startLimit, func() bool { return strings.Count(cron.LogText(), ahead) >= len(centuries) }) {
		r.failf("cron's log names %d of %d events that are locked for centuries", strings.Count(cron.LogText(), ahead), len(centuries))
	}
	if n := r.number(ctx, `SELECT count(*) FROM events_v2 WHERE locked_at > '3000-01-01'`); n != int64(len(centuries)) {
		r.failf("%d locks are centuries ahead, want %d: the scenario shows nothing", n, len(centuries))
	}
}

const insertDefinitionSQL = `
INSERT INTO cron_definitions (canvas_id, name, schedule, starts_at) VALUES ($1, $2, '* * * * *', $3::timestamptz)`

// cronAtInfinity has definitions that never begin, and were there before the table
// refused them, beside one that is due.
func cronAtInfinity(ctx context.Context, r *rig) {
	r.worker(ctx, "worker", nil)
	bad, starts := [16]byte(canvas(1)), map[string]string{"never": "infinity", "always": "-infinity"}
	for name, at := range starts {
		r.tooMuch(ctx, insertDefinitionSQL, bad, name, at)
	}
	r.exec(ctx, `ALTER TABLE cron_definitions DROP CONSTRAINT cron_definitions_readable`)
	for name, at := range starts {
		r.exec(ctx, insertDefinitionSQL, bad, name, at)
	}
	r.exec(ctx, `
INSERT INTO cron_definitions (canvas_id, name, schedule, missed, starts_at) VALUES ($1, 'good', '* * * * *', 'all', now() - interval '10 minutes')`,
		[16]byte(canvas(0)))
	cron := r.cron(ctx, nil)
	slots := func() int64 {
		return r.number(ctx, `SELECT count(*) FROM cron_records c JOIN cron_definitions d ON d.id = c.cron_id WHERE d.name = 'good'`)
	}
	if !r.eventually(ctx, 45*time.Second, func() bool { return slots() >= 9 }) {
		r.failf("%d of 10 due slots were emitted", slots())
	}
	const unreadable = "a cron definition cannot be read and emits nothing"
	if !r.eventually(ctx, startLimit, func() bool { return strings.Count(cron.LogText(), unreadable) >= len(starts) }) {
		r.failf("cron's log names %d of %d definitions that cannot be read", strings.Count(cron.LogText(), unreadable), len(starts))
	}
	r.figure("slots=%d", slots())
}
