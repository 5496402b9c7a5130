package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

// write is what the handler of the example does.
func write(context.Context, int) error { return nil }

// TestAwaitRefusesAResultThatItCannotOpen: it would be taken for one that is empty.
func TestAwaitRefusesAResultThatItCannotOpen(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	s := open(t, service.Config{DatabaseURL: testenv.DatabaseURL(t), Logger: zap.NewNop()})
	if _, err := s.Pool().Exec(ctx, `INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at, result)
		VALUES (17, gen_random_uuid(), 'M', 'n', '_', '1', 'COMPLETED', 0, 1, now(), '{"$encrypted":{"key":7,"bytes":"YWJj"}}')`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Await(ctx, 17); err == nil || !strings.Contains(err.Error(), "await the end of event 17: its result is encrypted with key 7, and this program has no Codec") {
		t.Errorf("%v", err)
	}
	outcome, err := s.Await(ctx, 18)
	if err != nil || outcome.Status != "" || !errors.Is(outcome.Decode(new(int)), service.ErrNoResult) {
		t.Errorf("an event that never was: %+v, %v", outcome, err)
	}
}

func TestAwaitSaysHowEventsHaveEnded(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	for name, keeps := range map[string]bool{"with history": true, "without history": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := service.Config{DatabaseURL: testenv.DatabaseURL(t), Logger: zap.NewNop()}
			config.Worker.RetainHistory = keeps
			s := open(t, config)
			fails := eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error {
				return eventqueue.Permanent(errors.New("the disk is full"))
			})
			if err := errors.Join(s.Register(eventqueue.HandlerKey{Name: "report"}, eventqueue.HandlerFunc(report), eventqueue.Policy{}),
				s.Register(eventqueue.HandlerKey{Name: "fails"}, fails, eventqueue.Policy{})); err != nil {
				t.Fatal(err)
			}
			stop := run(t, s)
			r, err := ask(ctx, s)
			if want := (Report{7, "reports/7.csv"}); keeps && (err != nil || r != want) {
				t.Errorf("the result is %+v, %v", r, err)
			}
			if !keeps && (!errors.Is(err, service.ErrNoResult) || !strings.Contains(err.Error(), "its status is not known")) {
				t.Errorf("without history: %+v, %v", r, err)
			}
			failed, later := eventqueue.NewEvent{Name: "fails", Value: json.RawMessage(`1`)}, eventqueue.NewEvent{Name: "report", Value: json.RawMessage(`1`), Delay: time.Hour}
			ids, err := s.EmitMany(ctx, []eventqueue.NewEvent{failed, later})
			if err != nil {
				t.Fatal(err)
			}
			outcome, err := s.Await(ctx, ids[0])
			if err != nil || outcome.Status != inspect.LogFailed || outcome.LastError != "the disk is full" {
				t.Errorf("a failed event: %+v, %v", outcome, err)
			}
			if err := outcome.Decode(&r); !errors.Is(err, service.ErrNoResult) {
				t.Errorf("its result: %v", err)
			}
			short, cancel := context.WithTimeoutCause(ctx, 50*time.Millisecond, errors.New("too long"))
			defer cancel()
			if _, err := s.Await(short, ids[1]); err == nil || !strings.Contains(err.Error(), "await the end of event "+ids[1].String()) || !errors.Is(short.Err(), context.DeadlineExceeded) {
				t.Errorf("an event that does not end: %v", err)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
