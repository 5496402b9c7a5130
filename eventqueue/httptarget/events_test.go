package httptarget_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/httptarget"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// posts is a server that takes events.
type posts struct {
	*httptest.Server
	got chan http.Header
}

// newPosts starts a server whose answers are those of answer, after the header of the request was taken.
func newPosts(t *testing.T, answer http.HandlerFunc) *posts {
	t.Helper()
	p := &posts{got: make(chan http.Header, 100)}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := r.Header.Clone()
		header.Set("Path", r.URL.Path)
		p.got <- header
		answer(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// next returns the header of the next request.
func (p *posts) next(t *testing.T) http.Header {
	t.Helper()
	select {
	case header := <-p.got:
		return header
	case <-testenv.Context(t).Done():
		t.Fatal("no request came")
		return nil
	}
}

// register has a worker of the rig run the handlers of a file, in which %s is the URL of the server.
func (p *posts) register(r *rig.Rig, text string) {
	r.T.Helper()
	file, err := httptarget.Parse("f", []byte(strings.ReplaceAll(text, "%s", p.URL)))
	if err == nil {
		err = file.Register(r.Handlers, httptarget.Shared{})
	}
	if err != nil {
		r.T.Fatal(err)
	}
}

// otherCanvas is the canvas that some handlers are for.
const otherCanvas = "a713f8e6-1e3c-4f7f-9d5c-2f1b6a3e8d10"

const eventsFile = `
handlers:
  - {event: WORKER.greet, name: mail, url: "%s/mail", backoff: {base: 1ms, max: 1ms}}
  - {event: WORKER, name: audit, url: "%s/audit"}
  - {event: WORKER, name: audit, canvas: ` + otherCanvas + `, url: "%s/own-audit"}
  - {event: WORKER, name: vip, canvas: ` + otherCanvas + `, url: "%s/vip"}
events: [WORKER.leave]
`

// TestEventGoesToTheHandlersOfItsKeyAndItsParents: each gets an event of its own, which is retried alone, once.
func TestEventGoesToTheHandlersOfItsKeyAndItsParents(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	server := newPosts(t, func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/mail" && request.Header.Get("Ce-Retries") == "0" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	server.register(r, eventsFile)
	other, err := eventqueue.ParseCanvasID(otherCanvas)
	if err != nil {
		t.Fatal(err)
	}
	here, there, leave := r.Event(`{"n": 1.0}`), r.Event(`2`), r.Event(`3`)
	here.Attributes = map[string]string{"user": "ada"}
	there.Canvas, leave.Name = other, "leave"
	ids := r.Emit(here, there, leave)
	r.Start(worker.Config{})
	got := map[string]int{}
	events := map[string]string{} // by the handler that has it
	for range 8 {
		h := server.next(t)
		got[fmt.Sprintf("%s %s of %s", h.Get("Ce-Type"), h.Get("Path"), h.Get("Ce-Parentid"))]++
		of := h.Get("Ce-Subject") + h.Get("Ce-Canvasid")
		if events[of] == "" {
			events[of] = h.Get("Ce-Id")
		}
		if events[of] != h.Get("Ce-Id") {
			t.Errorf("%s is posted as the events %s and %s", of, events[of], h.Get("Ce-Id"))
		}
		if inherits := h.Get("Ce-User") == "ada"; inherits != (h.Get("Ce-Parentid") == ids[0].String()) {
			t.Errorf("the event of %s has the user %q", of, h.Get("Ce-User"))
		}
	}
	want := map[string]int{
		fmt.Sprintf("WORKER.greet /mail of %s", ids[0]):      2,
		fmt.Sprintf("WORKER.greet /audit of %s", ids[0]):     1,
		fmt.Sprintf("WORKER.greet /mail of %s", ids[1]):      2,
		fmt.Sprintf("WORKER.greet /own-audit of %s", ids[1]): 1,
		fmt.Sprintf("WORKER.greet /vip of %s", ids[1]):       1,
		fmt.Sprintf("WORKER.leave /audit of %s", ids[2]):     1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 9)
	if n := r.Waiting(); n != 0 || len(events) != 6 {
		t.Errorf("%d events are left, of %d handlers", n, len(events))
	}
}

// TestHandlersOfAnEventKeepItsOrder: they have its ordering key.
func TestHandlersOfAnEventKeepItsOrder(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	let := make(chan struct{})
	server := newPosts(t, func(_ http.ResponseWriter, request *http.Request) {
		select {
		case <-let:
		case <-request.Context().Done():
		}
	})
	server.register(r, eventsFile)
	event := r.Event(`1`)
	event.OrderingKey = "order 17"
	id := r.Emit(event)[0]
	r.Start(worker.Config{})
	server.next(t) // its transaction has committed
	if n := rig.One[int](r, `SELECT count(*) FROM events_v2 WHERE ordering_key = 'order 17' AND parent_id = $1`, id); n != 2 {
		t.Errorf("%d events have the ordering key, want 2", n)
	}
	close(let)
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 3)
}

// TestValueThatCannotBeEmittedAgainFails: SQL has emitted a value that the queue would refuse.
func TestValueThatCannotBeEmittedAgainFails(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	server := newPosts(t, func(http.ResponseWriter, *http.Request) { t.Error("the event was posted") })
	server.register(r, eventsFile)
	id := r.Emit(r.Event(`1`))[0]
	r.Exec(`UPDATE events_v2 SET value = to_json(repeat('x', 300000)) WHERE id = $1`, id)
	r.Start(worker.Config{})
	r.Outcomes.Await(t, machine.FailedForGood, 1)
	if text := rig.One[string](r, `SELECT coalesce(max(last_error), '') FROM event_log WHERE id = $1`, id); !strings.Contains(text, "value: is 300002 bytes long: the limit is 262144") {
		t.Errorf("the error is %q", text)
	}
}

// TestHandlersOfEventsAreKnownToTheWorker: also those of its descendants, and on a canvas that alone has a handler nothing else.
func TestHandlersOfEventsAreKnownToTheWorker(t *testing.T) {
	t.Parallel()
	file, err := httptarget.Parse("f", []byte(`
handlers:
  - {event: order, name: audit, url: "http://a"}
  - {event: order.placed.again, name: mail, url: "http://a"}
  - {event: vip.seen, name: mail, canvas: `+otherCanvas+`, url: "http://a"}
events: [order.cancelled, order.placed]
`))
	if err != nil {
		t.Fatal(err)
	}
	handlers := eventqueue.NewHandlers()
	if err := file.Register(handlers, httptarget.Shared{}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, key := range handlers.Set().Everywhere {
		got = append(got, key.String())
	}
	for _, at := range handlers.Set().OnCanvas {
		got = append(got, at.Key.String()+" on "+at.Canvas.String())
	}
	slices.Sort(got)
	want := []string{"order/_/_", "order/audit/order", "order/audit/order.cancelled", "order/audit/order.placed", "order/audit/order.placed.again",
		"order/cancelled/_", "order/mail/order.placed.again", "order/placed.again/_", "order/placed/_",
		"vip/mail/vip.seen on " + otherCanvas, "vip/seen/_ on " + otherCanvas}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	err = file.Register(handlers, httptarget.Shared{})
	if err == nil || !strings.Contains(err.Error(), "f:3: handler order/audit/order.cancelled is registered twice") || !strings.Contains(err.Error(), "f:3: handler order/placed/_ is registered twice") {
		t.Errorf("registered twice: %v", err)
	}
}

// TestEventsOfATargetHaveOneHandler, with or without batches, so that a worker has one circuit breaker for them, and one of a canvas is in place of
// one for all, whichever is that of the parent.
func TestEventsOfATargetHaveOneHandler(t *testing.T) {
	t.Parallel()
	file, err := httptarget.Parse("f", []byte(`
handlers:
  - {event: order, name: index, url: "http://a", batch: {size: 10, wait: 1ms}}
  - {event: order, name: audit, url: "http://a", canvas: `+otherCanvas+`}
  - {event: order.placed, name: audit, url: "http://a"}
events: [order.cancelled]
`))
	if err != nil {
		t.Fatal(err)
	}
	handlers := eventqueue.NewHandlers()
	if err := file.Register(handlers, httptarget.Shared{}); err != nil {
		t.Fatal(err)
	}
	other, err := eventqueue.ParseCanvasID(otherCanvas)
	if err != nil {
		t.Fatal(err)
	}
	of := func(canvas eventqueue.CanvasID, name, modifier string) eventqueue.Handler {
		r, has := handlers.Lookup(&eventqueue.Event{Canvas: canvas, Module: "order", Name: name, Modifier: modifier})
		if !has || !reflect.ValueOf(r.Handler).Comparable() {
			t.Fatalf("%s/%s has the handler %T, which cannot be told from others", name, modifier, r.Handler)
		}
		return r.Handler
	}
	placed, cancelled := "order.placed", "order.cancelled"
	if of(rig.Canvas, "index", placed) != of(rig.Canvas, "index", cancelled) {
		t.Error("a target with batches has a handler for each event")
	}
	if of(other, "audit", placed) != of(other, "audit", cancelled) || of(other, "audit", placed) == of(rig.Canvas, "audit", placed) {
		t.Error("the target of the canvas does not have all events of the canvas, and no others")
	}
}

// TestFilesOfThePageAreValid: those of docs/chains.md.
func TestFilesOfThePageAreValid(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/chains.md")
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Split(string(page), "```yaml\n")[1:]
	for _, text := range files {
		text, _, _ = strings.Cut(text, "```")
		if _, err := httptarget.Parse("f", []byte(text)); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
	if len(files) != 2 {
		t.Errorf("the page has %d files", len(files))
	}
}
