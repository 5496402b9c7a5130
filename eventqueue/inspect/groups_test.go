package inspect_test

import (
	"fmt"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// emitKeyed emits n events of an ordering key on a canvas, one after the other.
func emitKeyed(t *testing.T, store *pgstore.Store, canvas eventqueue.CanvasID, key string, n int) (ids []eventqueue.EventID) {
	t.Helper()
	for range n {
		inserted, err := store.Insert(testenv.Context(t), nil, []eventqueue.NewEvent{{Canvas: canvas, Module: "WORKER", Name: "ship", Modifier: "_", Value: []byte(`1`), OrderingKey: key}}, eventqueue.NotifyModeLater)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, inserted[0].ID)
	}
	if _, err := store.Advance(testenv.Context(t), nil, ids); err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestWaitingGroupsAreListedByPage: groups in which events wait, a page at a time, with their heads and bounded counts; groups in
// which none waits, and those of other canvases, are left out.
func TestWaitingGroupsAreListedByPage(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	reader := inspect.New(store.Pool())
	one, two := eventqueue.CanvasID{0: 1, 6: 0x40, 8: 0x80}, eventqueue.CanvasID{0: 2, 6: 0x40, 8: 0x80}
	heads := map[string]eventqueue.EventID{"order 1": emitKeyed(t, store, one, "order 1", 3)[0], "order 3": emitKeyed(t, store, one, "order 3", 2)[0]}
	emitKeyed(t, store, one, "order 2", 1)
	heads["order 4"] = emitKeyed(t, store, two, "order 4", 2)[0]
	var seen []string
	for after := new(inspect.GroupPlace); after != nil; {
		var groups []inspect.WaitingGroup
		var err error
		if groups, after, err = reader.WaitingGroups(ctx, nil, *after, 2); err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			seen = append(seen, fmt.Sprintf("%s: %d, %d wait", g.Of.Key, g.Admitted, g.Waiting))
			if g.Head != heads[g.Of.Key] || g.Of.Max != 1 {
				t.Errorf("%+v", g)
			}
		}
	}
	if got := fmt.Sprint(seen); got != "[order 1: 1, 2 wait order 3: 1, 1 wait order 4: 1, 1 wait]" {
		t.Errorf("the groups are %s", got)
	}
	groups, next, err := reader.WaitingGroups(ctx, &one, inspect.GroupPlace{}, 10)
	if err != nil || len(groups) != 2 || next != nil {
		t.Errorf("those of a canvas are %+v, %v, %v", groups, next, err)
	}
	explained, err := reader.ExplainMany(ctx, []eventqueue.EventID{heads["order 1"], heads["order 1"] + 1, 999})
	if err != nil || len(explained) != 3 || explained[1].Shown.Group == nil || explained[1].Shown.Group.Next != heads["order 1"] || explained[2].Shown.Queued != nil {
		t.Errorf("explained: %+v, %v", explained, err)
	}
}

// TestGroupsWithoutWaitingEventsAreLeftOut end a page with a place to go on from, and a long group is counted up to a bound.
func TestGroupsWithoutWaitingEventsAreLeftOut(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	reader, canvas := inspect.New(store.Pool()), eventqueue.CanvasID{0: 1, 6: 0x40, 8: 0x80}
	if _, err := store.Pool().Exec(ctx, `INSERT INTO event_groups (event_id, stage, canvas_id, group_key, admitted)
		SELECT i, 1, $1::uuid, 'key ' || to_char(i, '00000'), true FROM generate_series(1, 2500) AS i
		UNION ALL SELECT i, 1, $1, 'key x', false FROM generate_series(5001, 6500) AS i`, [16]byte(canvas)); err != nil {
		t.Fatal(err)
	}
	groups, next, err := reader.WaitingGroups(ctx, nil, inspect.GroupPlace{}, 10)
	if err != nil || len(groups) != 0 || next == nil {
		t.Fatalf("the first look: %+v, %v, %v", groups, next, err)
	}
	groups, next, err = reader.WaitingGroups(ctx, nil, *next, 10)
	if err != nil || len(groups) != 1 || next != nil || groups[0].Waiting != inspect.CountedInGroup+1 || groups[0].Head != 5001 || groups[0].Of.Key != "x" {
		t.Errorf("the second look: %+v, %v, %v", groups, next, err)
	}
}

// TestLimitsShowTheirUse: concurrency limits with what runs and what waits.
func TestLimitsShowTheirUse(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	reader, canvas := inspect.New(store.Pool()), eventqueue.CanvasID{0: 1, 6: 0x40, 8: 0x80}
	for _, limit := range []operate.ConcurrencyLimit{{Canvas: canvas, Module: "WORKER", Name: "ship", Max: 2}, {Canvas: canvas, Max: 9}, {Canvas: canvas, EveryKey: true, Max: 3}} {
		if _, err := store.SetConcurrencyLimit(ctx, limit); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Pool().Exec(ctx, `INSERT INTO event_groups (event_id, stage, canvas_id, group_key, admitted)
		SELECT i, 2, $1::uuid, $2, i < 3 FROM generate_series(1, 7) AS i`, [16]byte(canvas), operate.ConcurrencyLimit{Module: "WORKER", Name: "ship"}.Group()); err != nil {
		t.Fatal(err)
	}
	limits, err := reader.LimitsInUse(ctx, nil, 10)
	if got := fmt.Sprint(limits); err != nil || len(limits) != 3 || limits[0].Max != 9 || limits[1].Admitted != 2 || limits[1].Waiting != 5 || !limits[2].EveryKey {
		t.Errorf("the limits are %s, %v", got, err)
	}
	limits, err = reader.LimitsOfHandlers(ctx, eventqueue.Scope{Canvas: canvas, Module: "WORKER", Name: "ship"})
	if err != nil || len(limits) != 2 || limits[1].Name != "ship" || limits[1].Waiting != 5 {
		t.Errorf("those of a handler are %+v, %v", limits, err)
	}
}

// TestRemovedLimitIsExplained: behind more events than one call admits, an event waits in the group of a limit that
// was removed.
func TestRemovedLimitIsExplained(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	canvas := eventqueue.CanvasID{0: 1, 6: 0x40, 8: 0x80}
	last := emitKeyed(t, store, canvas, "", 1001)[1000]
	if _, err := store.Pool().Exec(ctx, `UPDATE events_v2 SET group_state = 1`); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Pool().Exec(ctx, `INSERT INTO event_groups (canvas_id, group_key, stage, event_id, admitted)
		SELECT canvas_id, events_v2_group_key(3, module, name, ''), 3, id, false FROM events_v2`); err != nil {
		t.Fatal(err)
	}
	shown, err := inspect.New(store.Pool()).Show(ctx, last)
	if err != nil || shown.Group == nil || shown.Group.Of.Max != 0 || shown.Group.Next == 0 {
		t.Errorf("it is shown as %+v, %v", shown, err)
	}
	explained, err := inspect.New(store.Pool()).Explain(ctx, last)
	if err != nil || !strings.Contains(fmt.Sprint(explained.Reasons), "whose limit was removed") {
		t.Errorf("it is explained by %+v, %v", explained.Reasons, err)
	}
}
