package program

import (
	"context"

	"eventsv2/internal/cloudsql"
	"eventsv2/internal/webserver"
	"eventsv2/service"
)

// run runs the parts of a program until ctx ends, with what its environment adds: a login at Cloud SQL, the
// server for webhooks and operators, profiles and telemetry.
func run(ctx context.Context, environment map[string]string, config service.Config) (err error) {
	if config.Access, err = cloudsql.FromEnvironment(ctx, environment); err != nil {
		return err
	}
	serve, err := webserver.FromEnvironment(environment, config.Logger)
	if err != nil {
		return err
	}
	if err := webserver.ServeProfiles(ctx, environment, config.Logger); err != nil {
		return err
	}
	return runReporting(ctx, environment, config, serve)
}
