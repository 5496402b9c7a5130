package inspect_test

import (
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// TestMinutesOf: the minutes of one handler, among those of others, are those that Minutes finds.
func TestMinutesOf(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	scope, reader := inspectedScope(), inspect.New(store.Pool())
	if _, err := store.Pool().Exec(ctx, `INSERT INTO event_minutes (minute, canvas_id, module, name, completed)
		SELECT date_trunc('minute', now()) - i * interval '1 minute', $1::uuid, m, n, i FROM generate_series(1, 40, 3) AS i, unnest(ARRAY[$2, 'OTHER']) AS m, unnest(ARRAY[$3, 'other']) AS n`,
		[16]byte(scope.Canvas), scope.Module, scope.Name); err != nil {
		t.Fatal(err)
	}
	want, err := reader.Minutes(ctx, inspect.FilterOf(scope), 30*time.Minute, inspect.PerMinute)
	if err != nil {
		t.Fatal(err)
	}
	got, err := reader.MinutesOf(ctx, scope, 30*time.Minute)
	if err != nil || len(want) < 9 || len(got) < len(want)-1 || len(got) > len(want) { // a minute may have passed between them
		t.Fatalf("%d minutes, want %d: %v", len(got), len(want), err)
	}
	for i, m := range got {
		if w := want[len(want)-len(got)+i]; !m.Begins.Equal(w.Begins) || m.Completed != w.Completed || m.Scope != scope {
			t.Errorf("minute %d is %+v, want %+v", i, m, w)
		}
	}
}

// TestRecentErrors: of events that are tried again and of those that have failed, of this handler alone.
func TestRecentErrors(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	scope, reader := inspectedScope(), inspect.New(store.Pool())
	ids := emit(t, store, 2)
	for _, sql := range []string{
		`INSERT INTO event_attempts (event_id, attempt, canvas_id, started_at, duration, error)
			SELECT $4, i, $1::uuid, now() - (9 - i) * interval '1 minute', '1 s', 'attempt ' || i || ' of ' || $2::text || $3::text FROM generate_series(1, 3) AS i`,
		`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at, created_at)
			SELECT $4 + 100 + i, $1::uuid, $2, CASE WHEN i = 3 THEN 'other' ELSE $3 END, '_', '{}', (CASE WHEN i = 2 THEN 'COMPLETED' ELSE 'FAILED' END)::event_log_status, 0, 1, 'end ' || i, now(), now() - i * interval '1 minute'
			FROM generate_series(1, 4) AS i`,
	} {
		if _, err := store.Pool().Exec(ctx, sql, [16]byte(scope.Canvas), scope.Module, scope.Name, ids[1]); err != nil {
			t.Fatal(err)
		}
	}
	found, err := reader.RecentErrors(ctx, scope, 3)
	if err != nil || len(found) != 3 || found[0].Error != "end 1" || !found[0].Failed || found[1].Error != "end 4" || found[2].Event != ids[1] || found[2].Failed {
		t.Errorf("the errors are %+v, %v", found, err)
	}
}

// TestHeld: what each worker has in hand, from what its locks say, and nothing of runs that have not begun.
func TestHeld(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	ids := emit(t, store, 12)
	claim := eventqueue.WorkerNumber(7).Claim(5)
	if _, err := store.Pool().Exec(ctx, `UPDATE events_v2 SET locked_at = now(), begun = id <> $2, attempts = 3, claim_id = $1::bigint + 3 WHERE id < $3`, claim, ids[0], ids[11]); err != nil {
		t.Fatal(err)
	}
	held, more, err := inspect.New(store.Pool()).Held(ctx)
	if err != nil || more || len(held) != 1 || held[7] == nil || held[7].Count != 10 || len(held[7].Oldest) != 5 || held[7].Oldest[0].ID != ids[1] {
		t.Errorf("held: %+v, %t, %v", held, more, err)
	}
}
