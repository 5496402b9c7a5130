package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"eventsv2/internal/backoff"
	"eventsv2/test/attack/harness"
	"eventsv2/test/programs"
)

func cronScenarios() []scenario {
	return []scenario{
		{"cron-crashes", "each due slot gets one event while cron programs die, stand still and are told nothing, and Postgres dies", 60 * time.Second, cronCrashes},
	}
}

const (
	cronDefinitions = 40
	// cronMissed is for how many hours slots are due at the start.
	cronMissed = 12
)

const insertDueSQL = `
INSERT INTO cron_definitions (canvas_id, name, schedule, missed, starts_at)
SELECT $1, 'definition-' || n, '* * * * *', 'all', date_trunc('minute', now()) - make_interval(hours => $3) FROM generate_series(1, $2::int) AS n`

// cronEventsSQL counts what was emitted for slots, and the different ones of these.
const cronEventsSQL = `
WITH e AS (SELECT id, name, value FROM events_v2 WHERE module = 'CRON' UNION ALL SELECT id, name, value FROM event_log WHERE module = 'CRON')
SELECT (SELECT count(*) FROM e), (SELECT count(*) FROM (SELECT DISTINCT name, value FROM e) AS d), (SELECT count(*) FROM cron_records),
       (SELECT count(*) FROM cron_records r WHERE NOT EXISTS (SELECT FROM e WHERE e.id = r.event_id)),
       (SELECT count(*) FROM (SELECT cron_id FROM cron_records GROUP BY cron_id
           HAVING max(slot) - min(slot) = make_interval(mins => count(*)::int - 1) AND count(*) >= $1) AS whole)`

// cronCrashes has three cron programs emit what is due for half a day.
func cronCrashes(ctx context.Context, r *rig) {
	postgres := r.ownPostgres(ctx)
	r.exec(ctx, insertDueSQL, [16]byte(canvas(0)), cronDefinitions, cronMissed)
	settings := impatient("3s")
	var crons []*program
	for i := range 3 {
		crons = append(crons, r.start(programs.Cron, fmt.Sprint("cron-", i), settings))
	}
	emitted := func() int64 { return r.number(ctx, `SELECT count(*) FROM cron_records`) }
	begun := func(n int64) {
		if !r.eventually(ctx, startLimit, func() bool { return emitted() >= n }) {
			r.fatalf("%d slots were emitted, want %d", emitted(), n)
		}
	}
	const all = cronDefinitions * cronMissed * 60
	begun(1)
	r.kill(crons[0])
	first := emitted()
	crons[1].Signal(syscall.SIGSTOP)
	cure, err := crons[2].database.Infect(harness.Mute(harness.Answers))
	r.must(err)
	backoff.Sleep(ctx, 2*time.Second)
	r.must(cure(ctx))
	crons[0] = r.start(programs.Cron, "cron-again", settings)
	begun(first + 1)
	harness.KillTree(postgres.PID)
	backoff.Sleep(ctx, 2*time.Second)
	r.restart(ctx, postgres)
	second := emitted()
	crons[1].Signal(syscall.SIGCONT)
	if !r.eventually(ctx, time.Minute, func() bool { return emitted() >= all }) {
		r.failf("%d of %d due slots were emitted", emitted(), all)
	}
	for _, p := range crons {
		if !p.Running() {
			r.failf("%s ended with status %d: %s", p.Name, p.Status, p.LastWords())
		}
		p.Kill()
	}
	records := r.eachSlotOnce(ctx, cronDefinitions, cronMissed)
	r.figure("slots=%d emitted_at_faults=%d,%d", records, first, second)
}

// eachSlotOnce looks at the slots of definitions that had missed some hours when they were made: each must have
// one event. It returns how many there are.
func (r *rig) eachSlotOnce(ctx context.Context, definitions, hours int) int64 {
	var events, different, records, without, whole int64
	r.must(r.db.QueryRow(ctx, cronEventsSQL, hours*60).Scan(&events, &different, &records, &without, &whole))
	if events != records || different != events || without != 0 || whole != int64(definitions) {
		r.failf("%d events for %d different slots, %d records, %d of them without an event, %d of %d definitions with all slots",
			events, different, records, without, whole, definitions)
	}
	return records
}
