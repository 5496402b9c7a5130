package inspect_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// many puts n events into the queue and the history, most of them of another handler than inspectedScope's: that has
// one at the end.
func many(t *testing.T, store *pgstore.Store, n int) {
	t.Helper()
	scope := inspectedScope()
	for _, statement := range []string{
		`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, notified_at)
		 SELECT $1, $2, CASE WHEN i = $4 THEN $3 ELSE 'other' END, '_', repeat('x', 200), now() FROM generate_series(1, $4::int) AS i`,
		`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at)
		 SELECT i, $1, $2, CASE WHEN i = $4 THEN $3 ELSE 'other' END, '_', repeat('x', 200), 'COMPLETED', 0, 1, now() FROM generate_series(1, $4::int) AS i`,
	} {
		if _, err := store.Pool().Exec(testenv.Context(t), statement, [16]byte(scope.Canvas), scope.Module, scope.Name, n); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Pool().Exec(testenv.Context(t), `VACUUM ANALYZE events_v2, event_log`); err != nil {
		t.Fatal(err)
	}
}

// A list whose filter matches one event among many reads a part of them, says where it goes on, and finds it in the end.
func TestListReadsABoundedPartPerPage(t *testing.T) {
	t.Parallel()
	const events, part = 1000, 300
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	many(t, store, events)
	reader := inspect.New(store.Pool())
	reader.ReadAtMost(part)
	nameOnly := inspect.Filter{Name: inspectedScope().Name}
	for name, list := range map[string]func(after eventqueue.EventID) (int, eventqueue.EventID, error){
		"queue": func(after eventqueue.EventID) (int, eventqueue.EventID, error) {
			found, next, err := reader.List(ctx, nameOnly, inspect.Waiting, false, after, 10)
			return len(found), next, err
		},
		"history": func(after eventqueue.EventID) (int, eventqueue.EventID, error) {
			found, next, err := reader.Log(ctx, inspect.LogFilter{Filter: nameOnly}, false, inspect.LogPlace{ID: after}, 10)
			return len(found), next.ID, err
		},
	} {
		var nexts []eventqueue.EventID
		found, after := 0, eventqueue.EventID(0)
		for first := true; first || after > 0; first = false {
			n, next, err := list(after)
			if err != nil {
				t.Fatal(err)
			}
			found, after, nexts = found+n, next, append(nexts, next)
		}
		if want := []eventqueue.EventID{part, 2 * part, 3 * part, 0}; found != 1 || !slices.Equal(nexts, want) {
			t.Errorf("%s: found %d, and went on after %v, want %v", name, found, nexts, want)
		}
	}
	// By its handler it is found at once, and the newest first at once as well.
	found, next, err := reader.List(ctx, inspect.FilterOf(inspectedScope()), "", false, 0, 10)
	if len(found) != 1 || next != 0 || err != nil {
		t.Errorf("by handler: %d events, goes on after %d, %v", len(found), next, err)
	}
	// A canvas with few events is read as a whole, whatever the bound.
	canvas := inspectedScope().Canvas
	page, next, err := reader.List(ctx, inspect.Filter{Canvas: &canvas}, "", false, part, part+100)
	if len(page) != part+100 || page[0].ID != part+1 || next != 2*part+100 || err != nil {
		t.Errorf("by canvas: %d events, goes on after %d, %v", len(page), next, err)
	}
	newest, place, err := reader.Log(ctx, inspect.LogFilter{Filter: nameOnly}, true, inspect.LogPlace{}, 10)
	if len(newest) != 1 || place.ID != events-part+1 || err != nil {
		t.Errorf("newest: %d events, goes on after %d, %v", len(newest), place.ID, err)
	}
}

// What a search reads does not depend on how many events there are, nor on how few of them match.
func TestSearchReadsABoundedNumberOfPages(t *testing.T) {
	t.Parallel()
	store := pgstore.New(testenv.Pool(t))
	many(t, store, 20_000) // in more than 600 pages of 8 kB
	scope := inspectedScope()
	for name, sql := range inspect.Windows {
		handler := "nobody"
		if strings.HasSuffix(name, "of a handler") {
			handler = "other" // its index alone finds that nobody has none
		}
		after := int64(0)
		if strings.HasPrefix(name, "newest") {
			after = math.MaxInt64
		}
		args := []any{(*[16]byte)(&scope.Canvas), scope.Module, handler, nil, after, 200, 100, "", "", "", nil, ""}
		if blocks, plan := pagesRead(t, store, sql, args...); blocks > 60 {
			t.Errorf("%s: 200 events cost %d pages:\n%s", name, blocks, plan)
		}
	}
	for name, sql := range inspect.LogWays {
		id := int64(0)
		if strings.HasPrefix(name, "newest") {
			id = math.MaxInt64
		}
		args := []any{(*[16]byte)(&scope.Canvas), scope.Module, "nobody", nil, "FAILED", "", nil, nil, nil, id, 200, false, 100, 1024, "", "", ""}
		if blocks, plan := pagesRead(t, store, sql, args...); blocks > 60 {
			t.Errorf("%s: 200 events cost %d pages:\n%s", name, blocks, plan)
		}
	}
}

// pagesRead executes a statement, and returns how many pages of 8 kB it has read, with its plan.
func pagesRead(t *testing.T, store *pgstore.Store, sql string, args ...any) (pages int, plan string) {
	t.Helper()
	var text []byte
	if err := store.Pool().QueryRow(testenv.Context(t), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+sql, args...).Scan(&text); err != nil {
		t.Fatal(err)
	}
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan.Hit + plans[0].Plan.Read, string(text)
}
