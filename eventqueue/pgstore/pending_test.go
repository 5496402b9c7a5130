package pgstore_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// TestPendingNotificationIsTakenOnce (I11, I14): a notification that was taken is not pending any more.
func TestPendingNotificationIsTakenOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	far := event()
	far.Delay = time.Hour
	ids := r.insert(event(), event(), far)
	if row := r.mustRow(ids[2]); row.NotifiedAt != nil {
		t.Error("an event that is an hour away counts as notified")
	}
	due := func(want int) {
		t.Helper()
		taken, err := r.store.TakeDue(ctx, time.Minute, 10, nil)
		if err != nil || len(taken) != want {
			t.Errorf("%d events were taken, %v; want %d", len(taken), err, want)
		}
	}
	due(0)
	if err := r.store.MarkPending(ctx, ids); err != nil {
		t.Fatal(err)
	}
	due(2)
	due(0)
	if err := r.store.MarkPending(ctx, ids); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{2, 0} {
		taken, err := r.store.TakePending(ctx, ids)
		if err != nil || len(taken) != want {
			t.Errorf("%d pending events were taken, %v; want %d", len(taken), err, want)
		}
	}
}

// TestFailedPublishWakesOthers (I19): it wakes the relay, and workers whose notifier is silent.
// Nothing is woken if there is nothing to find.
func TestFailedPublishWakesOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	ids := r.insert(event())
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, sql := range []string{`LISTEN events_v2_pending`, `LISTEN events_v2_unpublished`, `LISTEN over`} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	heard := func() (channels []string) {
		t.Helper()
		r.exec(`NOTIFY over`)
		for {
			n, err := conn.Conn().WaitForNotification(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if n.Channel == "over" {
				slices.Sort(channels)
				return channels
			}
			channels = append(channels, n.Channel)
		}
	}
	if err := r.store.MarkPending(ctx, []eventqueue.EventID{ids[0] + 1}); err != nil {
		t.Fatal(err)
	}
	if got := heard(); len(got) != 0 {
		t.Errorf("for an event that is gone %v were told", got)
	}
	if err := r.store.MarkPending(ctx, ids); err != nil {
		t.Fatal(err)
	}
	if got := heard(); !slices.Equal(got, []string{"events_v2_pending", "events_v2_unpublished"}) {
		t.Errorf("told were %v", got)
	}
}

// TestHeartbeatConnectionListens (I13, I19): to what was said before it began; and
// claims are renewed on it meanwhile, which waits for nobody.
func TestHeartbeatConnectionListens(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	reserve := r.store.Reserve(worker.Registration{Number: 7}, zap.NewNop())
	defer reserve.Close()
	attending, stop := context.WithCancel(ctx)
	defer stop()
	receiver, err := reserve.Behind(&well{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.store.MarkPending(ctx, r.insert(event())); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = receiver.(interface{ Attend(context.Context) error }).Attend(attending) }) // the notifier is fit
	defer running.Wait()
	defer stop()
	if ds, err := receiver.Pull(attending, 1); err != nil || len(ds) != 1 {
		t.Fatalf("the pending notifications before: %v, %v", ds, err)
	}
	for range 3 {
		c := r.claim(r.insert(event())[0])
		if written, err := reserve.Renew(ctx, []worker.Claim{c}); err != nil || len(written.Done) != 1 {
			t.Fatalf("renewed: %+v, %v", written, err)
		}
	}
}

// well is a notifier that has nothing to tell.
type well struct{ eventqueue.Receiver }

func (*well) Pull(ctx context.Context, _ int) ([]eventqueue.Delivery, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (*well) Check(context.Context) error  { return nil }
func (*well) Attend(context.Context) error { return nil }

// TestRelaySkipsLockedRows locks one row.
func TestRelaySkipsLockedRows(t *testing.T) {
	t.Parallel()
	for _, behind := range []bool{false, true} {
		t.Run(fmt.Sprintf("behind %t", behind), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			ctx := testenv.Context(t)
			const limit = 2
			r.backlog(canvas, 6)
			if behind { // as a full page shows
				if _, err := r.store.TakeDue(ctx, time.Minute, limit, nil); err != nil {
					t.Fatal(err)
				}
			}
			tx, err := r.pool.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			const oldest = `SELECT FROM events_v2 WHERE notified_at IS NULL ORDER BY delay_until, id LIMIT $1 FOR UPDATE`
			if _, err := tx.Exec(ctx, oldest, limit+1); err != nil {
				t.Fatal(err)
			}
			taken := make(chan int, 1)
			go func() {
				due, err := r.store.TakeDue(ctx, time.Minute, limit, nil)
				if err != nil {
					t.Error(err)
				}
				taken <- len(due)
			}()
			testenv.Eventually(t, "TakeDue has returned or waits", func() bool { return len(taken) == 1 || r.waits(1) })
			if len(taken) == 0 {
				t.Error("TakeDue waits for a row")
			}
			if err := tx.Rollback(ctx); err != nil {
				t.Fatal(err)
			}
			if n := <-taken; n == 0 {
				t.Error("no event was taken, although some are free")
			}
		})
	}
}

// silence is when an event last rang, by how long ago it was due.
type silence struct{ due, rang time.Duration }

// TestSilentDueEventsCountAsLost (I2, I7, I11): silent for longer than a minute, then for
// growing times up to ten minutes, and not locked, paused or early.
func TestSilentDueEventsCountAsLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	paused := event()
	paused.Name = "paused"
	if _, err := r.store.AddRule(ctx, operate.RuleOf(operate.PauseRule, eventqueue.Scope{Canvas: canvas, Module: paused.Module, Name: paused.Name})); err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	for _, c := range []struct {
		name  string
		event eventqueue.NewEvent
		silence
		locked time.Duration // ago; 0 is not at all
		lost   bool
	}{
		{"rang a moment ago", event(), silence{50 * time.Second, 50 * time.Second}, 0, false},
		{"silent for a minute", event(), silence{61 * time.Second, 61 * time.Second}, 0, true},
		{"rang again after 100 seconds", event(), silence{161 * time.Second, 61 * time.Second}, 0, false},
		{"silent for as long again", event(), silence{205 * time.Second, 103 * time.Second}, 0, true},
		{"waits for a day, rang a while ago", event(), silence{day, 9 * time.Minute}, 0, false},
		{"waits for a day", event(), silence{day, 11 * time.Minute}, 0, true},
		{"is running", event(), silence{day, day}, 30 * time.Second, false},
		{"has lost its worker", event(), silence{day, day}, day, true},
		{"has lost its worker just now, and rang before", event(), silence{day, 9 * time.Minute}, lockTimeout + time.Second, true},
		{"has lost its worker, and rang since", event(), silence{day, 9 * time.Minute}, 20 * time.Minute, false},
		{"is paused", paused, silence{day, day}, 0, false},
		{"is not due", event(), silence{-time.Hour, day}, 0, false},
	} {
		id := r.insert(c.event)[0]
		r.exec(`UPDATE events_v2 SET delay_until = clock_timestamp() - $2::interval, enqueued_at = clock_timestamp() - greatest($2, $3::interval),
			notified_at = clock_timestamp() - $3::interval, attempts = 1,
			locked_at = CASE WHEN $4::interval > interval '0' THEN clock_timestamp() - $4 END WHERE id = $1`,
			id, c.due, c.rang, c.locked)
		take := func() int {
			lost, next, err := r.store.TakeLost(ctx, id-1, 10, time.Minute)
			if err != nil || next != 0 {
				t.Fatalf("next %s, %v", next, err)
			}
			return len(lost)
		}
		if n := take(); (n == 1) != c.lost {
			t.Errorf("an event that %s: %d taken", c.name, n)
		}
		if n := take(); n != 0 {
			t.Errorf("an event that %s was taken twice", c.name)
		}
		r.exec(`DELETE FROM events_v2`)
	}
}

// TestSweepReadsEveryRow page by page, however few of them are lost (I2).
func TestSweepReadsEveryRow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.insert(event(), event(), event(), event(), event())
	r.exec(`UPDATE events_v2 SET delay_until = delay_until - interval '1 h', enqueued_at = enqueued_at - interval '1 h',
		notified_at = notified_at - interval '1 h' WHERE id = $1`, ids[4])
	var taken []eventqueue.Notification
	for after := eventqueue.EventID(0); ; {
		lost, next, err := r.store.TakeLost(testenv.Context(t), after, 2, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, lost...)
		if next == 0 {
			break
		}
		after = next
	}
	if len(taken) != 1 || taken[0].Event != ids[4] {
		t.Errorf("taken: %v", taken)
	}
}

// TestLostNotificationIsFoundWithinItsBound holds the bound that the cases above are made for.
func TestLostNotificationIsFoundWithinItsBound(t *testing.T) {
	t.Parallel()
	if pgstore.MaxLostAfterFactor != 10 {
		t.Errorf("the longest silence is %d times the first one", pgstore.MaxLostAfterFactor)
	}
}
