package webserver

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"eventsv2/internal/setup"
	"eventsv2/service"
)

// FromEnvironment reads from an environment where a program serves the HTTP API and the dashboard, and returns what has a
// Service serve them while it runs; with no API_LISTEN, that adds nothing. The error names the variable that makes no sense.
func FromEnvironment(environment map[string]string, log *zap.Logger) (serve func(*service.Service) error, err error) {
	c, err := setup.Load(environment)
	switch {
	case err != nil:
		return nil, err
	case c.Dashboard && c.APIListen == "":
		return nil, errors.New("DASHBOARD is set and API_LISTEN is not: the dashboard is served there")
	}
	return func(s *service.Service) error {
		if c.APIListen != "" {
			s.AddPart("HTTP API", func(ctx context.Context) error {
				return listenAndRun(ctx, Config{Address: c.APIListen, AddressOf: "API_LISTEN", AccessFile: c.AccessFile,
					Dashboard: c.Dashboard, DashboardKey: c.DashboardKey, DashboardPrefix: c.DashboardPrefix, TrustedProxies: c.TrustedProxies, Refused: s.ObserveRefused, Store: s.Store(), Queue: s.Queue, Logger: log})
			})
		}
		return nil
	}, nil
}

// listenAndRun listens, logs where, and serves until ctx ends.
func listenAndRun(ctx context.Context, config Config) error {
	server, err := Listen(ctx, config)
	if err != nil {
		return err
	}
	fields := []zap.Field{zap.String("address", server.Address()), zap.Bool("access_configured", !server.Open)}
	if server.Open {
		config.Logger.Warn("the HTTP API listens; no access is configured, so only this machine may use it, with every right", fields...)
	} else {
		config.Logger.Info("the HTTP API listens", fields...)
	}
	return server.Run(ctx)
}
