package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"

	"github.com/jackc/pgx/v5"
)

const (
	databaseURLVariable = "DATABASE_URL"

	// statementsKept is more than the tests of all packages send to one server: what
	// pg_stat_statements evicts to make room is missing in a test's count.
	statementsKept = "pg_stat_statements.max=50000"

	postgresHelp = "install one (Debian, Ubuntu: apt-get install postgresql; macOS: brew install postgresql@17), start Docker, or set DATABASE_URL to postgres://user:password@host:5432/database"
)

// Postgres returns a Postgres that answers: the one of DATABASE_URL, else one
// started from the machine's binaries, else one in a container. The user in its
// URL may create databases, and is a superuser where this package started it. It
// blocks until the server answers, two minutes at most beside the time to pull an
// image, or until ctx ends. Safe for concurrent use; every call that has to
// start a server starts another one.
func Postgres(ctx context.Context, options ...Option) (*Service, error) {
	s := newSettings(options)
	if databaseURL, ok := s.named(databaseURLVariable); ok {
		if err := pingPostgres(ctx, databaseURL); err != nil {
			return nil, fmt.Errorf("the Postgres that %s names does not answer: %w: start it, or unset %s to have one started",
				databaseURLVariable, err, databaseURLVariable)
		}
		return &Service{URL: databaseURL, Origin: databaseURLVariable}, nil
	}
	if dir, ok := s.postgresBin(); ok {
		service, err := postgresFromBinaries(ctx, dir, s.directory(), s.serverSettings())
		if err != nil {
			return nil, fmt.Errorf("start Postgres from the binaries in %s: %w", dir, err)
		}
		return service, nil
	}
	if err := s.docker(ctx); err != nil {
		return nil, fmt.Errorf("postgres %w: %s is not set, initdb and postgres are neither on PATH nor in the usual places, and Docker does not answer (%w): %s",
			ErrNotFound, databaseURLVariable, err, postgresHelp)
	}
	service, err := postgresFromImage(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("start Postgres with Docker: %w: %s", err, postgresHelp)
	}
	return service, nil
}

// pingPostgres asks the server for an answer to a query.
func pingPostgres(ctx context.Context, databaseURL string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	_, err = conn.Exec(ctx, "SELECT 1")
	return err
}

// postgresURL is the URL of a server that this package started.
func postgresURL(host string, port int, password string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, password),
		Host:     net.JoinHostPort(host, strconv.Itoa(port)),
		Path:     "/postgres",
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// superuser is the first user of a server that this package starts.
const superuser = "postgres"

// serverSettings are the settings of a server that this package starts; of two of
// one name Postgres takes the last.
func (s *settings) serverSettings() [][2]string {
	list := [][2]string{
		{"max_connections", "300"},
		{"shared_buffers", "256MB"},
		{"max_wal_size", "8GB"},
		{"checkpoint_timeout", "30min"},
		{"timezone", "UTC"},
	}
	if !s.durable {
		list = append(list, [][2]string{
			{"fsync", "off"},
			{"synchronous_commit", "off"},
			{"full_page_writes", "off"},
		}...)
	}
	if s.directory() != "" {
		list = append(list, [2]string{"max_wal_size", "1GB"}) // the last one counts
	}
	return append(list, s.server...)
}

// directory is where Postgres' directory is to be made, or empty: among temporary files.
func (s *settings) directory() string {
	if !s.inMemory || s.durable || s.getenv("TMPDIR") != "" {
		return ""
	}
	return roomInMemory()
}
