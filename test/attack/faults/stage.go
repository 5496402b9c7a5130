package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/migrations"
	"eventsv2/test/attack/harness"
	"eventsv2/test/command"
	"eventsv2/test/programs"
	"eventsv2/test/services"
)

// programEmbed is the binary of the program that embeds the library, and binaries where the
// programs are.
const (
	programEmbed = "embed"
	binaries     = "bin"
)

// template is the database that the scenarios' databases are copies of, and empty one without a schema of the queue.
const (
	template = "faults_template"
	empty    = "template0"
)

// cleanupLimit bounds the stopping of everything.
const cleanupLimit = time.Minute

// stage is what all scenarios share.
type stage struct {
	command.Cleanups

	dir      string
	postgres *services.Service
	emulator *services.Service
	admin    *pgxpool.Pool
	proxies  *harness.Proxies
}

func openStage(ctx context.Context, dir string) (s *stage, err error) {
	s = &stage{dir: dir, proxies: harness.NewProxies()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(ctx))
		}
	}()
	if err := os.Mkdir(filepath.Join(dir, binaries), 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for the programs: %w", err)
	}
	packages := programs.Deployed(programs.Worker, programs.Cron, programs.Ctl)
	packages[programEmbed] = "eventsv2/test/attack/faults/embed"
	if err := programs.Build(ctx, filepath.Join(dir, binaries), packages); err != nil {
		return nil, err
	}
	if s.postgres, err = services.Postgres(ctx, services.Private(), services.Setting("max_connections", "600")); err != nil {
		return nil, err
	}
	s.OnCleanup(s.postgres.Stop)
	if s.emulator, err = services.Emulator(ctx, services.Private()); err != nil {
		return nil, err
	}
	s.OnCleanup(s.emulator.Stop)
	if s.admin, err = pgxpool.New(ctx, s.postgres.URL); err != nil {
		return nil, fmt.Errorf("connect to our own Postgres: %w", err)
	}
	s.OnCleanup(func(context.Context) error { s.admin.Close(); return nil })
	if _, err = s.admin.Exec(ctx, "CREATE DATABASE "+template); err != nil {
		return nil, fmt.Errorf("make the template of the databases: %w", err)
	}
	return s, makeQueue(ctx, withDatabase(s.postgres.URL, template))
}

// makeQueue makes the tables of the queue, and the record of them.
func makeQueue(ctx context.Context, databaseURL string) error {
	if _, err := migrations.Up(ctx, databaseURL); err != nil {
		return err
	}
	return audit(ctx, databaseURL)
}

// close stops everything, also after ctx has ended.
func (s *stage) close(ctx context.Context) error { return s.CleanUp(ctx, cleanupLimit) }

// database makes a database for a scenario, as a copy of another one.
func (s *stage) database(ctx context.Context, name, from string) (databaseURL string, drop func(context.Context) error, err error) {
	name = "faults_" + strings.ReplaceAll(name, "-", "_")
	quoted := pgx.Identifier{name}.Sanitize()
	if _, err := s.admin.Exec(ctx, "CREATE DATABASE "+quoted+" TEMPLATE "+from); err != nil {
		return "", nil, fmt.Errorf("make the database %s: %w", name, err)
	}
	return withDatabase(s.postgres.URL, name), func(ctx context.Context) error {
		_, err := s.admin.Exec(ctx, "DROP DATABASE "+quoted+" WITH (FORCE)")
		return err
	}, nil
}

// withDatabase is the URL of a server of package services with another database.
func withDatabase(databaseURL, name string) string {
	u, err := url.Parse(databaseURL)
	if err != nil {
		panic(fmt.Sprintf("faults: our own Postgres has no URL: %v", err))
	}
	u.Path = "/" + name
	return u.String()
}
