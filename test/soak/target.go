package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"eventsv2/cronchecker"
)

// target is the web server that cmd/worker posts events to.
type target struct {
	ledger   *ledger
	server   *http.Server
	listener net.Listener
	served   chan struct{} // closed when the server has ended
}

// startTarget listens on the loopback interface.
func startTarget(ctx context.Context, l *ledger) (*target, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for events: %w", err)
	}
	t := &target{ledger: l, listener: listener, served: make(chan struct{})}
	t.server = &http.Server{Handler: t, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(t.served)
		_ = t.server.Serve(listener) // always an error: that of Close
	}()
	return t, nil
}

func (t *target) url() string { return "http://" + t.listener.Addr().String() }

func (t *target) stop(context.Context) error {
	err := t.server.Close()
	<-t.served
	return err
}

// ServeHTTP does one event. It is on record before the answer: what the worker
// knows to be done has to be done.
func (t *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	value, err := io.ReadAll(r.Body)
	if err != nil {
		return // the worker is gone, and nobody reads an answer
	}
	retries, err := strconv.Atoi(r.Header.Get("ce-retries"))
	if err != nil {
		http.Error(w, "ce-retries is not a number", http.StatusBadRequest)
		return
	}
	if err := perform(r.Context(), r.Header.Get("ce-name"), retries); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if r.Context().Err() != nil {
		return // abandoned, and due to come again
	}
	if err := t.record(r.Header.Get("ce-module"), value); err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
	}
}

// errUnknown is the answer to an event that has no handler here.
var errUnknown = errors.New("no handler of the soak")

func (t *target) record(of string, value []byte) error {
	switch of {
	case module:
		return t.ledger.ran(value)
	case cronchecker.Module:
		return t.ledger.ticked(value)
	default:
		return errUnknown
	}
}
