package webtarget

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Server is a web server on a free port of the loopback interface.
type Server struct {
	server   *http.Server
	listener net.Listener
	served   chan struct{} // closed when the server has ended
}

// Start listens and serves until Stop.
func Start(ctx context.Context, handler http.Handler) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for events: %w", err)
	}
	s := &Server{
		server:   &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second},
		listener: listener,
		served:   make(chan struct{}),
	}
	go func() {
		defer close(s.served)
		_ = s.server.Serve(listener) // always an error: that of Close
	}()
	return s, nil
}

// URL is where the server is, without a slash at the end.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Stop ends the server and the requests it is working on. The context is a
// clean-up; nothing here waits for it.
func (s *Server) Stop(context.Context) error {
	err := s.server.Close()
	<-s.served
	return err
}
