package pgstore_test

import (
	"maps"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// TestAttributesSurviveHistoryAndRetry: event_log has the attributes and the parent of an
// event that ended, and a retry brings them back.
func TestAttributesSurviveHistoryAndRetry(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := event()
	e.Attributes, e.ParentID = map[string]string{"user": "ada"}, 17
	for name, label := range map[string]machine.Label{"COMPLETED": machine.ExecutesToCompletion, "FAILED": machine.FailedForGood} {
		id := r.insert(e)[0]
		claim := r.claim(id)
		written, err := r.store.Complete(testenv.Context(t), nil, []worker.Completion{{Claim: claim, Label: label, LastError: "no luck"}}, true)
		if err != nil || len(written.Done) != 1 {
			t.Fatalf("%s: %+v, %v", name, written, err)
		}
		if got := one[string](r, `SELECT concat_ws(' ', status, parent_id, attributes) FROM event_log WHERE id = $1`, id); got != name+` 17 {"user": "ada"}` {
			t.Errorf("event_log has %s", got)
		}
		if label != machine.FailedForGood {
			continue
		}
		if _, err := r.store.Retry(testenv.Context(t), operate.Edit{}, []eventqueue.EventID{id}); err != nil {
			t.Fatal(err)
		}
		if got := r.look(id)[id].Event; got.ParentID != 17 || !maps.Equal(got.Attributes, e.Attributes) {
			t.Errorf("after a retry the event has the parent %s and the attributes %q", got.ParentID, got.Attributes)
		}
	}
}

// TestAttributesWrittenByHandAreRead cost no claim: what is no text is empty, and what is no
// object has no attributes (I15).
func TestAttributesWrittenByHandAreRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for text, want := range map[string]map[string]string{
		`{"a": 1, "b": "x", "c": null, "d": {"e": "f"}}`: {"a": "", "b": "x", "c": "", "d": ""},
		`["a"]`: nil, `"a{b"`: nil, `null`: nil, `7`: nil, `{}`: nil, `{"Ü{": "}"}`: {"Ü{": "}"},
	} {
		for _, parent := range []*int64{nil, new(int64(17)), new(int64(-17))} {
			id := r.insert(event())[0]
			r.exec(`UPDATE events_v2 SET attributes = $2, parent_id = $3 WHERE id = $1`, id, text, parent)
			found := r.look(id)[id]
			if !found.Facts.Claimed || !maps.Equal(found.Event.Attributes, want) {
				t.Errorf("attributes %s: claimed %t with %q, want %q", text, found.Facts.Claimed, found.Event.Attributes, want)
			}
			if parent != nil && text[0] == '{' && found.Event.ParentID != eventqueue.EventID(*parent) {
				t.Errorf("the parent %d came out as %s", *parent, found.Event.ParentID)
			}
		}
	}
}

// TestEventWithoutAttributesIsNoLarger (I12): its row, its log row, and what they write.
func TestEventWithoutAttributesIsNoLarger(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	plain := event()
	r.insert(plain)
	delayed := event()
	delayed.DelayUntil = time.Unix(1, 0)
	r.insert(delayed)
	if n := one[int](r, `SELECT count(*) FROM events_v2 WHERE attributes IS NULL AND parent_id IS NULL`); n != 2 {
		t.Errorf("of 2 events without attributes %d have NULLs", n)
	}
	if n := one[int](r, `SELECT pg_relation_size('events_v2_parent') / current_setting('block_size')::int`); n > 1 {
		t.Errorf("the index of parents has %d pages for no child", n)
	}
	size := one[int](r, `SELECT max(pg_column_size(e.*)) FROM events_v2 e`)
	if old := one[int](r, `SELECT max(pg_column_size(e.*)) FROM (
		SELECT id, canvas_id, module, name, modifier, value, retries, delay_until, enqueued_at, locked_at, attempts, notified_at,
			unique_seconds, limited_attempt, group_state, ordering_key, snoozes, claim_id, begun, begin_first, lost_run FROM events_v2) e`); size > old {
		t.Errorf("a row has %d bytes, and %d without the two columns", size, old)
	}
}
