package pgstore_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/refusal"
	"eventsv2/test/testenv"
)

const refuseUpdatesSQL = `
CREATE FUNCTION refuse_bad() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.value = '"bad"' THEN
        RAISE EXCEPTION 'not this row' USING ERRCODE = TG_ARGV[0];
    END IF;
    RETURN NEW;
END $$`

// refuseUpdates has the database refuse to update events with the value "bad", with a SQLSTATE.
func (r *rig) refuseUpdates(state string) {
	r.t.Helper()
	r.exec(refuseUpdatesSQL)
	r.exec(`CREATE TRIGGER refuse_bad BEFORE UPDATE ON events_v2 FOR EACH ROW EXECUTE FUNCTION refuse_bad('` + state + `')`)
}

func badEvent() eventqueue.NewEvent {
	bad := event()
	bad.Value = []byte(`"bad"`)
	return bad
}

// pageCase is a statement that takes events from a page that it reads.
type pageCase struct {
	prepare string // makes the events such that it takes them
	keys    bool   // gives each event an ordering key
	stuck   bool   // leaves them out of their groups
	take    func(ctx context.Context, r *rig, ids []eventqueue.EventID) ([]eventqueue.Notification, error)
}

func (c *pageCase) prepareEvents(r *rig, ids []eventqueue.EventID) {
	r.t.Helper()
	if c.keys && !c.stuck {
		if _, err := r.store.Advance(testenv.Context(r.t), nil, ids); err != nil {
			r.t.Fatal(err)
		}
	}
	if c.prepare != "" {
		r.exec(c.prepare)
	}
}

const (
	lostLongAgoSQL = `UPDATE events_v2 SET enqueued_at = clock_timestamp() - interval '1 hour', delay_until = clock_timestamp() - interval '1 hour',
		notified_at = clock_timestamp() - interval '1 hour'`
	diedLongAgoSQL = lostLongAgoSQL + `, attempts = 1, begun = true, locked_at = clock_timestamp() - interval '50 minutes'`
	pendingSQL     = `UPDATE events_v2 SET notified_at = NULL`
)

func takeRoundOf(stage maintenance.RoundStage) func(ctx context.Context, r *rig, _ []eventqueue.EventID) ([]eventqueue.Notification, error) {
	return func(ctx context.Context, r *rig, _ []eventqueue.EventID) ([]eventqueue.Notification, error) {
		lost, _, err := r.store.TakeRound(ctx, maintenance.RoundPlace{Stage: stage}, time.Minute)
		return lost, err
	}
}

var pageCases = map[string]pageCase{
	"TakeDue": {prepare: pendingSQL, take: func(ctx context.Context, r *rig, _ []eventqueue.EventID) ([]eventqueue.Notification, error) {
		return r.store.TakeDue(ctx, time.Minute, 100, nil)
	}},
	"TakeDue, behind": {prepare: pendingSQL, take: func(ctx context.Context, r *rig, _ []eventqueue.EventID) ([]eventqueue.Notification, error) {
		return r.store.TakeDue(ctx, time.Minute, 3, nil)
	}},
	"TakePending": {prepare: pendingSQL, take: func(ctx context.Context, r *rig, ids []eventqueue.EventID) ([]eventqueue.Notification, error) {
		return r.store.TakePending(ctx, ids)
	}},
	"MarkPending": {take: func(ctx context.Context, r *rig, ids []eventqueue.EventID) (marked []eventqueue.Notification, err error) {
		err = r.store.MarkPending(ctx, ids)
		for _, id := range r.ids(`SELECT id FROM events_v2 WHERE notified_at IS NULL`) {
			marked = append(marked, eventqueue.Notification{Event: id})
		}
		return marked, err
	}},
	"Sweep": {prepare: lostLongAgoSQL, take: func(ctx context.Context, r *rig, _ []eventqueue.EventID) ([]eventqueue.Notification, error) {
		swept, err := r.store.Sweep(ctx, 0, 100, time.Minute)
		if len(swept.Lost) > 0 && swept.Read != 12 {
			r.t.Errorf("the sweep has read %d events", swept.Read)
		}
		return swept.Lost, err
	}},
	"TakeRound of handlers":              {prepare: lostLongAgoSQL, take: takeRoundOf(maintenance.RoundOfHandlers)},
	"TakeRound of groups":                {prepare: lostLongAgoSQL, keys: true, take: takeRoundOf(maintenance.RoundOfGroups)},
	"TakeRound of groups that are stuck": {prepare: lostLongAgoSQL, keys: true, stuck: true, take: takeRoundOf(maintenance.RoundOfGroups)},
	"TakeRound of runs":                  {prepare: diedLongAgoSQL, take: takeRoundOf(maintenance.RoundOfRuns)},
	"TakeWaiting": {prepare: lostLongAgoSQL, take: func(ctx context.Context, r *rig, _ []eventqueue.EventID) ([]eventqueue.Notification, error) {
		taken, _, err := r.store.TakeWaiting(ctx, operate.Waiting{Scope: scope, Since: r.now().Add(-time.Minute)}, 100)
		return taken, err
	}},
}

// TestRefusedNotificationFailsNoOther (I15, I20): whatever takes events to notify them, or
// marks them as pending, goes around the rows that the database refuses to write, and names them.
func TestRefusedNotificationFailsNoOther(t *testing.T) {
	t.Parallel()
	for name, c := range pageCases {
		for _, state := range []string{"23514", "42501"} {
			t.Run(name+", "+state, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				var good, bad []eventqueue.EventID
				events := make([]eventqueue.NewEvent, 12)
				isBad := func(i int) bool { return i < 5 || i == 8 }
				for i := range events {
					if events[i] = event(); isBad(i) {
						events[i] = badEvent()
					}
					if c.keys {
						events[i].OrderingKey = string(rune('a' + i))
					}
				}
				ids := r.insert(events...)
				c.prepareEvents(r, ids)
				for i, id := range ids {
					if isBad(i) {
						bad = append(bad, id)
					} else {
						good = append(good, id)
					}
				}
				r.refuseUpdates(state)
				taken, named := map[eventqueue.EventID]bool{}, map[string]int{}
				for range len(events) {
					some, err := c.take(testenv.Context(t), r, ids)
					var refused *refusal.Error
					if errors.As(err, &refused) {
						for _, row := range refused.Rows {
							named[row.Event.String()]++
						}
					} else if err != nil {
						t.Fatal(err)
					}
					for _, n := range some {
						taken[n.Event] = true
					}
				}
				if got := slices.Sorted(maps.Keys(taken)); !slices.Equal(got, good) {
					t.Errorf("taken were %v, want %v", got, good)
				}
				for _, id := range bad {
					if n := named[id.String()]; n == 0 || n == len(events) {
						t.Errorf("event %s was named %d times in %d rounds", id, n, len(events))
					}
				}
				if len(named) != len(bad) {
					t.Errorf("named were %v, want %v", named, bad)
				}
			})
		}
	}
}

// TestMissingRightBlamesNoRow: when the database refuses to write any row, that is an error.
func TestMissingRightBlamesNoRow(t *testing.T) {
	t.Parallel()
	for name, c := range pageCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			e := event()
			if c.keys {
				e.OrderingKey = "a"
			}
			ids := r.insert(e)
			c.prepareEvents(r, ids)
			r.exec(`CREATE FUNCTION refuse_all() RETURNS trigger LANGUAGE plpgsql AS $$
				BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = '42501'; END $$`)
			r.exec(`CREATE TRIGGER refuse_all BEFORE UPDATE ON events_v2 FOR EACH STATEMENT EXECUTE FUNCTION refuse_all()`)
			if _, err := c.take(testenv.Context(t), r, ids); err == nil || refusal.Is(err) {
				t.Errorf("a statement that is refused for all rows returns %v", err)
			}
		})
	}
}
