package service

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/cause"
	"eventsv2/internal/intake"
	"eventsv2/webhook"
)

// answerTimeout is how long those have whose request is under way when the program
// stops. A webhook that is cut off is not answered, so it comes again.
const answerTimeout = time.Second

const (
	// readHeaderTimeout and readTimeout are how long a header, and a whole request, may
	// take to arrive on any path; package webhook has a time of its own for bodies.
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second
	// leftoverTimeout bounds reading the unused rest of a body.
	leftoverTimeout = time.Second
	// maxHeaderBytes bounds the header. Go takes 4 KiB more.
	maxHeaderBytes = 12 << 10
)

// serve serves on a listener, which it closes, until ctx ends. Who sends much, slowly or
// never gets no more than its part of the memory: see connections and webhook.Config.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, log *zap.Logger) error {
	errorLog, err := zap.NewStdLogAt(log, zap.WarnLevel)
	if err != nil {
		return err
	}
	quiet := &connections{places: map[net.Conn]*list.Element{}}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: maxHeaderBytes, ConnState: quiet.changed, ErrorLog: errorLog}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve health checks: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	err = server.Shutdown(stop)
	if errors.Is(err, context.DeadlineExceeded) {
		// Whoever sends slowly must not make the end of the program look like a failure.
		log.Warn("requests were cut off", zap.Duration("after", answerTimeout))
		err = server.Close()
	}
	if served := <-served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// checks determine the state of a program.
type checks struct {
	alive func() error
	ready func(context.Context) (age time.Duration, err error)
	// runnable answers /runnable; nil: nothing does.
	runnable http.Handler
}

// healthHandler answers /healthz (every loop goes round) and /readyz (ready returned no
// error), with the age of that answer, and leaves what begins with /webhooks to webhooks,
// unless that is nil.
//
// A program that is impaired is ready: it does its work, and a deployment that waits for
// it must not wait for its notifier. The answer says so, and the log says why.
func healthHandler(asked checks, webhooks http.Handler, log *zap.Logger) http.Handler {
	mux := http.NewServeMux()
	if asked.runnable != nil {
		mux.Handle("GET /runnable", asked.runnable)
	}
	state := readiness{message: "ready"}
	var stalled atomic.Bool
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		err := asked.alive()
		if err != nil { // answered before it is logged: the log may be what the loop waits for
			text := err.Error() + "\n"
			w.Header().Set("Content-Length", strconv.Itoa(len(text))) // so that the answer has an end
			w.Header().Set("Connection", "close")                     // and that no client waits on it for this request
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, text)            // the prober hung up
			_ = http.NewResponseController(w).Flush() // likewise
		} else {
			_, _ = fmt.Fprintln(w, "ok") // likewise
		}
		if was := stalled.Swap(err != nil); err != nil && !was {
			log.Error("a loop of the program does not go round: restart the program", zap.Error(err))
		} else if err == nil && was {
			log.Info("every loop goes round again")
		}
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		age, err := asked.ready(r.Context())
		checked := fmt.Sprintf("checked %s ago", age.Truncate(time.Second))
		w.Header().Set("Age", strconv.Itoa(int(age.Seconds())))
		var impaired *ImpairedError
		switch {
		case err == nil:
			state.is("ready", nil, log)
			_, _ = fmt.Fprintf(w, "ready\n%s\n", checked) // the prober hung up
		case errors.As(err, &impaired):
			state.is("ready, but "+impaired.effect, err, log)
			_, _ = fmt.Fprintf(w, "ready, but %s: %s; see the log\n", impaired.effect, impaired.advice())
		case errors.Is(err, errNotBegun):
			state.is("not ready yet", err, log)
			http.Error(w, "not ready: see the log\n"+checked, http.StatusServiceUnavailable)
		default: // another cause than before it began, to be logged as well
			state.is("not ready", err, log)
			what := "not ready: "
			if database := new(databaseError); errors.As(err, &database) {
				what += "Postgres cannot be used: "
			}
			http.Error(w, what+"see the log\n"+checked, http.StatusServiceUnavailable)
		}
	})
	// No handler here reads a body, so none is waited for.
	plain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			w.Header().Set("Connection", "close")
			// The server itself reads what is left, to close the connection politely.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(leftoverTimeout))
		}
		began, answer := time.Now(), &answered{w, http.StatusOK}
		mux.ServeHTTP(answer, r)
		log.Debug("request served", intake.LogField(r, answer.status, time.Since(began)))
	})
	if webhooks == nil {
		return plain
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Not through the mux, which would answer with a redirect for some paths.
		if strings.HasPrefix(r.URL.Path, "/webhooks") {
			webhooks.ServeHTTP(w, r)
			return
		}
		plain.ServeHTTP(w, r)
	})
}

// withMetrics leaves GET /metrics to a handler of its own, unless that is nil.
func withMetrics(metrics, others http.Handler) http.Handler {
	if metrics == nil {
		return others
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" && r.Method == http.MethodGet {
			metrics.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

// answered notes the status of an answer.
type answered struct {
	http.ResponseWriter
	status int
}

// Unwrap is for http.ResponseController.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answered) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// readiness is the last answer, so that each change is logged, also of the cause, and not
// each request.
type readiness struct {
	mu      sync.Mutex
	message string
	causes  cause.Log
}

func (r *readiness) is(message string, err error, log *zap.Logger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := r.message != message
	r.message = message
	if err == nil {
		if changed {
			log.Info(message)
		}
		return
	}
	if !r.causes.Worth(advised(err), changed) {
		return
	}
	log.Warn(message, zap.Error(err))
}

// adviceError is an error whose cause is all the advice for it.
type adviceError struct {
	error
	advice string
}

func (e adviceError) Advice() string { return e.advice }

// advised has the cause of an impaired program be all that is wrong with its notifier.
func advised(err error) error {
	var impaired *ImpairedError
	if !errors.As(err, &impaired) {
		return err
	}
	return adviceError{err, impaired.advice()}
}

// Health answers GET /healthz (Alive) and /readyz (Ready, which asks database and notifier
// every 10 s at most, and pings the database once between two such requests, however often it is requested), with a relay /runnable (how many events
// could run now, for autoscalers, with one statement per second at most), and, with sources
// in the handlers file, requests below /webhooks, and with Config.Metrics /metrics: mount it on a server of the program's
// own where Config.Address is empty. It is safe for concurrent use.
func (s *Service) Health() (http.Handler, error) {
	webhooks, err := s.webhooks()
	if err != nil {
		return nil, err
	}
	ready := func(ctx context.Context) (time.Duration, error) {
		age, err := s.peersAsked.ask(ctx)
		return age, s.readyBeside(err)
	}
	asked := checks{alive: s.Alive, ready: ready}
	if !s.config.NoRelay {
		asked.runnable = &runnable{count: inspect.NewIn(s.config.Schema, s.pool).Runnable, log: s.log}
	}
	return withMetrics(s.config.Metrics, healthHandler(asked, webhooks, s.log)), nil
}

// webhooks is the handler of the sources, or nil when there are none.
func (s *Service) webhooks() (http.Handler, error) {
	if len(s.sources) == 0 {
		return nil, nil
	}
	s.received.Declare(s.sources)
	return newWebhooks(s.Queue, s.store, webhook.Config{Sources: s.sources, Observe: s.observeReceived, MaxBodyBytes: int64(s.config.Queue.Limits.MaxValueBytes), Logger: s.log})
}

// observeReceived counts what a source has received, for the tables and for the observer.
func (s *Service) observeReceived(source webhook.Source, outcome webhook.Outcome, refused error) {
	s.received.Observe(source, outcome, refused)
	if s.config.Observer != nil {
		s.config.Observer.Received(source, outcome, refused)
	}
}

// ObserveRefused has the observer see a request that a server beside the Service has refused.
func (s *Service) ObserveRefused(via string, status int) {
	if s.config.Observer != nil {
		s.config.Observer.Refused(via, status)
	}
}

// serveWhile runs work until ctx ends, and serves Config.Address for as long as it works.
func (s *Service) serveWhile(ctx context.Context, work func(context.Context) error) error {
	handler, err := s.Health()
	if err != nil {
		return err
	}
	return serveWhile(ctx, s.config.Address, handler, s.log, work)
}

// serveWhile takes the address before the work begins.
func serveWhile(ctx context.Context, address string, handler http.Handler, log *zap.Logger, work func(context.Context) error) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen on Address %s (PORT %s): %w", address, address[strings.LastIndex(address, ":")+1:], err)
	}
	log.Info("health endpoints listen", zap.Stringer("address", listener.Addr()))
	health, stopHealth := context.WithCancel(context.WithoutCancel(ctx))
	defer stopHealth()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return serve(health, listener, handler, log) })
	group.Go(func() error {
		defer stopHealth()
		return work(ctx)
	})
	return group.Wait()
}
