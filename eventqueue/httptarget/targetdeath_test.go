package httptarget_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/httptarget"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// TestTargetThatDiesFailsTheHarmfulEventOnly (I15): each request for that breaks all connections of the target, as the end of
// its process does.
func TestTargetThatDiesFailsTheHarmfulEventOnly(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		if body, _ := io.ReadAll(request.Body); string(body) == `"harmful"` {
			server.CloseClientConnections()
			return
		}
		<-time.After(20 * time.Millisecond) // in hand for a while
	}))
	t.Cleanup(server.Close)
	target, err := httptarget.New(httptarget.Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	r.Handle(target.Handle, eventqueue.Policy{MaxRetries: new(1), Backoff: func(int) time.Duration { return time.Millisecond }})
	events := []eventqueue.NewEvent{r.Event(`"harmful"`)}
	for range 12 {
		events = append(events, r.Event(`1`))
	}
	r.Emit(events...)
	r.Start(worker.Config{})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 12)
	r.Outcomes.Await(t, machine.RetryTooMany, 1)
	if n := r.Logged("FAILED"); n != 1 {
		t.Errorf("%d events are FAILED, want the harmful one only", n)
	}
}
