package pgstore_test

import (
	"testing"
	"time"

	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// write writes one end in a transaction of the store's own.
func (r *rig) write(end worker.Completion, retain bool) worker.WriteResult {
	r.t.Helper()
	written, err := r.store.Complete(testenv.Context(r.t), nil, []worker.Completion{end}, retain)
	if err != nil {
		r.t.Fatal(err)
	}
	return written
}

// TestEndFindsItsRowByItsRowID (I12): no index is read for one that deletes it.
func TestEndFindsItsRowByItsRowID(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r = r.withConns(1)
	for _, way := range ways[:4] {
		t.Run(way.name, func(t *testing.T) {
			r := &rig{t, r.pool, r.store}
			id := r.insert(event())[0]
			f := r.look(id)[id]
			end := worker.Completion{Claim: worker.Claim{Event: id, Attempt: f.Attempt}, RowID: f.RowID, Label: way.label, Delay: time.Second}
			if end.RowID == 0 {
				t.Fatal("the claim says no place")
			}
			const reads = `SELECT idx_scan FROM pg_stat_user_tables WHERE relname = 'events_v2'`
			r.flush()
			before := one[int](r, reads)
			if written := r.write(end, way.retain); len(written.Done) != 1 {
				t.Errorf("wrote %+v", written)
			}
			r.flush()
			if n := one[int](r, reads) - before; n != 0 {
				t.Errorf("an index was read %d times", n)
			}
		})
	}
}

// TestRowIDIsNoFence (I5): at the place of a row that another has claimed since,
// or of another event's row, nothing is written.
func TestRowIDIsNoFence(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			r := &rig{t, r.pool, r.store}
			ids := r.insert(event(), event())
			stale := r.claim(ids[0])
			r.expire(ids[0])
			now := r.look(ids[0])[ids[0]]
			other := r.look(ids[1])[ids[1]]
			before, otherBefore := r.mustRow(ids[0]), r.mustRow(ids[1])
			written := r.write(worker.Completion{Claim: stale, RowID: now.RowID, Label: way.label, Delay: time.Second}, way.retain)
			if len(written.Done) != 0 || len(written.Lost) != 1 {
				t.Errorf("with a stale claim: %+v, want it lost", written)
			}
			r.unchanged(ids[0], before)

			holds := worker.Completion{Claim: worker.Claim{Event: ids[0], Attempt: now.Attempt}, RowID: other.RowID, Label: way.label, Delay: time.Second}
			written = r.write(holds, way.retain)
			if len(written.Done)+len(written.Lost) != 0 {
				t.Errorf("at the place of another row: %+v", written)
			}
			r.unchanged(ids[0], before)
			r.unchanged(ids[1], otherBefore)
			holds.RowID = 0
			if written = r.write(holds, way.retain); len(written.Done) != 1 {
				t.Errorf("without a place: %+v", written)
			}
		})
	}
}

// TestRenewalMovesTheRow: an end that is sent with the place of before is not
// written, and not lost; the next try is without it.
func TestRenewalMovesTheRow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.insert(event())[0]
	f := r.look(id)[id]
	c := worker.Claim{Event: id, Attempt: f.Attempt}
	if _, err := r.store.Renew(testenv.Context(t), []worker.Claim{c}); err != nil {
		t.Fatal(err)
	}
	end := worker.Completion{Claim: c, RowID: f.RowID, Label: machine.ExecutesToCompletion}
	if written := r.write(end, false); len(written.Done)+len(written.Lost) != 0 {
		t.Errorf("at the old place: %+v", written)
	}
	end.RowID = 0
	if written := r.write(end, false); len(written.Done) != 1 {
		t.Errorf("without a place: %+v", written)
	}
}
