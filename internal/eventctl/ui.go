package eventctl

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/setup"
	"eventsv2/internal/webserver"
)

func uiCommand(p *program) *cobra.Command {
	var listen string
	var readOnly, silent bool
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show and steer the queue in a browser, on this machine only",
		Long: "Serve the dashboard of a database and print its address, until Ctrl-C. It listens on a loopback address only. Every user\n" +
			"of this machine can open it, see the values of events, and change the queue as you; with --read-only nobody changes\n" +
			"anything.",
		Example: "  eventctl ui\n" +
			"  eventctl ui --read-only --listen 127.0.0.1:8700",
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "loopback `address` and port; port 0: one that is free")
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "show the queue, and change nothing")
	addSilent(cmd, &silent)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		address, err := netip.ParseAddrPort(listen)
		if err != nil || !address.Addr().IsLoopback() {
			return badInput(fmt.Errorf("--listen %q is not a loopback address with a port: write it like 127.0.0.1:8700", listen))
		}
		if readOnly {
			return p.withStore(cmd.Context(), func(store *pgstore.Store, _ setup.Config) error {
				return p.serveUI(cmd.Context(), listen, dashboard.Config{Store: store})
			})
		}
		return p.withQueue(cmd.Context(), silent, func(c *connection) error {
			operations, err := operate.NewOperations(c.store, c.queue, p.Logger())
			if err != nil {
				return failed(err)
			}
			group, ctx := errgroup.WithContext(cmd.Context())
			group.Go(func() error { return operations.Run(ctx) })
			group.Go(func() error {
				return p.serveUI(ctx, listen, dashboard.Config{Store: c.store, Queue: c.queue, Bulk: operations})
			})
			return group.Wait()
		})
	}
	return cmd
}

// serveUI serves the dashboard until ctx ends, to whoever is on the machine.
func (p *program) serveUI(ctx context.Context, listen string, config dashboard.Config) error {
	local := access.Identity{Name: actor(config.Store).Name, Grants: []access.Grant{{Verbs: access.Verbs()}}, Key: "local"}
	config.Log = p.Logger()
	config.Identify = func(*http.Request) (access.Identity, error) { return local, nil }
	pages, err := dashboard.New(config)
	if err != nil {
		return failed(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return failed(err)
	}
	url := "http://" + listener.Addr().String() + "/"
	if err := p.writeLine(map[string]string{"url": url}, url); err != nil {
		return errors.Join(err, listener.Close())
	}
	return failed(webserver.Serve(ctx, listener, sameMachine(pages), p.Logger(), pages.Close))
}

// sameMachine refuses requests for another host than this one: a page of the web whose name
// resolves to a loopback address must not read the queue.
func sameMachine(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		address, notAnAddress := netip.ParseAddr(host)
		if err != nil || host != "localhost" && (notAnAddress != nil || !address.IsLoopback()) {
			http.Error(w, "open the address that eventctl ui has printed", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
