package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// readyTimeout bounds one answer of /readyz.
const readyTimeout = 3 * time.Second

// answerTimeout is how long those have whose request is under way when the program
// stops. A webhook that is cut off is not answered, so it comes again.
const answerTimeout = time.Second

// serve serves on a listener, which it closes, until ctx ends. The size of headers is
// left to the default, 1 MiB, so that whoever sends too many signatures gets the
// handler's answer, and a line in the log.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, log *zap.Logger) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve health checks: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	err := server.Shutdown(stop)
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

// healthHandler answers /healthz (the process lives) and /readyz (ready returned no
// error), and leaves what begins with /webhooks to webhooks, unless that is nil.
func healthHandler(ready func(context.Context) error, webhooks http.Handler, log *zap.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, "ok") // the prober hung up
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if err := ready(ctx); err != nil {
			log.Warn("not ready", zap.Error(err))
			http.Error(w, "not ready: see the log", http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ready") // the prober hung up
	})
	if webhooks == nil {
		return mux
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Not through the mux, which would answer with a redirect for some paths.
		if strings.HasPrefix(r.URL.Path, "/webhooks") {
			webhooks.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// RunWithHealth runs a program's work until ctx ends, and the health endpoints
// for as long as it works. The port is taken before the work begins.
func RunWithHealth(ctx context.Context, port int, ready func(context.Context) error, log *zap.Logger, work func(context.Context) error) error {
	return RunWithWebhooks(ctx, port, ready, nil, log, work)
}

// RunWithWebhooks is RunWithHealth with a handler for /webhooks/ on the same port; nil
// is none.
func RunWithWebhooks(ctx context.Context, port int, ready func(context.Context) error, webhooks http.Handler, log *zap.Logger, work func(context.Context) error) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return fmt.Errorf("PORT %d: %w", port, err)
	}
	log.Info("health endpoints listen", zap.Stringer("address", listener.Addr()))
	health, stopHealth := context.WithCancel(context.WithoutCancel(ctx))
	defer stopHealth()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return serve(health, listener, healthHandler(ready, webhooks, log), log) })
	group.Go(func() error {
		defer stopHealth()
		return work(ctx)
	})
	return group.Wait()
}
