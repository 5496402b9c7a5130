package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/worker"
	"eventsv2/service"
)

// A worker that is configured as the programs in cmd/ are, by its environment, and that
// Kubernetes or Cloud Run can ask for its health on PORT.
func ExampleRun() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config, err := service.FromEnv()
	if err != nil {
		log.Print(err)
		return
	}
	config.NoRelay, config.NoCron, config.NoPruner = true, true, true // cmd/cron runs these
	if err := service.Run(ctx, config, register); err != nil {
		log.Print(err)
	}
}

func register(s *service.Service) error {
	greet := func(_ context.Context, run *eventqueue.Run) error {
		fmt.Println("hello", string(run.Value))
		return nil
	}
	return s.Register(eventqueue.HandlerKey{Name: "greet"}, eventqueue.HandlerFunc(greet), eventqueue.Policy{Timeout: 10 * time.Second})
}

// A program that emits, and runs nothing.
func ExampleOpen() {
	ctx := context.Background()
	s, err := service.Open(ctx, service.Config{
		DatabaseURL: os.Getenv("DATABASE_URL"),
		NoWorker:    true, NoRelay: true, NoCron: true, NoPruner: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	id, err := s.Emit(ctx, eventqueue.NewEvent{Name: "greet", Value: json.RawMessage(`"world"`)})
	if err := errors.Join(err, s.Close()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("accepted as", id)
}

// The settings of each part, beside the switches.
func ExampleConfig() {
	config := service.Config{
		DatabaseURL: os.Getenv("DATABASE_URL"),
		MultiTenant: true, // an event that names no canvas is refused
		Worker:      worker.Config{Concurrency: 50, RetainHistory: true},
		Pruner:      maintenance.PrunerConfig{CompletedFor: 72 * time.Hour},
	}
	fmt.Println(config.Validate() == nil)
}

// Health endpoints on a server of the program's own.
func ExampleService_Health() {
	s, err := service.Open(context.Background(), service.Config{DatabaseURL: os.Getenv("DATABASE_URL")})
	if err != nil {
		log.Fatal(err)
	}
	health, err := s.Health()
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/healthz", health)
	http.Handle("/readyz", health)
}
