package eventstest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventstest"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// OrderPlaced is the typed event of these tests.
type OrderPlaced struct {
	Order int
	Mail  string `json:",omitempty"`
}

func (OrderPlaced) EventType() string   { return "ORDER" }
func (OrderPlaced) EventAction() string { return "PLACED" }

// newQueue makes a queue with a handler of its own, which may be nil.
func newQueue(t testing.TB, name string, policy eventqueue.Policy, handle func(ctx context.Context, q *eventstest.Queue, run *eventqueue.Run) error) *eventstest.Queue {
	t.Helper()
	q := eventstest.New(t, service.Config{DatabaseURL: testenv.DatabaseURL(t)})
	if handle == nil {
		return q
	}
	err := q.Service.Register(eventqueue.HandlerKey{Name: name}, eventqueue.HandlerFunc(func(ctx context.Context, run *eventqueue.Run) error {
		return handle(ctx, q, run)
	}), policy)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func emit(t testing.TB, q *eventstest.Queue, e eventqueue.NewEvent) eventqueue.EventID {
	t.Helper()
	if e.Value == nil {
		e.Value = json.RawMessage(`1`)
	}
	id, err := q.Service.Emit(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func returns(err error) func(context.Context, *eventstest.Queue, *eventqueue.Run) error {
	return func(context.Context, *eventstest.Queue, *eventqueue.Run) error { return err }
}

var errDown = errors.New("the mail server is down")

// failing is a test that is expected to fail.
type failing struct {
	testing.TB
	expected bool // within messageOf, whose goroutine alone uses it
	message  string
}

func (f *failing) Fatalf(format string, arguments ...any) {
	f.Helper()
	if !f.expected {
		f.TB.Fatalf(format, arguments...)
	}
	f.message = fmt.Sprintf(format, arguments...)
	runtime.Goexit()
}

func (f *failing) Fatal(arguments ...any) { f.Fatalf("%s", fmt.Sprint(arguments...)) }

// messageOf returns with what a call fails the test.
func (f *failing) messageOf(call func()) string {
	f.message, f.expected = "", true
	defer func() { f.expected = false }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	<-done
	return f.message
}

// wantMessage fails unless a message has all parts, in their order.
func wantMessage(t *testing.T, message string, parts ...string) {
	t.Helper()
	rest := message
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Errorf("the failure is\n%s\nand has no %q in its place", message, part)
			return
		}
		rest = after
	}
}
