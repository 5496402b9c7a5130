package scale_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue/minutes"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// fill gives a database the rows of a long life: $1 events, a third as many in the history, and in proportion to a
// million events 10,000 canvases and 1,000 handlers. A third of all is of the first canvas.
var fill = []string{
	`CREATE FUNCTION canvas_of(i bigint, events bigint) RETURNS uuid LANGUAGE sql IMMUTABLE
	 RETURN ('00000000-0000-0000-0001-' || lpad(to_hex(CASE WHEN i % 3 = 0 THEN 1 ELSE 2 + (i * 7919) % greatest(3, events / 100) END), 12, '0'))::uuid`,
	`CREATE FUNCTION name_of(i bigint, events bigint) RETURNS text LANGUAGE sql IMMUTABLE RETURN 'handler_' || (i * 31) % greatest(3, events / 1000)`,
	`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, retries, attempts, delay_until, enqueued_at, notified_at, locked_at, attributes)
	 SELECT canvas_of(i, $1), 'WORKER', name_of(i, $1), '_', '{"order":' || i || ',"text":"' || repeat('x', 200) || '"}', i % 3, i % 3,
	     now() + CASE WHEN i % 5 = 0 THEN interval '3 hours' ELSE - interval '1 minute' END, now() - interval '2 hours',
	     CASE WHEN i % 50 <> 0 THEN now() END, CASE WHEN i % 2000 = 0 THEN now() END,
	     CASE WHEN i % 10 = 0 THEN jsonb_build_object('user', 'u' || i % 100003) END
	 FROM generate_series(1, $1::bigint) AS i`,
	`INSERT INTO event_attempts (event_id, attempt, canvas_id, started_at, duration, error)
	 SELECT id, 1, canvas_id, now() - interval '1 hour', '20 ms', 'answer 503 of order ' || id FROM events_v2 WHERE retries > 0 AND $1 > 0`,
	`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at, created_at, parent_id)
	 SELECT nextval('events_id_seq'), canvas_of(i, $1), 'WORKER', name_of(i, $1), '_', '{"order":' || i || '}',
	     CASE WHEN i % 20 = 0 THEN 'FAILED' WHEN i % 97 = 0 THEN 'CANCELLED' ELSE 'COMPLETED' END::event_log_status, 0, 1,
	     CASE WHEN i % 20 = 0 THEN 'answer 503 of order ' || i || repeat(' and so on', 100) END, now() - interval '1 day', now(), CASE WHEN i % 100 = 0 THEN 1 END
	 FROM generate_series(1, $1::bigint / 3) AS i`,
	// The last two hours have what a minute has at most, and the days before a row in ten.
	`INSERT INTO event_minutes (minute, canvas_id, module, name, emitted, completed, failed, retried, waits, runs, pending, oldest_due)
	 SELECT date_trunc('minute', now()) - m * interval '1 minute', canvas_of(h, $1), 'WORKER', name_of(h, $1), 10, 9, 1, 2,
	     array_fill(1, ARRAY[24]), array_fill(1, ARRAY[24]), 10, '1 minute'
	 FROM generate_series(0, least(14 * 1440, $1 / 50)) AS m, generate_series(1, CASE WHEN m < 120 THEN least(3000, $1 / 300) ELSE 30 END) AS h
	 ON CONFLICT DO NOTHING`,
	`INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name)
	 SELECT 'pause', canvas_of(i, $1), 'WORKER', name_of(i, $1) FROM generate_series(1, $1::bigint, 5000) AS i ON CONFLICT DO NOTHING`,
	`INSERT INTO cron_definitions (canvas_id, name, schedule) SELECT canvas_of(3, $1), 'cron_' || i, '*/5 * * * *' FROM generate_series(1, least(300, $1 / 10)) AS i`,
	`INSERT INTO canvas_names (canvas_id, name) SELECT DISTINCT canvas_of(i, $1), 'canvas ' || canvas_of(i, $1) FROM generate_series(1, $1::bigint) AS i`,
	`INSERT INTO audit_log (actor, source, via, action, canvas_id, target)
	 SELECT 'token:ada', '10.0.0.7', 'api', 'cancel', canvas_of(i, $1), jsonb_build_object('event', i) FROM generate_series(1, $1::bigint / 10) AS i`,
	`INSERT INTO access_tokens (id, name, hash, verbs, created_by)
	 SELECT gen_random_uuid(), 'token ' || i, sha256(i::text::bytea), '{read}', 'ada' FROM generate_series(1, least(2000, $1 / 10)) AS i`,
}

// filled returns a database with so many events.
func filled(t *testing.T, pool *pgxpool.Pool, events int) {
	t.Helper()
	ctx := testenv.Context(t)
	if events > 100_000 {
		ctx = context.WithoutCancel(ctx) // it takes minutes, as asked
	}
	for _, statement := range append(fill, `VACUUM ANALYZE`) {
		var err error
		if statement[:6] == "INSERT" {
			_, err = pool.Exec(ctx, statement, events)
		} else {
			_, err = pool.Exec(ctx, statement)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, statement)
		}
	}
	for summed := true; summed; { // the hours that are over, as cron does
		var err error
		if summed, err = pgstore.New(pool).SumHour(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for more := true; more; { // and each minute
		var err error
		if more, err = pgstore.New(pool).SumMinutes(ctx); err != nil {
			t.Fatal(err)
		}
	}
	// Cron has summed up the minutes before as well, while they were the last ones.
	for part, of := range map[string]string{"true, '00000000-0000-0000-0000-000000000000'::uuid": "m.minute", "false, m.canvas_id": "m.minute, m.canvas_id HAVING count(*) >= 20"} {
		if _, err := pool.Exec(ctx, `INSERT INTO event_minute_totals (minute, of_all, canvas_id, emitted, completed, failed, retried, cancelled, waits, pending, oldest_due)
			SELECT m.minute, `+part+`, `+minutes.SumsSQL()+` FROM event_minutes m WHERE m.minute BETWEEN now() - interval '26 hours' AND now() - interval '10 minutes' GROUP BY `+of+` ON CONFLICT DO NOTHING`); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(ctx, `VACUUM ANALYZE event_hours, event_minute_totals, event_hour_totals`); err != nil {
		t.Fatal(err)
	}
}
