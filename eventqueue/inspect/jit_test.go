package inspect_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/test/testenv"
)

// TestReadsAreNotCompiled by Postgres, on a pool of the caller's, whose connections stay as they were.
func TestReadsAreNotCompiled(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	config, err := pgxpool.ParseConfig(testenv.DatabaseURL(t))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 1
	config.ConnConfig.RuntimeParams["jit"] = "on"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	// The reason of the rule that is read is the setting with which it is read.
	for _, sql := range []string{
		`INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name) VALUES ('pause', gen_random_uuid(), 'M', 'greet')`,
		`ALTER TABLE scheduling_rules RENAME TO stored_rules`,
		`CREATE VIEW scheduling_rules AS SELECT id, rule_type, canvas_id, event_space, handler_name, modifier, prefix, current_setting('jit') AS reason, actor,
			rate, released_to, released_at, until, created_at FROM stored_rules`,
	} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	reader := inspect.New(pool)
	rules, err := reader.Rules(ctx, inspect.Filter{})
	if err != nil || len(rules) != 1 || rules[0].Reason != "off" {
		t.Errorf("while it reads, jit is in %+v, %v", rules, err)
	}
	if _, err := reader.HasEvents(ctx, eventqueue.Scope{}, ""); err != nil {
		t.Error(err)
	}
	var after string
	if err := pool.QueryRow(ctx, `SHOW jit`).Scan(&after); err != nil || after != "on" {
		t.Errorf("afterwards jit is %q, %v", after, err)
	}
}
