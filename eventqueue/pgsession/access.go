package pgsession

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Access is how connections reach a server and log in, where the database's URL does not
// say it. The zero value adds nothing to the URL.
type Access struct {
	// Dial connects to the server in place of TCP, whatever the URL has as its host. The
	// connection has to be encrypted already: sslmode is ignored. It is called
	// concurrently, and ends early when ctx does. Default (nil): the URL's host.
	Dial func(ctx context.Context) (net.Conn, error)

	// Server names what Dial leads to, for messages. Default (""): the URL's host.
	Server string

	// PasswordFile names a file whose first line is the password, in place of that of the
	// URL. It is read for each new connection, so that a changed password is used without
	// a restart. Default (""): the password of the URL.
	PasswordFile string
}

// Apply adds the access to the configuration of a pool. The error says what is wrong with
// the password file, and never contains any of its text.
func (a Access) Apply(config *pgxpool.Config) error {
	if a.Dial != nil {
		c := config.ConnConfig
		c.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) { return a.Dial(ctx) }
		c.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
		c.TLSConfig, c.Fallbacks, c.SSLNegotiation = nil, nil, ""
		if a.Server != "" {
			c.Host = a.Server
		}
	}
	if a.PasswordFile == "" {
		return nil
	}
	if _, err := a.password(); err != nil {
		return err
	}
	before := config.BeforeConnect
	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) (err error) {
		if before != nil {
			if err := before(ctx, c); err != nil {
				return err
			}
		}
		c.Password, err = a.password()
		return err
	}
	return nil
}

// password reads the password.
func (a Access) password() (string, error) {
	text, err := os.ReadFile(a.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("read the password of the database (DATABASE_PASSWORD_FILE): %w", err)
	}
	line, rest, _ := strings.Cut(string(text), "\n")
	line = strings.TrimSuffix(line, "\r")
	switch {
	case line == "":
		return "", fmt.Errorf("the password file %s is empty, or its first line is: write the password into it", a.PasswordFile)
	case strings.TrimSpace(rest) != "":
		return "", fmt.Errorf("the password file %s has more than one line: write the password alone into it", a.PasswordFile)
	case strings.ContainsRune(line, 0):
		return "", fmt.Errorf("the password file %s holds a null byte, which no password of Postgres has: is it a text?", a.PasswordFile)
	}
	return line, nil
}

// Connect makes a connection like those of a pool with this configuration, beside the
// pool. The caller closes it. It does not do what the pool does after it has connected.
func Connect(ctx context.Context, config *pgxpool.Config, change func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	c := config.ConnConfig.Copy()
	if change != nil {
		change(c)
	}
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, c); err != nil {
			return nil, err
		}
	}
	return pgx.ConnectConfig(ctx, c)
}
