package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// readyTimeout bounds one answer of /readyz.
const readyTimeout = 3 * time.Second

// ServeHealth answers /healthz (the process lives) and /readyz (ready returned
// no error) on a listener, which it closes, until ctx ends.
func ServeHealth(ctx context.Context, listener net.Listener, ready func(context.Context) error, log *zap.Logger) error {
	server := &http.Server{Handler: healthHandler(ready, log), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve health checks: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := server.Shutdown(stop)
	if served := <-served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

func healthHandler(ready func(context.Context) error, log *zap.Logger) http.Handler {
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
	return mux
}

// RunWithHealth runs a program's work until ctx ends, and the health endpoints
// for as long as it works. The port is taken before the work begins.
func RunWithHealth(ctx context.Context, port int, ready func(context.Context) error, log *zap.Logger, work func(context.Context) error) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return fmt.Errorf("PORT %d: %w", port, err)
	}
	log.Info("health endpoints listen", zap.Stringer("address", listener.Addr()))
	health, stopHealth := context.WithCancel(context.WithoutCancel(ctx))
	defer stopHealth()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return ServeHealth(health, listener, ready, log) })
	group.Go(func() error {
		defer stopHealth()
		return work(ctx)
	})
	return group.Wait()
}
