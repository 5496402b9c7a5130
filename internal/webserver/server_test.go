package webserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/webserver"
	"eventsv2/test/testenv"
)

// listen makes a server with the dashboard on any port.
func listen(t *testing.T, pool *pgxpool.Pool) *webserver.Server {
	t.Helper()
	store := pgstore.New(pool)
	queue, err := eventqueue.New(store, memnotify.New(memnotify.Config{}), eventqueue.QueueConfig{Logger: testenv.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	server, err := webserver.Listen(testenv.Context(t), webserver.Config{Address: "127.0.0.1:0", Dashboard: true, Store: store, Queue: queue, Logger: testenv.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

// TestPathsOfTheAPIAreItsOwn: none is redirected, and a page is answered by the dashboard.
func TestPathsOfTheAPIAreItsOwn(t *testing.T) {
	t.Parallel()
	pool, err := pgstore.NewPool(testenv.DatabaseURL(t), "test", 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	server := listen(t, pool)
	v := enter(t, server.Handler, server.Access.Tokens)
	for _, path := range []string{"/v1//events", "/v1/../events", "/v1/nothing"} {
		if w := v.open(path); w.Code != http.StatusNotFound || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s is answered with %d %s", path, w.Code, w.Body)
		}
	}
	if w := v.open("/v1/workers"); w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("the API answers %d %s", w.Code, w.Body)
	}
	if w := v.open("/events"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "<h1>Events") {
		t.Errorf("the dashboard answers %d %.300s", w.Code, w.Body)
	}
}
