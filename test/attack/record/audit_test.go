package record_test

import (
	"testing"

	"github.com/google/uuid"

	"eventsv2/test/attack/record"
	"eventsv2/test/testenv"
)

// TestEachChangeIsOnRecord, of the worst times that a row may have, too, and by writers of any search_path.
func TestEachChangeIsOnRecord(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	exec(record.AuditSQL)
	exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, ordering_key, group_state) VALUES ($1, 'M', 'n', '_', '{}', 'k', 3)`, uuid.New())
	exec(`UPDATE events_v2 SET locked_at = now(), attempts = attempts + 1`)
	exec(`BEGIN; SET LOCAL audit.off = on; UPDATE events_v2 SET retries = 1; COMMIT`)
	exec(`UPDATE events_v2 SET locked_at = now() + interval '1 s', begun = true, suspect = 4`)
	exec(`UPDATE events_v2 SET value = '{"n": 1}'`)
	exec(`ALTER TABLE events_v2 DROP CONSTRAINT events_v2_lock_expires`)
	exec(`UPDATE events_v2 SET locked_at = '294276-12-31 23:59:59+00', delay_until = '4714-11-24 00:00Z BC'`)
	exec(`UPDATE events_v2 SET locked_at = NULL`)
	exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, retries, attempts, enqueued_at, status)
SELECT id, canvas_id, module, name, modifier, value, 2, attempts, enqueued_at, 'FAILED' FROM events_v2`)
	exec(`BEGIN; SET LOCAL search_path = pg_catalog; DELETE FROM public.events_v2; UPDATE public.event_log SET retries = 3; COMMIT`)
	traces, err := record.Read(t.Context(), pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, parent_id) SELECT $1, 'M', 'n', '_', '{}', parent FROM unnest('{8,9}'::bigint[]) AS parent`, uuid.New())
	if children, err := record.Read(t.Context(), pool, []int64{9}); err != nil || len(children) != 1 {
		t.Errorf("the children of an event: %v, %v", children, err)
	}
	rewritten, err := record.ReadRewritten(t.Context(), pool)
	if err != nil || len(rewritten) != 1 {
		t.Errorf("rewritten: %v, %v", rewritten, err)
	}
	for _, s := range traces {
		if s.Entered == nil || s.Entered.OrderingKey != "k" || s.Entered.Value != "{}" || len(s.Changes) != 7 || !s.Ended(record.Failed) || s.Ending.Retries != 3 {
			t.Fatalf("the record has %+v, entered %+v, ended %+v", s, s.Entered, s.Ending)
		}
		if !s.Changes[1].Claims() || !s.Changes[2].Renews() || s.Changes[2].New.Together != 4 || !s.Changes[3].Rewritten || s.Changes[4].Rewritten ||
			!s.Changes[5].Unlocks() || s.Changes[6].Op != record.Delete {
			t.Errorf("the changes are %+v", s.Changes)
		}
	}
	if len(traces) != 1 {
		t.Errorf("%d events are on record, want 1", len(traces))
	}
}
