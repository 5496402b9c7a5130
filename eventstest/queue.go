package eventstest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/queuetest"
	"eventsv2/service"
)

// Queue is a queue for one test. Its methods fail that test when they cannot do what they say, and are for the
// test's goroutine. Make one for each test, and for each subtest that needs one.
type Queue struct {
	// Service is what the program under test emits with and registers its handlers at, before the first event runs.
	// Do not call its Run and Close: Work and Drain run events, and the end of the test closes it.
	Service *service.Service

	t        testing.TB
	config   service.Config
	clock    *queuetest.Stopped
	relay    *maintenance.Relay
	rules    *operate.Rules
	checker  *cronchecker.Checker
	reader   *inspect.Reader
	attempts []Attempt
	mostRuns int
}

// New opens a queue on a database that is the test's alone, such as one that Database has made. config is that of the
// program, with the URL of that database; see below for what New changes in it.
//
// The database has to have the queue's schema, the role has to own it, and no worker may ever have run on it: New gives
// it a clock that stands still, which no other program can use. A database of an earlier test can be used again once its tables
// are empty. The clock begins at the time of this machine.
//
// Connections of the program's own have to be opened after New, so that they go by that clock as those of Service do.
//
// There is no notifier, whatever config says. Completed events are kept in the history, so that they can be asked for, and
// counts per minute are not. Without a logger, warnings go to the log of the test.
func New(t testing.TB, config service.Config) *Queue {
	t.Helper()
	q := &Queue{t: t, mostRuns: mostRuns}
	if err := q.open(config); err != nil {
		t.Fatalf("eventstest.New: %v", err)
	}
	return q
}

func (q *Queue) open(config service.Config) (err error) {
	if config.Pool != nil || config.DatabaseURL == "" {
		return errors.New("give the URL of the test's database in Config.DatabaseURL, and no Pool: q.Service.Pool() is one that goes by the clock of the test")
	}
	ctx := q.t.Context()
	if err := refuseUsed(ctx, config); err != nil {
		return err
	}
	if q.clock, err = queuetest.Stop(ctx, config.DatabaseURL, time.Now()); err != nil {
		return err
	}
	q.t.Cleanup(func() { q.report(q.clock.Close(context.Background())) })
	if config.Pool, err = q.pool(config); err != nil {
		return err
	}
	q.t.Cleanup(config.Pool.Close)
	if config.Logger == nil && config.SlogLogger == nil {
		log := &testLog{TB: q.t}
		q.t.Cleanup(log.end)
		config.Logger = zaptest.NewLogger(log, zaptest.Level(zap.WarnLevel))
	}
	config.DatabaseURL, config.Access = "", pgsession.Access{} // which the pool has
	config.Notifier, config.NoWait = service.Memory, true
	config.Queue.NoMinutes, config.Worker.RetainHistory = true, true
	if q.Service, err = service.Open(ctx, config); err != nil {
		return err
	}
	q.t.Cleanup(func() { q.report(q.Service.Close()) })
	q.config = config
	return q.parts()
}

// testLog is the log of a test until it ends; then the log of package testing panics, as a handler that does not return would find.
type testLog struct {
	testing.TB
	mu    sync.Mutex
	ended bool
}

func (l *testLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

// Logf is Logf of the test.
func (l *testLog) Logf(format string, arguments ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.TB.Logf(format, arguments...)
	}
}

// pool makes a pool whose connections go by the clock.
func (q *Queue) pool(config service.Config) (*pgxpool.Pool, error) {
	unclocked, err := pgstore.NewPoolWith(config.Access, config.DatabaseURL, "eventstest", max(config.MaxConns, 10))
	if err != nil {
		return nil, err
	}
	clocked := unclocked.Config()
	unclocked.Close()
	q.clock.Follow(clocked)
	return pgxpool.NewWithConfig(context.Background(), clocked)
}

// parts makes what runs beside a worker.
func (q *Queue) parts() (err error) {
	store, log := q.Service.Store(), q.Service.Logger()
	if q.relay, err = maintenance.NewRelay(store, discard{}, maintenance.RelayConfig{Logger: log.WithOptions(zap.IncreaseLevel(zap.ErrorLevel))}); err != nil {
		return err
	}
	if q.rules, err = operate.NewRules(store, q.Service.Queue); err != nil {
		return err
	}
	cron := q.config.Cron
	if cron.Logger == nil {
		cron.Logger = log
	}
	q.checker, err = cronchecker.New(cronchecker.NewPostgresIn(q.config.Schema, q.config.Pool, q.Service.Queue), cron)
	q.reader = inspect.NewIn(q.config.Schema, q.config.Pool)
	return err
}

// refuseUsed returns an error for a database on which a worker has run: it would be that of a program.
func refuseUsed(ctx context.Context, config service.Config) error {
	pool, err := pgstore.NewPoolWith(config.Access, config.DatabaseURL, "eventstest", 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	var used bool
	if err := config.Schema.On(pool).QueryRow(ctx, `SELECT EXISTS (SELECT FROM event_workers)`).Scan(&used); err != nil {
		return fmt.Errorf("look at the database, which has to have the queue's schema (eventctl migrate up): %w", err)
	}
	if used {
		return errors.New("a worker has run on this database, so it is not the test's alone: its clock would be stopped for every program; " +
			"give the test a database of its own, such as one of eventstest.Database")
	}
	return nil
}

func (q *Queue) report(err error) {
	if err != nil {
		q.t.Errorf("eventstest: %v", err)
	}
}

// must fails the test when what was done for it has failed.
func (q *Queue) must(doing string, err error) {
	q.t.Helper()
	if err != nil {
		q.t.Fatalf("eventstest: %s: %v", doing, err)
	}
}

// rounding is by how much the wait of an event may be longer than its handler, or its emit, has asked for.
const rounding = time.Microsecond

// Now returns the time by the clock of the database.
func (q *Queue) Now() time.Time { return q.clock.Now() }

// Advance moves the clock of the database on by d, and by the microsecond by which the queue rounds waits up: after
// Advance of a delay, what was delayed by it is due. It runs nothing; Work and Drain find what is due by that.
func (q *Queue) Advance(d time.Duration) {
	q.t.Helper()
	if d < 0 {
		q.t.Fatalf("eventstest: Advance by %s: time does not go back", d)
	}
	q.must("advance the clock", q.clock.Set(q.t.Context(), q.clock.Now().Add(d+rounding)))
}

// discard is a notifier that carries nothing: due events are found in the database.
type discard struct{}

func (discard) Publish(context.Context, []eventqueue.Notification) error { return nil }
