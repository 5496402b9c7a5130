package httptarget_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/google/uuid"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/httptarget"
)

// A target gets the event as a CloudEvent, and its answer decides what becomes
// of the event.
func ExampleTarget() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		fmt.Printf("event %s of type %s: %s\n", r.Header.Get("Ce-Id"), r.Header.Get("Ce-Type"), body)
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()

	client := httptarget.NewClient()
	defer client.CloseIdleConnections()
	target, err := httptarget.New(httptarget.Config{URL: server.URL + "/push", Client: client})
	if err != nil {
		fmt.Println(err)
		return
	}
	handlers := eventqueue.NewHandlers()
	key := eventqueue.HandlerKey{Module: "WORKER", Name: "push", Modifier: "_"}
	if err := handlers.Register(key, target, eventqueue.Policy{}); err != nil {
		fmt.Println(err)
		return
	}

	// A worker that has these handlers calls the target like this.
	err = target.Handle(context.Background(), &eventqueue.Run{Event: eventqueue.Event{
		ID:       7,
		Canvas:   eventqueue.CanvasID(uuid.MustParse("a713f8e6-1e3c-4f7f-9d5c-2f1b6a3e8d10")),
		Module:   "WORKER",
		Name:     "push",
		Modifier: "_",
		Value:    json.RawMessage(`{"order": 4711}`),
	}})
	fmt.Println("will run again:", err != nil)
	// Output:
	// event 7 of type WORKER.push: {"order": 4711}
	// will run again: true
}

// A handlers file is checked as a whole: every mistake is reported with its line.
func ExampleParse() {
	_, err := httptarget.Parse("handlers.yaml", []byte(`
handlers:
  - module: WORKER
    name: push
    modifier: _
    url: example.com/push
    timeout: 30
`))
	fmt.Println(err)
	// Output:
	// handlers.yaml:6: url is not a complete http or https URL: write it like https://example.com/push
	// handlers.yaml:7: timeout is a number without a unit: write it like 30s, 10m or 1h30m
}
