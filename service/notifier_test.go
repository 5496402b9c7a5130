package service_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgnotify"
	"eventsv2/pubsubnotify"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

// TestPostgresNotifierNeedsNothingElse opens a Service with no
// variable of Pub/Sub set.
func TestPostgresNotifierNeedsNothingElse(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	s, err := service.Open(ctx, service.Config{DatabaseURL: testenv.DatabaseURL(t), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := s.Ready(ctx); err != nil {
		t.Errorf("Ready = %v", err)
	}
	receiver := s.Receiver()
	if _, ok := receiver.(*pgnotify.Notifier); !ok {
		t.Errorf("workers pull from a %T", receiver)
	}
	if _, ok := receiver.(eventqueue.RemoteReceiver); ok {
		t.Error("workers would fall back from the database to the database")
	}
	id, err := s.Emit(ctx, eventqueue.NewEvent{Name: "n", Value: []byte(`1`)})
	if err != nil {
		t.Fatal(err)
	}
	deliveries, err := receiver.Pull(ctx, 10)
	if err != nil || len(deliveries) != 1 || deliveries[0].Event != id {
		t.Errorf("pulled %+v, %v, want event %v", deliveries, err, id)
	}
	if _, err := s.Pool().Exec(ctx, `DROP TABLE events_v2_notifications`); err != nil {
		t.Fatal(err)
	}
	if s.Ready(ctx) == nil {
		t.Error("Ready = nil without the table of the notifier")
	}
	if err := receiver.Ack(ctx, deliveries); err != nil { // nothing is left to give back
		t.Error(err)
	}
}

// asRole makes a role that may use every table and call every function, and returns the URL with which
// one is that role.
func asRole(t *testing.T, pool *pgxpool.Pool, database string) (role, roleURL string) {
	t.Helper()
	role = "service_test_" + strings.ToLower(rand.Text())
	for _, sql := range []string{
		`CREATE ROLE ` + role,
		`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ` + role,
		`GRANT USAGE ON SEQUENCE events_id_seq TO ` + role,
		`GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO ` + role,
	} {
		if _, err := pool.Exec(testenv.Context(t), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	t.Cleanup(func() {
		for _, sql := range []string{`DROP OWNED BY ` + role, `DROP ROLE ` + role} {
			if _, err := pool.Exec(context.Background(), sql); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		}
	})
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("role", role)
	u.RawQuery = query.Encode()
	return role, u.String()
}

func TestNotifierWithoutRightsIsRefused(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	database := testenv.DatabaseURL(t)
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	role, roleURL := asRole(t, pool, database)
	config := service.Config{DatabaseURL: roleURL, Logger: zap.NewNop()}
	s, err := service.Open(ctx, config)
	if err != nil {
		t.Fatalf("Open = %v with all privileges", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := pool.Exec(ctx, `REVOKE DELETE ON events_v2_notifications FROM `+role); err != nil {
		t.Fatal(err)
	}
	if s, err = service.Open(ctx, config); err == nil {
		t.Fatal("Open = nil without DELETE", s.Close())
	}
	if grant := "GRANT DELETE ON events_v2_notifications TO " + role; !strings.Contains(err.Error(), grant) {
		t.Errorf("Open = %v, which does not say %q", err, grant)
	}
}

// TestMixedNotifiersAreWarnedOf opens a program with Pub/Sub on a database in which
// another program publishes with the notifier on Postgres.
func TestMixedNotifiersAreWarnedOf(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	database := testenv.DatabaseURL(t)
	config := service.Config{DatabaseURL: database, PubSub: pubsubnotify.Config{Create: true,
		EmulatorHost: testenv.EmulatorHost(t), Topic: "mixed-notifiers", Subscription: "mixed-notifiers"}}
	for want := range 2 {
		core, logs := observer.New(zap.WarnLevel)
		config.Logger = zap.New(core)
		s, err := service.Open(ctx, config)
		if err != nil {
			t.Fatal(err)
		}
		if got := logs.FilterMessageSnippet("NOTIFIER").Len(); got != want {
			t.Errorf("%d warnings with %d notifications in Postgres", got, want)
		}
		if _, err := s.Pool().Exec(ctx, `INSERT INTO events_v2_notifications (event_id, canvas_id) VALUES ($1, gen_random_uuid())`, want+1); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
