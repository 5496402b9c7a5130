package pgnotify

import (
	"slices"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

func eventsOf(deliveries []eventqueue.Delivery) (ids []eventqueue.EventID) {
	for _, d := range deliveries {
		ids = append(ids, d.Event)
	}
	return ids
}

// TestPullsTakeTheOldestFirst, wherever their rows are in the table.
func TestPullsTakeTheOldestFirst(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	if _, err := pool.Exec(testenv.Context(t), `INSERT INTO events_v2_notifications (event_id, canvas_id, place)
		OVERRIDING SYSTEM VALUE SELECT 100 - n, gen_random_uuid(), 100 - n FROM generate_series(1, 20) n`); err != nil {
		t.Fatal(err)
	}
	n := open(t, pool, Config{})
	pulled, err := n.Pull(testenv.Context(t), 3)
	if err != nil {
		t.Fatal(err)
	}
	ids := eventsOf(pulled)
	slices.Sort(ids)
	if !slices.Equal(ids, []eventqueue.EventID{80, 81, 82}) {
		t.Errorf("the first pull took %v of 80 to 99", ids)
	}
}

// TestLeasesEndInTheOrderOfTheirTimes, as requeues have moved them, and not before.
func TestLeasesEndInTheOrderOfTheirTimes(t *testing.T) {
	t.Parallel()
	l, now := newLeases(), time.Now()
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	l.add(notifications(1, 6), at(100))
	first, rest := l.handOut(2, at(10)), l.handOut(10, at(10))
	if !slices.Equal(eventsOf(first), []eventqueue.EventID{1, 2}) || !slices.Equal(eventsOf(rest), []eventqueue.EventID{3, 4, 5, 6}) {
		t.Fatalf("handed out were %v and %v", eventsOf(first), eventsOf(rest))
	}
	for seconds, moved := range map[int][]eventqueue.Delivery{5: first[:1], 1: rest[:1], 30: first[1:]} {
		if err := l.move(moved, at(seconds)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.drop(rest[1:2]); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		seconds, limit int
		want           []eventqueue.EventID
		again          int
	}{
		{0, 10, nil, 1}, {4, 10, []eventqueue.EventID{3}, 0}, {4, 10, nil, 5}, {5, 10, []eventqueue.EventID{1}, 0},
		{9, 10, nil, 10}, {10, 1, []eventqueue.EventID{5, 6}, 0}, {10, 1, []eventqueue.EventID{5, 6}, 0}, {29, 10, nil, 30}, {31, 10, []eventqueue.EventID{2}, 0},
	} {
		due, again := l.takeDue(at(c.seconds), c.limit)
		switch {
		case len(c.want) == 0 && (len(due) != 0 || !again.Equal(at(c.again))):
			t.Errorf("at %d s %v are due, and the next at %s, want at %d s", c.seconds, due, again.Sub(now), c.again)
		case len(c.want) > 0 && (len(due) != 1 || !slices.Contains(c.want, due[0].Event)):
			t.Errorf("at %d s %v are due, want one of %v", c.seconds, due, c.want)
		}
	}
	if err := l.move(first, at(40)); err != nil { // their leases have ended: nothing is to be moved
		t.Error(err)
	}
	if due, _ := l.takeDue(at(1000), 10); len(due) != 0 {
		t.Errorf("%v are due a second time", due)
	}
}

// TestRequeueDelaysAreRoundedUp, so that no delay becomes a hot loop.
func TestRequeueDelaysAreRoundedUp(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]time.Duration{-time.Second: 0, 0: 0, 1: time.Second, time.Second - 1: time.Second,
		time.Second: time.Second, time.Second + 1: 2 * time.Second, 90 * time.Second: 90 * time.Second} {
		if got := roundUp(d, time.Second); got != want {
			t.Errorf("%s becomes %s, want %s", d, got, want)
		}
	}
}
