package inspect_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// fail puts an event into the history for each error, as failed, with ids from first on; all end at once.
func fail(t *testing.T, store *pgstore.Store, first int, errors ...string) {
	t.Helper()
	scope := inspectedScope()
	if _, err := store.Pool().Exec(testenv.Context(t), `
		INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at, created_at)
		SELECT $4 + n - 1, $1, $2, $3, '_', '{}', 'FAILED', 0, 1, e, now(), now() FROM unnest($5::text[]) WITH ORDINALITY AS of (e, n)`,
		[16]byte(scope.Canvas), scope.Module, scope.Name, first, errors); err != nil {
		t.Fatal(err)
	}
}

// complete puts n completed events into the history, with ids above those of fail.
func complete(t *testing.T, store *pgstore.Store, n int) {
	t.Helper()
	scope := inspectedScope()
	for _, sql := range []string{`
		INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at)
		SELECT 1000000 + i, $1, $2, CASE i % 2 WHEN 0 THEN $3 ELSE 'other' END, '_', repeat('x', 100), 'COMPLETED', 0, 1, now() FROM generate_series(1, $4) AS i`} {
		if _, err := store.Pool().Exec(testenv.Context(t), sql, [16]byte(scope.Canvas), scope.Module, scope.Name, n); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Pool().Exec(testenv.Context(t), `VACUUM ANALYZE event_log`); err != nil {
		t.Fatal(err)
	}
}

// Failed events are found, and grouped, however many have completed after them; and what is read for that does not depend on these.
func TestFailuresAreFoundBehindCompletedEvents(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	scope, reader := inspectedScope(), inspect.New(store.Pool())
	var errors []string
	for i := range 2000 {
		errors = append(errors, map[bool]string{true: "no such customer ", false: "card was refused: code "}[i%4 == 0]+time.Duration(i).String())
	}
	fail(t, store, 1, errors...)
	complete(t, store, 60_000)
	for name, filter := range map[string]inspect.Filter{"all": {}, "canvas": {Canvas: &scope.Canvas}, "handler": inspect.FilterOf(scope)} {
		f := inspect.LogFilter{Filter: filter}
		found, err := reader.FailureGroups(ctx, f, 10)
		if err != nil || found.Events != 2000 || found.Bounded || found.More != 0 {
			t.Fatalf("%s: %+v, %v", name, found, err)
		}
		var sum int64
		for _, group := range found.Groups {
			f.ErrorGroup = group.ErrorGroup
			sum += group.Count
			if entries, _, err := reader.Log(ctx, f, true, inspect.LogPlace{}, 3000); int64(len(entries)) != group.Count || entries[0].ID != group.Newest || err != nil {
				t.Errorf("%s: the list of %+v has %d events, %v", name, group, len(entries), err)
			}
		}
		if sum != 2000 || found.Groups[0].Count < found.Groups[len(found.Groups)-1].Count {
			t.Errorf("%s: the groups are %+v", name, found.Groups)
		}
	}
	recent, err := reader.RecentErrors(ctx, scope, 5)
	if err != nil || len(recent) != 5 || !recent[0].Failed {
		t.Errorf("the last errors are %+v, %v", recent, err)
	}
	for name, sql := range inspect.GroupWays {
		args := []any{(*[16]byte)(&scope.Canvas), scope.Module, scope.Name, nil, "FAILED", "", nil, nil, 100_000, 1024, [16]byte{}}
		if pages, plan := pagesRead(t, store, sql, args...); pages > 200 {
			t.Errorf("%s: 2,000 events cost %d pages:\n%s", name, pages, plan)
		}
	}
	for name, sql := range inspect.LogWays {
		if !strings.Contains(name, "failed") {
			continue
		}
		id := int64(0)
		if strings.HasPrefix(name, "newest") {
			id = math.MaxInt64
		}
		args := []any{(*[16]byte)(&scope.Canvas), scope.Module, scope.Name, nil, "FAILED", "", nil, nil, nil, id, 10_000, false, 100, 1024, "", "", ""}
		if pages, plan := pagesRead(t, store, sql, args...); pages > 200 {
			t.Errorf("%s: 2,000 events cost %d pages:\n%s", name, pages, plan)
		}
	}
}

// Completed events are in no index but that of their ids, so that what a worker writes for them stays as it is.
func TestCompletedEventsAreInNoIndexOfFailures(t *testing.T) {
	t.Parallel()
	store := pgstore.New(testenv.Pool(t))
	complete(t, store, 1000)
	var entries float64
	if err := store.Pool().QueryRow(testenv.Context(t), `SELECT sum(reltuples) FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
		WHERE i.indrelid = 'event_log'::regclass AND NOT i.indisprimary`).Scan(&entries); err != nil || entries != 0 {
		t.Errorf("indexes of event_log have %v completed events, %v", entries, err)
	}
}

// The filter of a group selects each event that the group counts, and no other.
func TestFilterOfAGroupSelectsExactlyTheGroup(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	scope, reader := inspectedScope(), inspect.New(store.Pool())
	long := strings.Repeat("x", 300)
	errors := []string{"column 1", "column 22", "column #", "column bad", "column 0xbad", "", " ", "column  3", "column 1 2", "% _ \\ 7", "% _ \\ 8", "\x1b[31mred 1\u202e", "\x1b[31mred 2\u202e",
		long + " 1", long + " 22", long + "y", "first\nsecond 1", "first second 2", "é" + strings.Repeat("ü", 400) + "1", "é" + strings.Repeat("ü", 400) + "2",
		strings.Repeat("6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 ", 60), strings.Repeat("00000000-3a56-4a0c-9c2e-6f3b1d0c7a11 ", 60)}
	fail(t, store, 1, errors...)
	found, err := reader.FailureGroups(ctx, inspect.LogFilter{}, 100)
	if err != nil || int(found.Events) != len(errors) || len(found.Groups) != 11 {
		t.Fatalf("%d groups of %d events, %v: %+v", len(found.Groups), found.Events, err, found.Groups)
	}
	for _, group := range found.Groups {
		var want []eventqueue.EventID
		for i, text := range errors {
			if operate.ErrorGroup(text) == group.ErrorGroup {
				want = append(want, eventqueue.EventID(i+1))
			}
		}
		ids, next, err := store.SelectLogged(ctx, operate.EventFilter{Canvas: &scope.Canvas, Module: scope.Module, Name: scope.Name, ErrorGroup: group.ErrorGroup}, 0, 1000, 1000)
		if !slices.Equal(ids, want) || int64(len(ids)) != group.Count || next != 0 || err != nil {
			t.Errorf("%q selects %v, want %v; %v", group.ErrorGroup, ids, want, err)
		}
		entries, _, err := reader.Log(ctx, inspect.LogFilter{ErrorGroup: group.ErrorGroup}, true, inspect.LogPlace{}, 100)
		if int64(len(entries)) != group.Count || err != nil {
			t.Errorf("%q lists %d entries, want %d; %v", group.ErrorGroup, len(entries), group.Count, err)
		}
	}
}

// A list by end goes on where it was, also where the last event of a page was retried meanwhile and others ended at the same time.
func TestHistoryByEndGoesOnWithoutItsLastEvent(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	reader := inspect.New(store.Pool())
	fail(t, store, 1, slices.Repeat([]string{"the bank is down"}, 25)...)
	var got []eventqueue.EventID
	for text := ""; ; {
		place, err := inspect.ParseLogPlace(text)
		if err != nil {
			t.Fatal(err)
		}
		page, next, err := reader.Log(ctx, inspect.LogFilter{Status: inspect.LogFailed, Error: "bank"}, true, place, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			got = append(got, e.ID)
		}
		if text = next.String(); text == "" {
			break
		}
		if _, err := store.Pool().Exec(ctx, `DELETE FROM event_log WHERE id = $1`, got[len(got)-1]); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 25 || got[0] != 25 || got[24] != 1 {
		t.Errorf("the pages show %v", got)
	}
	for _, text := range []string{"x", "1.", ".1", "-1", "0", "0.1", "1.0", "9223372036854775807.1", "1.1.1"} {
		if _, err := inspect.ParseLogPlace(text); err == nil {
			t.Errorf("%q is taken for a place", text)
		}
	}
	if _, _, err := reader.Log(ctx, inspect.LogFilter{Status: inspect.LogFailed}, true, inspect.LogPlace{ID: 7}, 10); err == nil {
		t.Error("a place of a list by id is taken for one of a list by end")
	}
}

// Failed events are found by a part of their error and by when they ended; rows of any time are read.
func TestFailuresAreFilteredByErrorAndTime(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	reader := inspect.New(store.Pool())
	fail(t, store, 1, "the bank is down", "the bank is closed", "no such customer", "the bank of 1", "the bank of 2")
	for id, at := range map[int]string{2: "now() - interval '2 hours'", 4: "'infinity'", 5: "'-infinity'"} {
		if _, err := store.Pool().Exec(ctx, `UPDATE event_log SET created_at = `+at+` WHERE id = $1`, id); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		filter inspect.LogFilter
		want   []eventqueue.EventID
	}{
		{inspect.LogFilter{Error: "bank"}, []eventqueue.EventID{4, 1, 2, 5}},
		{inspect.LogFilter{Error: "bank", NewerThan: time.Hour, OlderThan: time.Nanosecond}, []eventqueue.EventID{1}},
		{inspect.LogFilter{Error: "bank", OlderThan: time.Hour}, []eventqueue.EventID{2, 5}},
		{inspect.LogFilter{Status: inspect.LogCancelled}, nil},
		{inspect.LogFilter{Status: inspect.LogFailed, Filter: inspect.FilterOf(inspectedScope())}, []eventqueue.EventID{4, 3, 1, 2, 5}},
	} {
		var got []eventqueue.EventID
		entries, next, err := reader.Log(ctx, test.filter, true, inspect.LogPlace{}, 10)
		for _, e := range entries {
			got = append(got, e.ID)
		}
		if !slices.Equal(got, test.want) || next != (inspect.LogPlace{}) || err != nil {
			t.Errorf("%+v: %v, want %v; %v, %v", test.filter, got, test.want, next, err)
		}
		if test.filter.Error == "" {
			continue
		}
		if found, err := reader.FailureGroups(ctx, test.filter, 10); err != nil || int(found.Events) != len(test.want) {
			t.Errorf("%+v: groups %+v, %v", test.filter, found, err)
		}
	}
}

// Groups are counted of the events that failed last, up to a bound, and say so.
func TestGroupsAreOfTheNewestFailures(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	reader := inspect.New(store.Pool())
	reader.GroupAtMost(10)
	fail(t, store, 1, slices.Repeat([]string{"old"}, 10)...)
	if _, err := store.Pool().Exec(ctx, `UPDATE event_log SET created_at = now() - interval '1 day'`); err != nil {
		t.Fatal(err)
	}
	fail(t, store, 101, slices.Repeat([]string{"new"}, 4)...)
	for name, f := range map[string]inspect.LogFilter{"all": {}, "canvas": {Filter: inspect.Filter{Canvas: new(inspectedScope().Canvas)}}, "handler": {Filter: inspect.FilterOf(inspectedScope())}} {
		found, err := reader.FailureGroups(ctx, f, 1)
		if err != nil || !found.Bounded || found.Events != 10 || found.More != 1 || found.Groups[0].Count != 6 || found.Groups[0].ErrorGroup != "old" {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
	// Newer failures of other canvases hide none of a canvas.
	if _, err := store.Pool().Exec(ctx, `INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at)
		SELECT 1000 + i, gen_random_uuid(), 'WORKER', 'theirs', '_', '{}', 'FAILED', 0, 1, 'theirs', now() FROM generate_series(1, 10) AS i`); err != nil {
		t.Fatal(err)
	}
	if found, err := reader.FailureGroups(ctx, inspect.LogFilter{Filter: inspect.Filter{Canvas: new(inspectedScope().Canvas)}}, 9); err != nil || !found.Bounded || found.Events != 10 {
		t.Errorf("beside those of other canvases: %+v, %v", found, err)
	}
}
