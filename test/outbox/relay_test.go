package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// TestEventsCommittedOutOfOrderArePublished has the event with the lower id commit last, while
// the relay is running: by the function, and by the trigger.
func TestEventsCommittedOutOfOrderArePublished(t *testing.T) {
	t.Parallel()
	for how, emit := range map[string]string{
		"events_emit":    `SELECT events_emit('` + tenant + `', 'WORKER', 'insert_person', '{"name": "x"}')`,
		"send_to_outbox": `INSERT INTO person (tenant_id, name) VALUES ('` + tenant + `', 'x')`,
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.persons()
			r.startRelay(r.store, farOff)
			emitIn := func(tx pgx.Tx) eventqueue.EventID {
				r.exec(tx, emit)
				return one[eventqueue.EventID](r, tx, `SELECT currval('events_id_seq')`)
			}
			early, late := r.begin(), r.begin()
			low, high := emitIn(early), emitIn(late)
			if low >= high {
				t.Fatalf("the ids are %s and %s", low, high)
			}
			r.commit(late)
			r.notifier.await(t, high)
			if published := r.notifier.published(); len(published) != 1 {
				t.Errorf("published before its commit: %v", published)
			}
			r.commit(early)
			r.notifier.await(t, low)
			if events := r.startWorker("insert_person").await(t, 2); events[0].ID != low || events[1].ID != high {
				t.Errorf("ran %v, want %s and %s", events, low, high)
			}
		})
	}
}

// TestOnlyCommittedEventsArePublished has transactions of eight connections
// overlap and end in any way, while the relay is running.
func TestOnlyCommittedEventsArePublished(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.startRelay(r.store, farOff)
	var (
		mu        sync.Mutex
		committed []eventqueue.EventID
		emitters  sync.WaitGroup
	)
	for i := range 8 {
		conn, dice := r.conn(), rand.New(rand.NewPCG(7, uint64(i)))
		emitters.Go(func() {
			for range 40 {
				ids, err := emitAtRandom(testenv.Context(t), conn, dice)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				committed = append(committed, ids...)
				mu.Unlock()
			}
		})
	}
	emitters.Wait()
	for _, id := range committed {
		r.notifier.await(t, id)
	}
	if n := len(r.notifier.published()); n != len(committed) || n == 0 {
		t.Errorf("%d events were committed and %d published", len(committed), n)
	}
	if n := one[int](r, r.pool, `SELECT count(*) FROM events_v2`); n != len(committed) {
		t.Errorf("%d events were committed and %d are there", len(committed), n)
	}
}

var errNever = errors.New("rolled back on purpose")

// emitAtRandom runs a transaction and returns the ids that it has committed.
func emitAtRandom(ctx context.Context, conn *pgx.Conn, dice *rand.Rand) (ids []eventqueue.EventID, err error) {
	isolation := []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable}[dice.IntN(3)]
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: isolation}, func(tx pgx.Tx) error {
		for range 1 + dice.IntN(4) {
			part, keep := []eventqueue.EventID(nil), dice.IntN(3) > 0
			err := pgx.BeginFunc(ctx, tx, func(savepoint pgx.Tx) error {
				for range dice.IntN(3) {
					var id eventqueue.EventID
					if err := savepoint.QueryRow(ctx, emitSQL, `1`).Scan(&id); err != nil {
						return err
					}
					part = append(part, id)
				}
				if !keep {
					return errNever
				}
				return nil
			})
			if err == nil {
				ids = append(ids, part...)
			} else if !errors.Is(err, errNever) {
				return err
			}
		}
		if dice.IntN(4) == 0 {
			return errNever
		}
		return nil
	})
	if errors.Is(err, errNever) {
		return nil, nil
	}
	return ids, err
}

// deafStore can be heard of once: who lost the connection gets no other.
type deafStore struct {
	*pgstore.Store
	once sync.Once
	deaf chan struct{} // closed when the connection is lost
}

func (s *deafStore) Listen(ctx context.Context, wake func()) (err error) {
	s.once.Do(func() { err = s.Store.Listen(ctx, wake) })
	if err == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	close(s.deaf)
	return err
}

// TestTimerPublishesWithoutAListener cuts the connection that wakes the relay,
// for good.
func TestTimerPublishesWithoutAListener(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.persons()
	store := &deafStore{Store: r.store, deaf: make(chan struct{})}
	r.startRelay(store, 200*time.Millisecond)
	r.exec(r.pool, fmt.Sprintf(`SELECT pg_terminate_backend(%d)`, r.listener()))
	select {
	case <-store.deaf:
	case <-testenv.Context(t).Done():
		t.Fatal("the relay does not notice that its connection was cut")
	}
	for range 5 {
		r.notifier.await(t, r.emit(r.pool, `"lost"`))
	}
	r.exec(r.pool, `INSERT INTO person (tenant_id, name) SELECT '`+tenant+`', 'x' FROM generate_series(1, 5)`)
	testenv.Eventually(t, "the rows are published", func() bool { return len(r.notifier.published()) == 10 })
	r.startWorker("greet", "insert_person").await(t, 10)
}

// TestCutListenerReconnects and reads at once what it has missed:
// the relay's timer is minutes away.
func TestCutListenerReconnects(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.startRelay(r.store, farOff)
	for range 2 {
		pid := r.listener()
		tx := r.begin()
		id := r.emit(tx, `"while it is cut"`)
		r.exec(r.pool, fmt.Sprintf(`SELECT pg_terminate_backend(%d)`, pid))
		testenv.Eventually(t, "nobody listens", func() bool {
			return one[bool](r, r.pool, `SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)`, pid)
		})
		r.commit(tx)
		r.notifier.await(t, id)
	}
}

// TestDelayedEventIsNotNotifiedEarly and does not run early.
func TestDelayedEventIsNotNotifiedEarly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	far := one[eventqueue.EventID](r, r.pool, `SELECT events_emit($1, 'WORKER', 'greet', '1', delay => '1 hour')`, tenant)
	farToo := one[eventqueue.EventID](r, r.pool,
		`SELECT events_emit($1, 'WORKER', 'greet', '1', delay_until => clock_timestamp() + interval '1 hour')`, tenant)
	r.startRelay(r.store, farOff/16)
	seen := r.startWorker("greet")
	near := one[eventqueue.EventID](r, r.pool, `SELECT events_emit($1, 'WORKER', 'greet', '1', delay => '1200 ms')`, tenant)
	if events := seen.await(t, 1); events[0].ID != near || one[bool](r, r.pool, `SELECT clock_timestamp() < $1`, events[0].DelayUntil) ||
		events[0].DelayUntil.Sub(events[0].EnqueuedAt) != 1200*time.Millisecond {
		t.Errorf("ran %+v, want %s, and 1.2 s after its emit", events[0], near)
	}
	if n := one[int](r, r.pool, `SELECT count(*) FROM events_v2 WHERE id IN ($1, $2) AND notified_at IS NULL
		AND delay_until BETWEEN enqueued_at + interval '59 min' AND enqueued_at + interval '61 min'`, far, farToo); n != 2 {
		t.Errorf("%d of the 2 events that are due in an hour wait unpublished", n)
	}
}

// TestEachCommitIsPublished measures from before a COMMIT is sent to
// when the notifier has accepted the notification. It fails only if something
// does not arrive at all.
func TestEachCommitIsPublished(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.startRelay(r.store, farOff)
	alone := r.measure(1, 300, true)
	busy := r.measure(4, 250, false)
	t.Logf("commit to publish, one at a time: %s", alone)
	t.Logf("commit to publish, 4 connections that do not wait: %s", busy)
}

// measure has a number of connections commit events, and wait for the publish of
// each or not.
func (r *rig) measure(connections, each int, wait bool) string {
	r.t.Helper()
	var (
		mu       sync.Mutex
		begun    = map[eventqueue.EventID]time.Time{}
		emitters sync.WaitGroup
	)
	for range connections {
		conn := r.conn()
		emitters.Go(func() {
			for range each {
				id, begin, err := emitTimed(testenv.Context(r.t), conn)
				if err != nil {
					r.t.Error(err)
					return
				}
				mu.Lock()
				begun[id] = begin
				mu.Unlock()
				if wait {
					r.notifier.await(r.t, id)
				}
			}
		})
	}
	emitters.Wait()
	var waits []time.Duration
	for id, begin := range begun {
		waits = append(waits, r.notifier.await(r.t, id).Sub(begin))
	}
	slices.Sort(waits)
	at := func(percent int) time.Duration {
		return waits[(len(waits)-1)*percent/100].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("n=%d p50=%v p90=%v p99=%v max=%v; the goal is a p99 below 100ms", len(waits), at(50), at(90), at(99), at(100))
}

// emitTimed emits an event and returns when its COMMIT was sent.
func emitTimed(ctx context.Context, conn *pgx.Conn) (id eventqueue.EventID, begin time.Time, err error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return 0, begin, err
	}
	if err := tx.QueryRow(ctx, emitSQL, `1`).Scan(&id); err != nil {
		return 0, begin, err
	}
	begin = time.Now()
	return id, begin, tx.Commit(ctx)
}
