package outbox

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

const (
	tenant = "0b9f5a3e-6b3a-4a52-9f0c-0d8b6a1f7c11"

	// emitSQL emits the event greet with a value.
	emitSQL = `SELECT events_emit('` + tenant + `', 'WORKER', 'greet', $1)`

	// farOff is the longest interval that a relay may have: within a test only a
	// wake-up gets it to work.
	farOff = 4 * time.Minute
)

// rig is a queue on a database of its own and an in-memory notifier that records
// when each event was first published.
type rig struct {
	t        *testing.T
	pool     *pgxpool.Pool
	store    *pgstore.Store
	notifier *notifier
}

func newRig(t *testing.T) *rig {
	t.Helper()
	pool := testenv.Pool(t)
	return &rig{t: t, pool: pool, store: pgstore.New(pool), notifier: newNotifier()}
}

// conn is a connection of its own, closed when the test ends.
func (r *rig) conn() *pgx.Conn {
	r.t.Helper()
	conn, err := pgx.ConnectConfig(testenv.Context(r.t), r.pool.Config().ConnConfig)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// querier is a pool, a connection or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// exec runs statements as psql sends a file.
func (r *rig) exec(db querier, sql string) {
	r.t.Helper()
	if _, err := db.Exec(testenv.Context(r.t), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
}

// one returns the only value of a query.
func one[T any](r *rig, db querier, sql string, args ...any) T {
	r.t.Helper()
	var v T
	if err := db.QueryRow(testenv.Context(r.t), sql, args...).Scan(&v); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// emit emits the event greet by SQL.
func (r *rig) emit(db querier, value string) eventqueue.EventID {
	r.t.Helper()
	return one[eventqueue.EventID](r, db, emitSQL, value)
}

func (r *rig) begin() pgx.Tx {
	r.t.Helper()
	tx, err := r.pool.Begin(testenv.Context(r.t))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // so that the pool can close
	return tx
}

func (r *rig) commit(tx pgx.Tx) {
	r.t.Helper()
	if err := tx.Commit(testenv.Context(r.t)); err != nil {
		r.t.Fatal(err)
	}
}

// persons makes a table with the trigger.
func (r *rig) persons() {
	r.t.Helper()
	r.exec(r.pool, `
		CREATE TABLE person (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant_id uuid, name text NOT NULL);
		CREATE TRIGGER send_to_outbox AFTER INSERT OR UPDATE OR DELETE ON person
		FOR EACH ROW EXECUTE FUNCTION send_to_outbox('tenant_id', 'WORKER');`)
}

// refused returns the error with which Postgres refuses a statement.
func (r *rig) refused(db querier, sql string, args ...any) *pgconn.PgError {
	r.t.Helper()
	_, err := db.Exec(testenv.Context(r.t), sql, args...)
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) {
		r.t.Fatalf("%s: got %v, want it refused", sql, err)
	}
	return refusal
}

func (r *rig) relay(store maintenance.RelayStore, interval time.Duration) *maintenance.Relay {
	r.t.Helper()
	relay, err := maintenance.NewRelay(store, r.notifier, maintenance.RelayConfig{Interval: interval, Logger: testenv.Logger(r.t)})
	if err != nil {
		r.t.Fatal(err)
	}
	return relay
}

// startRelay runs a relay until the test ends and returns when it listens.
func (r *rig) startRelay(store maintenance.RelayStore, interval time.Duration) {
	r.t.Helper()
	r.run(r.relay(store, interval).Run)
	r.listener()
}

// listener waits until the relay listens and returns the process that serves it.
func (r *rig) listener() (pid int) {
	r.t.Helper()
	testenv.Eventually(r.t, "the relay listens", func() bool {
		pid = one[int](r, r.pool, `SELECT coalesce(max(pid), 0) FROM pg_stat_activity
			WHERE datname = current_database() AND query LIKE '%pg_listening' || '_channels%' AND state = 'idle'`)
		return pid != 0
	})
	return pid
}

// startWorker runs a worker with one handler for every given name and returns
// what they get to see. A worker also finds events that nobody rang for: what
// the notifier gets is awaited without one.
func (r *rig) startWorker(names ...string) *runs {
	r.t.Helper()
	queue, err := eventqueue.New(r.store, r.notifier, eventqueue.QueueConfig{Logger: testenv.Logger(r.t)})
	if err != nil {
		r.t.Fatal(err)
	}
	seen, handlers := &runs{changed: make(chan struct{})}, eventqueue.NewHandlers()
	for _, name := range names {
		if err := handlers.Register(eventqueue.HandlerKey{Module: "WORKER", Name: name, Modifier: "_"},
			eventqueue.HandlerFunc(seen.add), eventqueue.Policy{}); err != nil {
			r.t.Fatal(err)
		}
	}
	w, err := worker.New(queue, r.store, r.notifier, handlers, worker.Config{Logger: testenv.Logger(r.t)})
	if err != nil {
		r.t.Fatal(err)
	}
	r.run(w.Run)
	return seen
}

// run runs until the test ends.
func (r *rig) run(f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := f(ctx); err != nil {
			r.t.Error(err)
		}
	})
	r.t.Cleanup(func() { cancel(); running.Wait() })
}

// runs are the events that handlers have seen.
type runs struct {
	mu      sync.Mutex
	events  []eventqueue.Event
	changed chan struct{}
}

func (s *runs) add(_ context.Context, run *eventqueue.Run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, run.Event)
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

// await waits until n events have run and returns all of them, by id.
func (s *runs) await(t *testing.T, n int) []eventqueue.Event {
	t.Helper()
	ctx := testenv.Context(t)
	for {
		s.mu.Lock()
		events, changed := slices.Clone(s.events), s.changed
		s.mu.Unlock()
		if len(events) >= n {
			slices.SortFunc(events, func(a, b eventqueue.Event) int { return int(a.ID - b.ID) })
			return events
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%d events have run, want %d", len(events), n)
		}
	}
}

// notifier is a notifier that records when each event was first published.
type notifier struct {
	*memnotify.Notifier
	mu      sync.Mutex
	times   map[eventqueue.EventID]time.Time
	changed chan struct{}
}

func newNotifier() *notifier {
	return &notifier{Notifier: memnotify.New(memnotify.Config{}), times: map[eventqueue.EventID]time.Time{}, changed: make(chan struct{})}
}

func (n *notifier) Publish(ctx context.Context, notifications []eventqueue.Notification) error {
	err := n.Notifier.Publish(ctx, notifications)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range notifications {
		if n.times[p.Event].IsZero() {
			n.times[p.Event] = time.Now()
		}
	}
	close(n.changed)
	n.changed = make(chan struct{})
	return err
}

func (n *notifier) published() map[eventqueue.EventID]time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.times)
}

// await waits until an event was published and returns when that was.
func (n *notifier) await(t *testing.T, id eventqueue.EventID) time.Time {
	t.Helper()
	ctx := testenv.Context(t)
	for {
		n.mu.Lock()
		at, changed := n.times[id], n.changed
		n.mu.Unlock()
		if !at.IsZero() {
			return at
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("event %s was never published", id)
		}
	}
}

// wantText fails when a text lacks one of its parts.
func wantText(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q: %s", what, part, text)
		}
	}
}
