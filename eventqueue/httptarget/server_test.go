package httptarget

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"

	"eventsv2/eventqueue"
)

// waitLimit is how long a test waits for something that has to happen.
const waitLimit = 3 * time.Minute

func typeName(v any) string { return fmt.Sprintf("%T", v) }

// serve starts a server and a target for it; both end with the test.
func serve(t *testing.T, handler http.HandlerFunc) (*Target, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return targetFor(t, server.URL), server
}

func targetFor(t *testing.T, url string) *Target {
	t.Helper()
	client := NewClient(IdleTimeout(time.Hour)) // on a machine under load seconds pass between two requests
	t.Cleanup(client.CloseIdleConnections)
	target, err := New(Config{URL: url, Client: client})
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// testContext ends when the test has waited long enough.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	t.Cleanup(cancel)
	return ctx
}

func testRun() *eventqueue.Run {
	return &eventqueue.Run{Event: eventqueue.Event{
		ID:         4711,
		Canvas:     eventqueue.CanvasID(uuid.MustParse("a713f8e6-1e3c-4f7f-9d5c-2f1b6a3e8d10")),
		Module:     "WORKER",
		Name:       "push",
		Modifier:   "_",
		Value:      json.RawMessage(`{"n": 1.0,  "s":"ü"}`),
		Retries:    2,
		EnqueuedAt: time.Date(2024, 2, 29, 12, 0, 0, 123456000, time.UTC),
	}}
}

// await receives from a channel or fails the test.
func await[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(waitLimit):
		t.Fatalf("%s did not happen within %s", what, waitLimit)
		panic("unreachable")
	}
}
