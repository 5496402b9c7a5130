package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

// TestHooksOfAProgram: those of the examples, and of two failures of each kind, in one program with a plain handler, a
// typed one, children and an HTTP target.
func TestHooksOfAProgram(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	target := httptest.NewServer(http.NotFoundHandler()) // the event is FAILED at once
	t.Cleanup(target.Close)
	file := filepath.Join(t.TempDir(), "handlers.yaml")
	text := fmt.Sprintf("handlers: [{module: WORKER, name: post, modifier: _, url: %q}]", target.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var ran []string
	note := func(next eventqueue.Handler) eventqueue.Handler {
		return eventqueue.HandlerFunc(func(ctx context.Context, run *eventqueue.Run) error {
			mu.Lock()
			ran = append(ran, run.Handler().String()+" "+run.Attributes["region"])
			mu.Unlock()
			return next.Handle(ctx, run)
		})
	}
	var reports bytes.Buffer
	report := reportError(slog.New(slog.NewTextHandler(&reports, &slog.HandlerOptions{ReplaceAttr: withoutTime})))
	failed := make(chan worker.FailedRun, 10)
	config := service.Config{DatabaseURL: testenv.DatabaseURL(t), HandlersFile: file, Logger: zap.NewNop()}
	config.Queue.EmitMiddleware = []eventqueue.EmitMiddleware{stamped}
	config.Worker.Middleware = []func(eventqueue.Handler) eventqueue.Handler{measured, note}
	config.Worker.OnError = func(ctx context.Context, f worker.FailedRun) {
		mu.Lock()
		defer mu.Unlock()
		report(ctx, f)
		countFailure(ctx, f)
		failed <- f
	}
	s := open(t, config)
	once := eventqueue.Policy{MaxRetries: new(0)}
	err := errors.Join(
		s.Register(eventqueue.HandlerKey{Name: "charge2"}, eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error {
			return eventqueue.Permanent(errors.New("card declined"))
		}), eventqueue.Policy{}),
		s.Register(eventqueue.HandlerKey{Name: "letter"}, eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error { panic("no paper") }), once),
		service.On(s, "mail", func(ctx context.Context, _ OrderPlaced, _ *eventqueue.Run) error {
			if _, err := s.Emit(ctx, eventqueue.NewEvent{Name: "fax", Value: json.RawMessage(`1`)}); !errors.Is(err, errRetired) {
				t.Errorf("the emit that is refused: %v", err)
			}
			_, err := s.Emit(ctx, eventqueue.NewEvent{Name: "letter", Value: json.RawMessage(`1`)})
			return err
		}))
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, s)
	_, typed := s.EmitTyped(ctx, OrderPlaced{1})
	_, many := s.EmitMany(ctx, []eventqueue.NewEvent{{Name: "charge2", Value: json.RawMessage(`1`)}, {Name: "post", Value: json.RawMessage(`1`)}})
	own := pgx.BeginFunc(ctx, s.Pool(), func(tx pgx.Tx) error {
		_, err := s.EmitTx(ctx, tx, eventqueue.NewEvent{Name: "fax", Value: json.RawMessage(`1`)})
		return err
	})
	if err := errors.Join(typed, many); err != nil || !errors.Is(own, errRetired) {
		t.Fatal(err, own)
	}
	for range 3 {
		var f worker.FailedRun
		select {
		case f = <-failed:
		case <-ctx.Done():
			t.Fatal("OnError is not called three times")
		}
		panicked := f.Event.Name == "letter"
		if !f.Last || f.Attempt != 1 || f.Err == nil || panicked != strings.Contains(string(f.Stack), "hooks_test.go") {
			t.Errorf("OnError gets %+v", f)
		}
		if panicked && f.Event.ParentID == 0 {
			t.Error("the child that failed has no parent")
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, handler := range []string{"WORKER/charge2/_", "WORKER/post/_", "ORDER/PLACED/_", "ORDER/mail/ORDER.PLACED", "WORKER/letter/_"} {
		if n := strings.Count(strings.Join(ran, "\n")+"\n", handler+" europe-west1\n"); n != 1 {
			t.Errorf("%s ran %d times in the middleware with the attribute of the emit: %q", handler, n, ran)
		}
	}
	for name, fails := range map[string]string{"charge2": "1", "post": "1", "letter": "1", "mail": "<nil>"} {
		if n := fmt.Sprint(runs.Get(name), failures.Get(name)); n != "1 "+fails {
			t.Errorf("the metrics have %s of %s: %v, %v", n, name, runs, failures)
		}
	}
	for _, want := range []string{`level=ERROR msg="card declined"`, "panicked=true", "handler=WORKER/post/_"} {
		if !strings.Contains(reports.String(), want) {
			t.Errorf("the reporter lacks %s: %s", want, &reports)
		}
	}
	var faxes int
	if err := s.Pool().QueryRow(ctx, `SELECT count(*) FROM events_v2`).Scan(&faxes); err != nil || faxes != 0 {
		t.Errorf("%d events are left, %v", faxes, err)
	}
}

// TestNilHooksAreRefused by Open, which names them.
func TestNilHooksAreRefused(t *testing.T) {
	t.Parallel()
	config := service.Config{DatabaseURL: "postgres://nobody@127.0.0.1:1/nothing", Logger: zap.NewNop()}
	config.Queue.EmitMiddleware = make([]eventqueue.EmitMiddleware, 1)
	config.Worker.Middleware = make([]func(eventqueue.Handler) eventqueue.Handler, 1)
	_, err := service.Open(testenv.Context(t), config)
	for _, want := range []string{"Queue: EmitMiddleware[0] is nil", "Worker: Middleware[0] is nil"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open = %v, want %q", err, want)
		}
	}
}
