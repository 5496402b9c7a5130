package main

import (
	"context"
	"strings"
	"time"

	"eventsv2/internal/backoff"
)

// refuseSQL is what somebody else may have put on the table: it refuses each update of a row of the
// canvas, and the event of one cron definition.
const refuseSQL = `
CREATE FUNCTION refuse_some() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.canvas_id = TG_ARGV[0]::uuid THEN
        RAISE EXCEPTION 'not this row' USING ERRCODE = '42501';
    ELSIF TG_OP = 'INSERT' AND NEW.module = 'CRON' AND NEW.name = 'bad' THEN
        RAISE EXCEPTION 'not this definition' USING ERRCODE = '23514';
    END IF;
    RETURN NEW;
END $$`

// refusedRows has the database refuse rows that the relay, a worker and cron have to write, in front
// of those of others.
func refusedRows(ctx context.Context, r *rig) {
	const rows = 20
	worker := r.worker(ctx, "worker", nil)
	backoff.Sleep(ctx, workerLooks) // a worker that looks by itself would do the relay's work
	bad := [16]byte(canvas(1))
	r.exec(ctx, crowdSQL, bad, "work", nil, rows)
	r.exec(ctx, crowdSQL, bad, "work", time.Now().Add(-30*time.Minute), rows)
	r.exec(ctx, refuseSQL)
	r.exec(ctx, `CREATE TRIGGER refuse_some BEFORE INSERT OR UPDATE ON events_v2 FOR EACH ROW EXECUTE FUNCTION refuse_some('`+canvas(1).String()+`')`)
	const insertSQL = `
INSERT INTO cron_definitions (canvas_id, name, schedule, missed, starts_at)
SELECT $1, name, '* * * * *', 'all', now() - interval '10 minutes' FROM unnest(ARRAY['bad', 'good']) AS name ORDER BY name`
	r.exec(ctx, insertSQL, [16]byte(canvas(0)))
	r.insert(ctx, batch{label: "pending", n: 100})
	r.insertLost(ctx, batch{label: "lost", n: 100}, time.Now().Add(-10*time.Minute))
	cron := r.cron(ctx, map[string]string{"RELAY_LOST_AFTER": "5s", "RELAY_INTERVAL": "5s"})
	r.awaitDone(ctx, "pending", 40*time.Second)
	r.awaitDone(ctx, "lost", 40*time.Second)
	slots := func() int64 {
		return r.number(ctx, `SELECT count(*) FROM cron_records c JOIN cron_definitions d ON d.id = c.cron_id WHERE d.name = 'good'`)
	}
	if !r.eventually(ctx, 40*time.Second, func() bool { return slots() >= 9 }) {
		r.failf("%d of 10 due slots were emitted", slots())
	}
	const refusesToWrite, refusesSlots = "the database refuses to write the row of this event", "the database refuses the slots of a cron definition"
	named := func() int { return len(r.saidOf(cron, refusesToWrite)) }
	if !r.eventually(ctx, 40*time.Second, func() bool { return named() == 2*rows }) {
		r.failf("cron's log names %d of %d rows that it cannot write", named(), 2*rows)
	}
	if !strings.Contains(cron.LogText(), refusesSlots) {
		r.failf("cron's log does not name the definition that the database refuses")
	}
	if n := r.number(ctx, `SELECT count(*) FROM events_v2 WHERE canvas_id = '`+canvas(1).String()+`'`); n != 2*rows {
		r.failf("%d of %d rows are left that nobody can write: the scenario shows nothing", n, 2*rows)
	}
	r.emit(ctx, batch{label: "later", n: 100, every: 20 * time.Millisecond})
	r.awaitDone(ctx, "later", 40*time.Second)
	for _, p := range []*program{worker, cron} {
		if !p.Running() {
			r.failf("%s ended: %s", p.Name, p.LastWords())
		}
	}
	r.figure("named=%d slots=%d", named(), slots())
}
