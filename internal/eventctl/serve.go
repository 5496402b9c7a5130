package eventctl

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"eventsv2/access"
	"eventsv2/internal/webserver"
)

func serveCommand(p *program) *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the HTTP API until it is stopped",
		Long: "Serve the HTTP API below /v1 until SIGTERM or an interrupt; /v1/openapi.json describes it. Tokens let in (eventctl token), and\n" +
			"the issuers of ACCESS_FILE. While there is neither, it has to listen on loopback, and lets the machine itself\n" +
			"in with every right. With DASHBOARD=true, it serves the dashboard at all other paths. It has no TLS of its own:\n" +
			"put it behind a proxy that has.",
		Example: "  eventctl serve --address 127.0.0.1:8090",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&address, "address", "127.0.0.1:8090", "`host:port` to listen on; port 0 is any free one")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		config, err := p.config()
		if err != nil {
			return err
		}
		if err := webserver.CheckAddress(address); err != nil {
			return badInput(fmt.Errorf("--address %q is not host:port: %w", address, err))
		}
		if config.AccessFile != "" {
			if _, err := access.LoadFile(config.AccessFile); err != nil {
				return badInput(fmt.Errorf("ACCESS_FILE: %w", err))
			}
		}
		emitter, err := p.openEmitter(cmd.Context(), p.variables())
		if err != nil {
			return failed(err)
		}
		err = p.serve(cmd.Context(), webserver.Config{Address: address, AddressOf: "--address", AccessFile: config.AccessFile,
			Dashboard: config.Dashboard, DashboardKey: config.DashboardKey, DashboardPrefix: config.DashboardPrefix, TrustedProxies: config.TrustedProxies,
			Store: emitter.Store(), Queue: emitter.Queue, Logger: p.Logger()})
		return failed(errors.Join(err, emitter.Close()))
	}
	return cmd
}

// serve says where it listens, and serves until ctx ends.
func (p *program) serve(ctx context.Context, config webserver.Config) error {
	server, err := webserver.Listen(ctx, config)
	if err != nil {
		return err
	}
	if err := p.writeLine(map[string]string{"address": server.Address()}, server.String()); err != nil {
		return errors.Join(err, server.Close())
	}
	return server.Run(ctx)
}
