package pgstore_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/worker"
	"eventsv2/internal/refusal"
	"eventsv2/test/testenv"
)

// The trigger refuses rows with the value "bad", and after so many has no time for more.
const refuseFewSQL = `
CREATE FUNCTION refuse_few() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.value <> '"bad"' THEN
        RETURN NEW;
    ELSIF nextval('refusals') <= 100 THEN
        RAISE EXCEPTION 'not this row' USING ERRCODE = '23514';
    END IF;
    RAISE EXCEPTION 'no time is left' USING ERRCODE = '57014';
END $$`

// TestManyRefusedRowsTakeNoTimeFromOtherCanvases (I15, I20): when there is time for a few of
// these rows only, the event of another canvas is taken in the same part, or the next one.
func TestManyRefusedRowsTakeNoTimeFromOtherCanvases(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"TakeDue", "TakeRound of handlers"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			id := r.crowd(crowdCases[name])
			r.exec(`CREATE SEQUENCE refusals`)
			r.exec(refuseFewSQL)
			r.exec(`CREATE TRIGGER refuse_few BEFORE UPDATE ON events_v2 FOR EACH ROW EXECUTE FUNCTION refuse_few()`)
			take := crowdCases[name].take(r)
			for range 2 {
				taken, _, err := take(testenv.Context(t))
				if slices.ContainsFunc(taken, func(n eventqueue.Notification) bool { return n.Event == id }) {
					return
				}
				t.Logf("the part ended with %v", err)
				r.exec(`ALTER SEQUENCE refusals RESTART`)
			}
			t.Error("the event of the other canvas was not taken")
		})
	}
}

// crowdCase is a part of the relay. take is called until it has gone by all events once. The crowd is
// larger than what a part reads, as a refused row costs a statement or two.
type crowdCase struct {
	size    int
	prepare string
	keys    bool
	take    func(r *rig) func(context.Context) (taken []eventqueue.Notification, more bool, err error)
}

func crowdRoundOf(stage maintenance.RoundStage) func(r *rig) func(context.Context) ([]eventqueue.Notification, bool, error) {
	return func(r *rig) func(context.Context) ([]eventqueue.Notification, bool, error) {
		after := maintenance.RoundPlace{Stage: stage}
		return func(ctx context.Context) (lost []eventqueue.Notification, more bool, err error) {
			lost, after, err = r.store.TakeRound(ctx, after, time.Minute)
			return lost, after != (maintenance.RoundPlace{}) && after.Stage == stage, err
		}
	}
}

// crowdLimit is the limit of the parts that have a parameter for it. Half of it is more than the
// trigger of refuseFewSQL refuses while there is time.
const crowdLimit = 400

var crowdCases = map[string]crowdCase{
	"TakeDue": {size: crowdLimit + 100, prepare: pendingSQL, take: func(r *rig) func(context.Context) ([]eventqueue.Notification, bool, error) {
		first := true
		return func(ctx context.Context) ([]eventqueue.Notification, bool, error) {
			taken, err := r.store.TakeDue(ctx, time.Minute, crowdLimit, nil)
			more := first // that others wait behind the oldest is known then
			first = false
			return taken, more, err
		}
	}},
	"Sweep": {size: crowdLimit + 100, prepare: lostLongAgoSQL, take: func(r *rig) func(context.Context) ([]eventqueue.Notification, bool, error) {
		var after eventqueue.EventID
		return func(ctx context.Context) ([]eventqueue.Notification, bool, error) {
			swept, err := r.store.Sweep(ctx, after, crowdLimit, time.Minute)
			after = swept.Next
			return swept.Lost, after != 0, err
		}
	}},
	"TakeRound of handlers": {size: crowdLimit + 100, prepare: lostLongAgoSQL, take: crowdRoundOf(maintenance.RoundOfHandlers)},
	"TakeRound of groups":   {size: 600, prepare: lostLongAgoSQL, keys: true, take: crowdRoundOf(maintenance.RoundOfGroups)},
	"TakeRound of runs":     {size: 2000, prepare: diedLongAgoSQL, take: crowdRoundOf(maintenance.RoundOfRuns)},
}

// crowd makes many rows with the value "bad" of a canvas, and then an event of another, which
// has waited for less time. It returns the latter.
func (r *rig) crowd(c crowdCase) eventqueue.EventID {
	r.t.Helper()
	r.backlog(canvas, c.size)
	r.exec(`UPDATE events_v2 SET value = '"bad"'`)
	other := event()
	other.Canvas = another
	id := r.insert(other)[0]
	if c.keys {
		r.exec(`UPDATE events_v2 SET ordering_key = 'k' || id, group_state = 3`)
		for portion := range slices.Chunk(r.ids(`SELECT id FROM events_v2 ORDER BY id`), worker.MaxGrouped) {
			r.advanced(nil, portion)
		}
	}
	r.exec(c.prepare)
	r.exec(`UPDATE events_v2 SET delay_until = delay_until - interval '1 minute' WHERE id <> $1`, id)
	return id
}

// TestManyRefusedRowsDelayNoOtherCanvas (I15, I20): a crowd of rows of a canvas, older than
// any other, leave room under the limits of each part of the relay for an event of another canvas.
func TestManyRefusedRowsDelayNoOtherCanvas(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, 30*time.Second) // for as many statements as rows, of which a part may take so long
	for name, c := range crowdCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			id := r.crowd(c)
			r.refuseUpdates("23514")
			take := c.take(r)
			for more := true; more; {
				var taken []eventqueue.Notification
				var err error
				if taken, more, err = take(testenv.Context(t)); err != nil && !refusal.Is(err) {
					t.Fatal(err)
				}
				if slices.ContainsFunc(taken, func(n eventqueue.Notification) bool { return n.Event == id }) {
					return
				}
			}
			t.Error("the event of the other canvas was not taken")
		})
	}
}
