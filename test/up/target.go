package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"eventsv2/test/command"
)

// maxShown is how much of a value is printed.
const maxShown = 1000

// newTarget starts a server for the handlers of the sample file.
func newTarget(out *command.Reporter) (*target, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the sample's events: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, maxShown)) // what came is shown
		out.Report("event %s for %s: %q", r.Header.Get("Ce-Id"), r.Header.Get("Ce-Subject"), body)
	})}
	go func() { _ = server.Serve(listener) }() // until it is closed
	return &target{server: server, address: listener.Addr().String()}, nil
}
