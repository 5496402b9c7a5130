package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/pubsubnotify"
	"eventsv2/service"
	"eventsv2/test/attack/faults/emission"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	if err := program(ctx, zap.Must(zap.NewProduction())); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "embed:", err) // nowhere else to say it
		os.Exit(1)
	}
}

func program(ctx context.Context, log *zap.Logger) error {
	config, err := configuration(log)
	if err != nil {
		return err
	}
	s, err := service.Open(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	group, ctx := errgroup.WithContext(ctx)
	health, err := s.Health()
	if err != nil {
		return err
	}
	group.Go(func() error { return serve(ctx, s.Queue, health, log) })
	if !config.NoWorker {
		if err := register(s); err != nil {
			return err
		}
		group.Go(func() error { return s.Run(ctx) })
	}
	log.Info("program started")
	return group.Wait()
}

// configuration leaves all but the worker to cmd/cron, so that a scenario can do without.
func configuration(log *zap.Logger) (service.Config, error) {
	config := service.Config{
		Name: "app", DatabaseURL: os.Getenv("DATABASE_URL"), MaxConns: 4,
		PubSub: pubsubnotify.Config{ProjectID: os.Getenv("PUBSUB_PROJECT_ID"), Topic: os.Getenv("PUBSUB_TOPIC"),
			Subscription: os.Getenv("PUBSUB_SUBSCRIPTION"), EmulatorHost: os.Getenv("PUBSUB_EMULATOR_HOST")},
		Schema: pgsession.Schema(os.Getenv("EVENTS_SCHEMA")), NoWorker: os.Getenv("FAULTS_ROLE") == "emit", NoRelay: true, NoCron: true, NoPruner: true,
		Logger: log,
	}
	config.Worker.RetainHistory = true
	text := os.Getenv("LOCK_TIMEOUT")
	if text == "" {
		return config, nil
	}
	lockTimeout, err := time.ParseDuration(text)
	config.LockTimeout = lockTimeout
	return config, err
}

func register(s *service.Service) error {
	p := poster{to: os.Getenv("FAULTS_TARGET")}
	if os.Getenv("FAULTS_HOLD") == "true" {
		p.hold = s.Pool()
	}
	if os.Getenv("FAULTS_TYPED") == "true" {
		return emission.Add(s.Bus(), p.post)
	}
	return s.Register(eventqueue.HandlerKey{Name: "work"}, eventqueue.HandlerFunc(p.post), eventqueue.Policy{})
}

// poster is the handler.
type poster struct {
	to   string
	hold *pgxpool.Pool // nil: none
}

func (p poster) post(ctx context.Context, run *eventqueue.Run) error {
	if p.hold != nil {
		conn, err := p.hold.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.to, bytes.NewReader(run.Value))
	if err != nil {
		return err
	}
	request.Header.Set("ce-id", run.ID.String())
	request.Header.Set("ce-subject", run.Module+"/"+run.Name+"/"+run.Modifier)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := answer.Body.Close(); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the target answers %s", answer.Status)
	}
	return nil
}

// serve emits what it is asked to, beside the health of the program.
func serve(ctx context.Context, queue *eventqueue.Queue, health http.Handler, log *zap.Logger) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	log.Info("serving", zap.String("address", listener.Addr().String()))
	mux := http.NewServeMux()
	mux.Handle("/", health)
	mux.HandleFunc("POST /emit", func(w http.ResponseWriter, r *http.Request) {
		var asked []emission.Event
		err := json.NewDecoder(r.Body).Decode(&asked)
		events := make([]eventqueue.NewEvent, len(asked))
		for i := range asked {
			var problem error
			events[i], problem = asked[i].NewEvent()
			err = errors.Join(err, problem)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		ids, err := queue.EmitMany(r.Context(), events)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(ids) // the caller hung up
	})
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: mux}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // nobody waits for an answer then
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
