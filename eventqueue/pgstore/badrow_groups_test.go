package pgstore_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/internal/refusal"
	"eventsv2/test/testenv"
)

// endTogether writes completions in one call, and returns the events to which groups advanced and
// those that the error names.
func (r *rig) endTogether(claims ...worker.Claim) (advanced, named []eventqueue.EventID) {
	r.t.Helper()
	completions := make([]worker.Completion, len(claims))
	for i, c := range claims {
		completions[i] = worker.Completion{Claim: c, Grouped: true, Label: machine.ExecutesToCompletion}
	}
	written, err := r.store.Complete(testenv.Context(r.t), nil, completions, true)
	if len(written.Done) != len(claims) {
		r.t.Errorf("of %d completions these were written: %+v, %v", len(claims), written, err)
	}
	return idsOf(written.Advanced), r.namedBy(err)
}

// namedBy returns the events whose rows an error says are refused.
func (r *rig) namedBy(err error) (named []eventqueue.EventID) {
	r.t.Helper()
	var refused *refusal.Error
	if !errors.As(err, &refused) {
		if err != nil {
			r.t.Fatal(err)
		}
		return nil
	}
	for _, row := range refused.Rows {
		named = append(named, row.Event.(eventqueue.EventID))
	}
	slices.Sort(named)
	return named
}

// TestRefusedNextEventFailsNoCompletion (I1, I15): the events before it are completed, the
// other groups advance, and it is named. Its own key waits for it, as the order demands, and
// goes on once its row can be written.
func TestRefusedNextEventFailsNoCompletion(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"23514", "42501"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			ctx := testenv.Context(t)
			a, b := r.group("a", 1)[0], r.group("b", 2)
			bad := badEvent()
			bad.OrderingKey = "a"
			badID := r.insert(bad)[0]
			last := r.group("a", 1)[0]
			r.advanced(nil, []eventqueue.EventID{a, b[0], b[1], badID, last})
			claims := []worker.Claim{r.claim(a), r.claim(b[0])}
			r.refuseUpdates(state)
			advanced, named := r.endTogether(claims...)
			r.wantAdvanced("beside a refused row", advanced, b[1])
			if !slices.Equal(named, []eventqueue.EventID{badID}) {
				t.Errorf("named were %v, want %v", named, badID)
			}
			r.exec(`DROP TRIGGER refuse_bad ON events_v2`)
			repaired, err := pgstore.New(r.pool).Advance(ctx, []eventqueue.EventID{a}, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.wantAdvanced("when the row can be written", idsOf(repaired), badID)
		})
	}
}

// TestCompletionReportsWhyItsGroupCouldNotAdvance (I1, I15): once an end is written beside a refused
// row, another failure costs neither the end nor the word of it.
func TestCompletionReportsWhyItsGroupCouldNotAdvance(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r *rig, id eventqueue.EventID) error{
		"completion": func(r *rig, id eventqueue.EventID) error {
			written, err := r.store.Complete(testenv.Context(t), nil, []worker.Completion{{Claim: r.claim(id), Grouped: true, Label: machine.ExecutesToCompletion}}, true)
			if !slices.Equal(written.Done, []eventqueue.EventID{id}) {
				r.t.Errorf("written were %v, want %v", written.Done, id)
			}
			return err
		},
		"removal": func(r *rig, id eventqueue.EventID) error {
			results, _, err := r.store.Remove(testenv.Context(t), []eventqueue.EventID{id}, &operate.Cancellation{})
			if len(results) != 1 || results[0].Result != operate.ChangeDone {
				r.t.Errorf("removed were %+v, want %v", results, id)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			first := r.group("a", 1)[0]
			bad := badEvent()
			bad.OrderingKey = "a"
			next := r.insert(bad)[0]
			r.advanced(nil, []eventqueue.EventID{first, next})
			r.exec(`CREATE SEQUENCE refusals`)
			r.exec(`CREATE FUNCTION refuse_then_fail() RETURNS trigger LANGUAGE plpgsql AS $$
				BEGIN
				    IF OLD.value <> '"bad"' THEN
				        RETURN NEW;
				    ELSIF nextval('refusals') = 1 THEN
				        RAISE EXCEPTION 'not this row' USING ERRCODE = '23514';
				    END IF;
				    RAISE EXCEPTION 'no room' USING ERRCODE = '53100';
				END $$`)
			r.exec(`CREATE TRIGGER refuse_then_fail BEFORE UPDATE ON events_v2 FOR EACH ROW EXECUTE FUNCTION refuse_then_fail()`)
			err := end(r, first)
			var refused *refusal.Error
			if !errors.As(err, &refused) || refused.Advance == nil || !strings.Contains(refused.Error(), "no room") {
				t.Errorf("the error is %v", err)
			}
			if left := r.ids(`SELECT id FROM events_v2`); !slices.Equal(left, []eventqueue.EventID{next}) {
				t.Errorf("%v are left, want %v", left, next)
			}
		})
	}
}

// TestRefusedRowBlocksNoLimit (I15): under a concurrency limit the next events run in place of
// those whose rows are refused, however many these are, and these join again when they can be
// written.
func TestRefusedRowBlocksNoLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.limit(operate.ConcurrencyLimit{Canvas: canvas, Max: 2})
	first := r.insert(event(), event())
	bad := r.insert(badEvent(), badEvent(), badEvent(), badEvent())
	last := r.insert(event(), event(), event())
	r.advanced(nil, slices.Concat(first, bad, last))
	claims := []worker.Claim{r.claim(first[0]), r.claim(first[1])}
	r.refuseUpdates("P0001")
	advanced, named := r.endTogether(claims...)
	r.wantAdvanced("beside refused rows", advanced, last[0], last[1])
	if !slices.Equal(named, bad) {
		t.Errorf("named were %v, want %v", named, bad)
	}
	r.exec(`DROP TRIGGER refuse_bad ON events_v2`)
	// Nobody notifies them: the relay has to find that they wait in no group.
	if swept, err := pgstore.New(r.pool).Sweep(testenv.Context(t), 0, 100, time.Hour); err != nil || len(swept.Lost) != 0 {
		t.Fatalf("as they join again, %v may run, %v", swept.Lost, err)
	}
	advanced, _ = r.endTogether(r.claim(last[0]), r.claim(last[1]))
	r.wantAdvanced("when they can be written", advanced, bad[0], bad[1])
}

// TestRefusedArrivalFailsNoOther (I15): all others of its batch join their groups, and
// those that may run are returned.
func TestRefusedArrivalFailsNoOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.limit(operate.ConcurrencyLimit{Canvas: canvas, Max: 3})
	var ids []eventqueue.EventID
	for i := range 10 {
		e := event()
		if i%4 == 1 {
			e = badEvent()
		}
		ids = append(ids, r.insert(e)...)
	}
	r.refuseUpdates("42501")
	advanced, err := r.store.Advance(testenv.Context(t), nil, ids)
	if named := r.namedBy(err); !slices.Equal(named, []eventqueue.EventID{ids[1], ids[5], ids[9]}) {
		t.Errorf("named were %v", named)
	}
	if got := idsOf(advanced); len(got) != 3 {
		t.Errorf("%v may run, want 3 events", got)
	}
	if waiting := r.ids(`SELECT id FROM events_v2 WHERE group_state = 1`); len(waiting) != 4 {
		t.Errorf("%v wait, want 4 events", waiting)
	}
}
