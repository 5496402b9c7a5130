package webserver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"

	"go.uber.org/zap"

	"eventsv2/access"
	"eventsv2/internal/setup"
)

// ServeProfiles serves the profiles of this process for go tool pprof on PPROF_LISTEN until ctx ends; without that variable it
// does nothing. It does not block, and needs no database: a program that waits for one is looked at, too. That it
// cannot listen is a warning, for no event waits for it; an address that others can reach is an error. A profile
// over time takes up to writeTimeout.
func ServeProfiles(ctx context.Context, environment map[string]string, log *zap.Logger) error {
	c, err := setup.Load(environment)
	switch {
	case err != nil:
		return err
	case c.ProfilesListen == "":
		return nil
	case !onLoopback(c.ProfilesListen):
		return fmt.Errorf("PPROF_LISTEN %s can be reached by others, and whoever reaches it is let in: listen on loopback, as on 127.0.0.1:6060, "+
			"and reach it by kubectl port-forward or ssh -L", c.ProfilesListen)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.ProfilesListen)
	if err != nil {
		log.Warn("profiles are not served: cannot listen on PPROF_LISTEN", zap.Error(err))
		return nil
	}
	log.Info("profiles are served", zap.String("address", listener.Addr().String()), zap.String("path", "/debug/pprof/"))
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	go func() {
		if err := Serve(ctx, listener, notOfAPage(mux), log); err != nil {
			log.Warn("profiles are not served any more", zap.Error(err))
		}
	}()
	return nil
}

// notOfAPage refuses what a page of the web has a browser request: under a name of its own that leads to this machine, by
// which it could read the profiles, or as an image, which would start one.
func notOfAPage(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site := r.Header.Get("Sec-Fetch-Site")
		if !access.LoopbackHost(r.Host) || site == "cross-site" || site == "same-site" {
			http.Error(w, "open the address of PPROF_LISTEN itself, such as http://127.0.0.1:6060/debug/pprof/", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// onLoopback reports whether an address, host:port, can be reached from this machine only.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && access.LoopbackHost(host)
}
