package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"testing"
	"testing/slogtest"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/runlog"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

// TestLogIsAttachedInTextForm, with the attributes and groups of its logger, and passed on as it is.
func TestLogIsAttachedInTextForm(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var log runlog.Log
	ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), runlog.Key{}, &log), time.Minute)
	defer cancel()
	logger := slog.New(service.AttachLog(slog.NewTextHandler(&out, nil)))
	own := logger.With("order", 7).WithGroup("card")
	logger.InfoContext(ctx, "card found", "holder", "Ada L")
	own.With("a", 1).WarnContext(ctx, "two\nlines\x00", "number", "\xff")
	own.ErrorContext(ctx, "declined", "b", 2)
	logger.DebugContext(ctx, "below the level of the handler")
	attached := log.Text()
	if want := `time=… level=INFO msg="card found" holder="Ada L"
time=… level=WARN msg="two\nlines\x00" order=7 card.a=1 card.number="\xff"
time=… level=ERROR msg=declined order=7 card.b=2`; regexp.MustCompile(`time=\S+`).ReplaceAllString(attached, "time=…") != want {
		t.Errorf("attached is\n%s\nwant\n%s", attached, want)
	}
	if out.String() != attached+"\n" {
		t.Errorf("passed on is\n%s\nwant\n%s", out.String(), attached)
	}
	logger.Info("without a run")
	logger.InfoContext(t.Context(), "without a run")
	if log.Text() != attached {
		t.Errorf("attached is now\n%s", log.Text())
	}
}

// TestAttachLogIsAHandler as package slog wants them.
func TestAttachLogIsAHandler(t *testing.T) {
	var out bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		out.Reset()
		return service.AttachLog(slog.NewJSONHandler(&out, nil))
	}, func(t *testing.T) (line map[string]any) {
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		return line
	})
}

// TestLogOfAProgramIsAttached to the events of all kinds of handlers.
func TestLogOfAProgramIsAttached(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	logger := slog.New(service.AttachLog(slog.DiscardHandler))
	quiet := slog.New(service.AttachLog(slog.NewTextHandler(new(bytes.Buffer), nil)))
	config := service.Config{DatabaseURL: testenv.DatabaseURL(t), Logger: zap.NewNop()}
	config.Worker.RetainHistory = true
	s := open(t, config)
	sent := make(chan struct{})
	err := errors.Join(
		s.Register(eventqueue.HandlerKey{Name: "charge2"}, eventqueue.HandlerFunc(func(ctx context.Context, _ *eventqueue.Run) error {
			logger.InfoContext(ctx, "discarded")
			quiet.InfoContext(ctx, "card found")
			return eventqueue.Permanent(errors.New("card declined"))
		}), eventqueue.Policy{}),
		service.On(s, "mail", func(ctx context.Context, o OrderPlaced, _ *eventqueue.Run) error {
			quiet.InfoContext(ctx, "sent", "order", o)
			close(sent)
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, s)
	_, typed := s.EmitTyped(ctx, OrderPlaced{1})
	id, plain := s.Emit(ctx, eventqueue.NewEvent{Name: "charge2", Value: json.RawMessage(`1`)})
	if err := errors.Join(typed, plain); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Await(ctx, id); err != nil {
		t.Fatal(err)
	}
	select {
	case <-sent:
	case <-ctx.Done():
		t.Fatal("the typed handler has not run")
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := s.Pool().QueryRow(ctx, `SELECT run_log FROM event_log WHERE name = 'mail'`).Scan(&got); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^time=\S+ level=INFO msg=sent order=\{\S+\}$`).MatchString(got) {
		t.Errorf("the typed handler has logged %q", got)
	}
	var failed, attempt string
	if err := s.Pool().QueryRow(ctx, `SELECT l.run_log, a.run_log FROM event_log l JOIN event_attempts a ON a.event_id = l.id WHERE l.id = $1`, id).Scan(&failed, &attempt); err != nil {
		t.Fatal(err)
	}
	if failed != attempt || !regexp.MustCompile(`^time=\S+ level=INFO msg="card found"$`).MatchString(failed) {
		t.Errorf("the plain handler has logged %q and %q", failed, attempt)
	}
}
