package inspect_test

import (
	"fmt"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// outline writes a tree as 1[2[3] 4!], where ! stands for an event that has ended and ? for one
// that is gone.
func outline(t *inspect.Tree) string {
	if t == nil {
		return "none"
	}
	text := t.ID.String()
	switch {
	case t.Logged != nil:
		text += "!"
	case t.Queued == nil:
		text += "?"
	}
	var children []string
	for _, child := range t.Children {
		children = append(children, outline(child))
	}
	if len(children) == 0 {
		return text
	}
	return text + "[" + strings.Join(children, " ") + "]"
}

// TestTreeShowsTheFamilyOfAnEvent: the family of an event, whoever of it is asked for, in both tables; with circles and
// parents that nobody knows, and never more than was asked for.
func TestTreeShowsTheFamilyOfAnEvent(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	emit(t, store, 9)
	for id, parent := range map[int]int{2: 1, 3: 1, 4: 2, 5: 4, 7: 1000, 8: 9, 9: 8} {
		if _, err := store.Pool().Exec(ctx, `UPDATE events_v2 SET parent_id = $2 WHERE id = $1`, id, parent); err != nil {
			t.Fatal(err)
		}
	}
	// 3 and 4 have ended, with their parents in the history, and 6 is alone.
	if _, err := store.Pool().Exec(ctx, `WITH ended AS (DELETE FROM events_v2 WHERE id IN (3, 4) RETURNING *)
		INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at, parent_id)
		SELECT id, canvas_id, module, name, modifier, value, 'COMPLETED', 0, 1, enqueued_at, parent_id FROM ended`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id    eventqueue.EventID
		limit int
		want  string
	}{
		{1, 100, "1[2[4![5]] 3!]"}, {5, 100, "1[2[4![5]] 3!]"}, {3, 100, "1[2[4![5]] 3!]"}, {6, 100, "6"},
		{7, 100, "1000?[7]"}, {1000, 100, "1000?[7]"}, {8, 100, "9[8]"}, {77, 100, "none"},
		{1, 3, "1[2 3!] more"}, {1, 5, "1[2[4![5]] 3!]"}, {1, 1, "1 more"},
	} {
		tree, more, err := inspect.New(store.Pool()).Tree(ctx, c.id, c.limit)
		if err != nil {
			t.Fatal(err)
		}
		got := outline(tree)
		if more {
			got += " more"
		}
		if got != c.want {
			t.Errorf("the tree of %s with at most %d events is %s, want %s", c.id, c.limit, got, c.want)
		}
	}
}

// TestListFiltersByAttributes, in the queue and in the history.
func TestListFiltersByAttributes(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	ids := emit(t, store, 4)
	for i, text := range []string{`{"user": "ada", "zone": "a"}`, `{"user": "ada"}`, `{"user": "bob"}`} {
		if _, err := store.Pool().Exec(ctx, `UPDATE events_v2 SET attributes = $2 WHERE id = $1`, ids[i], text); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Pool().Exec(ctx, `INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at, attributes)
		SELECT id + 100, canvas_id, module, name, modifier, value, 'COMPLETED', 0, 1, enqueued_at, attributes FROM events_v2`); err != nil {
		t.Fatal(err)
	}
	reader := inspect.New(store.Pool())
	for _, c := range []struct {
		pairs map[string]string
		want  string
	}{
		{nil, "[1 2 3 4]"}, {map[string]string{"user": "ada"}, "[1 2]"}, {map[string]string{"user": "ada", "zone": "a"}, "[1]"},
		{map[string]string{"zone": "b"}, "[]"},
	} {
		filter := inspect.Filter{Attributes: c.pairs}
		var listed, logged, newest []eventqueue.EventID
		events, _, err := reader.List(ctx, filter, "", false, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			listed = append(listed, e.ID)
		}
		for _, backwards := range []bool{false, true} {
			entries, _, err := reader.Log(ctx, inspect.LogFilter{Filter: filter}, backwards, inspect.LogPlace{}, 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if backwards {
					newest = append([]eventqueue.EventID{e.ID - 100}, newest...)
				} else {
					logged = append(logged, e.ID-100)
				}
			}
		}
		if got := fmt.Sprint(listed); got != c.want || fmt.Sprint(logged) != c.want || fmt.Sprint(newest) != c.want {
			t.Errorf("with %v: events %s, in the history %v and %v, want %s", c.pairs, got, logged, newest, c.want)
		}
	}
}
