package eventstest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventstest"
	"eventsv2/pubsubnotify"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

func TestDatabaseIsMadeAndDropped(t *testing.T) {
	t.Parallel()
	server := testenv.EmptyDatabaseURL(t)
	var databaseURL string
	t.Run("test", func(t *testing.T) {
		databaseURL = eventstest.Database(t, server, `CREATE TABLE orders (id serial PRIMARY KEY); INSERT INTO orders DEFAULT VALUES`, `CREATE TABLE bills ()`)
		q := eventstest.New(t, service.Config{DatabaseURL: databaseURL})
		var orders int
		if err := q.Service.Pool().QueryRow(t.Context(), `SELECT count(*) FROM orders`).Scan(&orders); err != nil || orders != 1 {
			t.Errorf("%d orders, %v", orders, err)
		}
	})
	if databaseURL == server {
		t.Error("it is the database of the server's URL")
	}
	pool, err := pgxpool.New(testenv.Context(t), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pool.Ping(testenv.Context(t)); err == nil {
		t.Error("the database is there after the test")
	}
	f := &failing{TB: t}
	wantMessage(t, f.messageOf(func() { eventstest.Database(f, "") }), "eventstest.Database: the URL of the server is empty: set DATABASE_URL")
	wantMessage(t, f.messageOf(func() { eventstest.Database(f, server, `CREATE TABEL`) }), "eventstest.Database: execute CREATE TABEL: ")
}

// New stops the clock of its database, which must be no program's.
func TestDatabaseOfAProgramIsRefused(t *testing.T) {
	t.Parallel()
	f := &failing{TB: t}
	wantMessage(t, f.messageOf(func() { eventstest.New(f, service.Config{}) }), "eventstest.New: give the URL of the test's database in Config.DatabaseURL")
	wantMessage(t, f.messageOf(func() { eventstest.New(f, service.Config{DatabaseURL: testenv.EmptyDatabaseURL(t)}) }), "which has to have the queue's schema (eventctl migrate up)")

	databaseURL := testenv.DatabaseURL(t)
	s, err := service.Open(testenv.Context(t), service.Config{DatabaseURL: databaseURL, Logger: testenv.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(testenv.Context(t))
	defer stop()
	h := eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error { stop(); return nil })
	if err := s.Register(eventqueue.HandlerKey{Name: "mail"}, h, eventqueue.Policy{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Emit(ctx, eventqueue.NewEvent{Name: "mail", Value: []byte(`1`)}); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantMessage(t, f.messageOf(func() { eventstest.New(f, service.Config{DatabaseURL: databaseURL}) }), "a worker has run on this database", "eventstest.Database")
}

// The configuration of a program is taken as it is, but for the notifier. A database of an earlier test is used again.
func TestConfigurationOfAProgramIsTaken(t *testing.T) {
	t.Parallel()
	config := service.Config{DatabaseURL: testenv.DatabaseURLIn(t, "events"), Schema: "events",
		Notifier: service.PubSub, PubSub: pubsubnotify.Config{ProjectID: "production"}, NoRelay: true, MaxConns: 2}
	for n := range 2 {
		t.Run("", func(t *testing.T) {
			q := eventstest.New(t, config)
			register(t, q, func() error { return nil })
			id := emit(t, q, eventqueue.NewEvent{Name: "mail"})
			q.Work()
			q.RequireState(id, eventstest.Completed)
			if all := q.Emitted(); len(all) != n+1 {
				t.Errorf("%v", all)
			}
		})
	}
}

func TestHandlersAreRegisteredBeforeTheFirstRun(t *testing.T) {
	t.Parallel()
	q := newQueue(t, "mail", eventqueue.Policy{}, returns(nil))
	emit(t, q, eventqueue.NewEvent{Name: "mail"})
	q.Work()
	err := service.On(q.Service, "late", func(context.Context, OrderPlaced, *eventqueue.Run) error { return nil })
	if err == nil {
		t.Error("a handler that no worker knows was registered")
	}
}
