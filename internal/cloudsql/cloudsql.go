// Package cloudsql reaches databases in Cloud SQL without a proxy, for the programs: the
// connection is encrypted, and is let in by the rights of the program's service account.
// Package service does not link it; a program that embeds the queue gives service.Config
// the Dial of its own connector.
package cloudsql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"cloud.google.com/go/cloudsqlconn"
	"google.golang.org/api/googleapi"

	"eventsv2/eventqueue/pgsession"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/setup"
)

// Access is how the programs reach the database that their configuration names: the
// instance of Cloud SQL, if it names one, and the password file. Without a password the
// login to the instance is as the service account. It connects to nothing. The error
// says what to do.
func Access(ctx context.Context, c setup.Config) (pgsession.Access, error) {
	access := pgsession.Access{PasswordFile: c.DatabasePasswordFile}
	if c.CloudSQLInstance == "" {
		return access, nil
	}
	url, err := pgsession.ParseURL(c.DatabaseURL)
	if err != nil {
		return access, fmt.Errorf("DATABASE_URL: %w", err)
	}
	options := []cloudsqlconn.Option{
		// Without a connection nothing is asked for, and nothing runs beside the program.
		cloudsqlconn.WithLazyRefresh(),
		cloudsqlconn.WithDefaultDialOptions(ipType(c.CloudSQLIPType)),
	}
	if c.DatabasePasswordFile == "" && url.ConnConfig.Password == "" {
		options = append(options, cloudsqlconn.WithIAMAuthN())
	}
	if c.CloudSQLEndpoint != "" {
		options = append(options, cloudsqlconn.WithAdminAPIEndpoint(c.CloudSQLEndpoint))
	}
	dialer, err := cloudsqlconn.NewDialer(ctx, options...)
	if err != nil {
		return access, fmt.Errorf("CLOUDSQL_INSTANCE: run the program with a service account, or let GOOGLE_APPLICATION_CREDENTIALS name the key file of one: %w", err)
	}
	access.Server = c.CloudSQLInstance
	access.Dial = func(ctx context.Context) (net.Conn, error) {
		var below net.Conn
		conn, err := dialer.Dial(ctx, c.CloudSQLInstance, cloudsqlconn.WithOneOffDialFunc(func(ctx context.Context, network, address string) (net.Conn, error) {
			var err error
			below, err = pgstore.Dial(ctx, network, address)
			return below, err
		}))
		var answered *googleapi.Error
		switch {
		case errors.As(err, &answered) && (answered.Code >= http.StatusInternalServerError || answered.Code == http.StatusTooManyRequests):
			return nil, &unavailableError{err}
		case errors.As(err, &answered) && (answered.Code == http.StatusForbidden || answered.Code == http.StatusNotFound):
			return nil, fmt.Errorf("Cloud SQL: check that CLOUDSQL_INSTANCE %s exists, that the Cloud SQL Admin API is enabled, and that the service account has roles/cloudsql.client: %w",
				c.CloudSQLInstance, err)
		case err != nil:
			return nil, fmt.Errorf("Cloud SQL: %w", err)
		}
		return &connection{conn, below}, nil
	}
	return access, nil
}

// FromEnvironment is Access for the variables of an environment.
func FromEnvironment(ctx context.Context, environment map[string]string) (pgsession.Access, error) {
	c, err := setup.Load(environment)
	if err != nil {
		return pgsession.Access{}, err
	}
	return Access(ctx, c)
}

func ipType(name string) cloudsqlconn.DialOption {
	switch name {
	case "private":
		return cloudsqlconn.WithPrivateIP()
	case "psc":
		return cloudsqlconn.WithPSC()
	default:
		return cloudsqlconn.WithPublicIP()
	}
}

// unavailableError is a failure of the Admin API that passes by itself: as one of the network, so
// that programs wait and try again.
type unavailableError struct{ error }

func (e *unavailableError) Unwrap() error { return e.error }
func (*unavailableError) Timeout() bool   { return false }

// Temporary is always true.
func (*unavailableError) Temporary() bool { return true }

// connection lets package pgsession ask the operating system whether the server has closed
// a connection, which the connector's own hides.
type connection struct {
	net.Conn
	below net.Conn
}

// NetConn returns the connection of the operating system.
func (c *connection) NetConn() net.Conn { return c.below }
