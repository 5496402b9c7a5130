package webserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/httpapi"
)

// What bounds connections.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 15 * time.Second
	writeTimeout  = time.Minute
	idleTimeout   = 2 * time.Minute
	headerBytes   = 16 << 10
	// stopTimeout is how long those have whose request is under way when the program stops.
	stopTimeout = 2 * time.Second
)

// Config configures a Server.
type Config struct {
	// Address is host:port; port 0 is any free one. An empty host is every address of the machine.
	Address string
	// AddressOf is how the address is called where it is set, for errors: such as API_LISTEN.
	AddressOf string
	// AccessFile has the issuers (access.LoadFile); "" is none.
	AccessFile string
	// Dashboard serves the dashboard at every path but those of the API; DashboardKey signs its sessions, so that programs
	// with the same key accept each other's. Default (""): one that is drawn at random.
	Dashboard    bool
	DashboardKey string
	// DashboardPrefix is the path below which browsers see the dashboard.
	DashboardPrefix string
	// TrustedProxies are the networks of proxies whose X-Forwarded-For says where a request comes from.
	TrustedProxies []netip.Prefix
	// Refused is called for each request that is answered with 401 or 403. Default (nil): they are not counted.
	Refused func(via string, status int)
	Store   *pgstore.Store
	Queue   *eventqueue.Queue
	// Logger gets what fails. Default (nil): none.
	Logger *zap.Logger
}

// Server serves on a listener. Handlers are added before Run.
type Server struct {
	// Handler answers requests: those below /v1/ by the API, and all others by the dashboard, if there is one.
	Handler http.Handler
	// Access finds out who makes a request.
	Access *access.Authenticator
	// Bulk has the changes of many events, which Run works on.
	Bulk *operate.Operations
	// Open reports whether no access is configured: the machine itself is let in, with every right.
	Open bool

	dashboard *dashboard.Handler // nil: none
	recorder  *access.Recorder
	prefix    string // of the dashboard, without a slash at its end
	trusted   []netip.Prefix
	listener  net.Listener
	log       *zap.Logger
}

// CheckAddress returns an error for an address on which nothing can listen.
func CheckAddress(address string) error {
	_, _, err := net.SplitHostPort(address)
	return err
}

// Listen makes a Server that listens, and does not serve yet. The error says what to do where the address can be
// reached by others and there is no access. It blocks for one statement.
func Listen(ctx context.Context, config Config) (*Server, error) {
	host, _, err := net.SplitHostPort(config.Address)
	if err != nil {
		return nil, fmt.Errorf("%s %q is not host:port: %w", config.AddressOf, config.Address, err)
	}
	if config.Logger == nil {
		config.Logger = zap.NewNop()
	}
	s := &Server{log: config.Logger, trusted: config.TrustedProxies,
		recorder: access.NewRecorder(config.Store.Schema(), config.Store.Pool(), config.Logger, config.Refused),
		Access:   &access.Authenticator{Tokens: access.NewTokens(config.Store.Schema(), config.Store.Pool()), Loopback: access.LoopbackHost(host)}}
	if config.AccessFile != "" {
		if s.Access.Issuers, err = access.LoadFile(config.AccessFile); err != nil {
			return nil, fmt.Errorf("ACCESS_FILE: %w", err)
		}
	}
	configured, err := s.Access.Configured(ctx)
	if err != nil {
		return nil, err
	}
	if s.Open = !configured; s.Open && !s.Access.Loopback {
		return nil, fmt.Errorf("%s %s can be reached by others, and there is neither a token nor an ACCESS_FILE: create a token with eventctl token create, "+
			"or listen on loopback, as on 127.0.0.1:8090", config.AddressOf, config.Address)
	}
	if s.Bulk, err = operate.NewOperations(config.Store, config.Queue, config.Logger); err != nil {
		return nil, err
	}
	api, err := httpapi.New(httpapi.Config{Store: config.Store, Queue: config.Queue, Bulk: s.Bulk, Access: s.Access, Logger: config.Logger})
	if err != nil {
		return nil, err
	}
	pages := http.NewServeMux()
	if config.Dashboard {
		if err := s.addDashboard(pages, config); err != nil {
			return nil, err
		}
	}
	s.Handler = beside(pages, s.recorder.Watch("api", api))
	if s.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", config.Address); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", config.AddressOf, err)
	}
	return s, nil
}

// addDashboard adds the dashboard, at every path that has no other handler.
func (s *Server) addDashboard(mux *http.ServeMux, config Config) error {
	s.prefix = strings.TrimRight(config.DashboardPrefix, "/")
	pages := dashboard.Config{Prefix: s.prefix, Store: config.Store, Queue: config.Queue, Bulk: s.Bulk, Access: s.Access, Log: config.Logger}
	if config.DashboardKey != "" {
		pages.SessionKey = []byte(config.DashboardKey)
	}
	handler, err := dashboard.New(pages)
	if err != nil {
		return err
	}
	s.dashboard = handler
	mux.Handle("/", s.recorder.Watch("dashboard", below(s.prefix, handler)))
	return nil
}

// beside serves requests below /v1/ by the API, as they are: a mux redirects those with a double slash to other paths.
func beside(pages, api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/") {
			api.ServeHTTP(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
}

// below serves requests that a proxy has passed on with the prefix, and those of which it has taken it away.
func below(prefix string, next http.Handler) http.Handler {
	if prefix == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := r.URL.Path; path != prefix && !strings.HasPrefix(path, prefix+"/") {
			within := *r.URL
			within.Path, within.RawPath = prefix+path, ""
			if raw := r.URL.RawPath; raw != "" {
				within.RawPath = prefix + raw
			}
			r = r.WithContext(r.Context())
			r.URL = &within
		}
		next.ServeHTTP(w, r)
	})
}

// Address is where the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// String says where the server listens, and who is let in while no access is configured.
func (s *Server) String() string {
	text := fmt.Sprintf("the HTTP API listens on http://%s/v1/", s.Address())
	if s.dashboard != nil {
		text += fmt.Sprintf(" and the dashboard on http://%s%s/", s.Address(), s.prefix)
	}
	if s.Open {
		text += "; no access is configured, so only this machine may use it, with every right"
	}
	return text
}

// Close closes the listener of a server that is not Run.
func (s *Server) Close() error { return s.listener.Close() }

// Run serves, and works on the changes of many events, until ctx ends. Then it closes the listener, and returns nil.
func (s *Server) Run(ctx context.Context) error {
	handler, err := withClientAddress(s.trusted, s.Handler)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.Bulk.Run(ctx) })
	watching, stop := context.WithCancel(context.WithoutCancel(ctx)) // until the last request has been answered
	group.Go(func() error { return s.recorder.Run(watching) })
	group.Go(func() error {
		defer stop()
		if s.dashboard == nil {
			return Serve(ctx, s.listener, handler, s.log)
		}
		return Serve(ctx, s.listener, handler, s.log, s.dashboard.Close)
	})
	return group.Wait()
}

// Serve serves on a listener, which it closes, until ctx ends. Then it calls the functions of stop, which end what
// would go on, and the other requests that are under way have two seconds.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, log *zap.Logger, stop ...func()) error {
	errorLog, err := zap.NewStdLogAt(log, zap.WarnLevel)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes, ErrorLog: errorLog}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	for _, end := range stop {
		end()
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err = server.Shutdown(stopping)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	if served := <-served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
