package service_test

import (
	"context"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

func nothing(context.Context, *eventqueue.Run) error { return nil }

// TestHandlersAreRegisteredBeforeRun: later it is an error, which names the handler.
func TestHandlersAreRegisteredBeforeRun(t *testing.T) {
	t.Parallel()
	s := open(t, service.Config{DatabaseURL: testenv.DatabaseURL(t), Notifier: service.Memory})
	ran := collect(t, s)
	stop := run(t, s)
	if _, err := s.Emit(testenv.Context(t), eventqueue.NewEvent{Name: "greet", Value: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	<-ran
	for name, err := range map[string]error{
		"plain":      s.Register(eventqueue.HandlerKey{Name: "plain"}, eventqueue.HandlerFunc(nothing), eventqueue.Policy{}),
		"on-one":     s.RegisterOn(eventqueue.CanvasID{7}, eventqueue.HandlerKey{Name: "on-one"}, eventqueue.HandlerFunc(nothing), eventqueue.Policy{}),
		"typed-late": service.On(s, "typed-late", func(context.Context, OrderPlaced, *eventqueue.Run) error { return nil }),
	} {
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "before Run") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := s.Register(eventqueue.HandlerKey{Name: "after"}, eventqueue.HandlerFunc(nothing), eventqueue.Policy{}); err == nil {
		t.Error("a handler was registered after Run")
	}
}

// TestCloseEndsRun: it runs no more when Close returns, and what it had in hand has ended.
func TestCloseEndsRun(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	s := open(t, service.Config{DatabaseURL: testenv.DatabaseURL(t), Notifier: service.Memory})
	began, end := make(chan struct{}), make(chan struct{})
	err := s.Register(eventqueue.HandlerKey{Name: "greet"}, eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error {
		close(began)
		<-end
		return nil
	}), eventqueue.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	if _, err := s.Emit(ctx, eventqueue.NewEvent{Name: "greet", Value: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	<-began
	close(end)
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	select {
	case err := <-ran:
		if err != nil {
			t.Errorf("Run = %v", err)
		}
	default:
		t.Error("Run had not returned when Close did")
	}
}

// TestRunAfterCloseIsRefused, whose connections are closed.
func TestRunAfterCloseIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t, service.Config{DatabaseURL: testenv.DatabaseURL(t), Notifier: service.Memory})
	if err := s.Register(eventqueue.HandlerKey{Name: "greet"}, eventqueue.HandlerFunc(nothing), eventqueue.Policy{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(testenv.Context(t)); err == nil || !strings.Contains(err.Error(), "after Close") {
		t.Errorf("Run = %v", err)
	}
}

// TestNotifierIsChosenByOneRule: a Config and an environment that say the same have the same notifier.
func TestNotifierIsChosenByOneRule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environment map[string]string
		want        service.NotifierKind
	}{
		"nothing":     {nil, service.Postgres},
		"a project":   {map[string]string{"PUBSUB_PROJECT_ID": "my-project"}, service.PubSub},
		"an emulator": {map[string]string{"PUBSUB_EMULATOR_HOST": "localhost:1"}, service.PubSub},
		"a name":      {map[string]string{"PUBSUB_PROJECT_ID": "my-project", "NOTIFIER": "postgres"}, service.Postgres},
		"no project":  {map[string]string{"NOTIFIER": "pubsub"}, service.PubSub},
	} {
		environment := map[string]string{"DATABASE_URL": "postgres://db/x"}
		for k, v := range c.environment {
			environment[k] = v
		}
		read, err := service.FromEnvironment(environment)
		if err != nil {
			t.Fatal(err)
		}
		written := service.Config{DatabaseURL: "postgres://db/x", Notifier: service.NotifierKind(environment["NOTIFIER"])}
		written.PubSub.ProjectID, written.PubSub.EmulatorHost = environment["PUBSUB_PROJECT_ID"], environment["PUBSUB_EMULATOR_HOST"]
		for how, config := range map[string]service.Config{"environment": read, "Config": written} {
			if got := service.NotifierOf(config); got != c.want {
				t.Errorf("%s, by %s: the notifier is %s, want %s", name, how, got, c.want)
			}
		}
	}
}
