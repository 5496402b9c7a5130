package eventstest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/migrations"
)

// adminTakes bounds what is done to make or drop a database.
const adminTakes = time.Minute

// Database makes a database for the test, with the queue's schema, and drops it when the test has ended. server is the URL, or the
// keywords and values, of any database of the server, such as postgres://localhost/postgres, as a role
// that may create databases. statements are what the program needs beside the queue, such as its tables; each is
// executed as it is, and may be several at once. It fails the test when it cannot make the database.
//
// Database is safe for concurrent use: each test has a database of its own, so that tests may run in parallel.
func Database(t testing.TB, server string, statements ...string) (databaseURL string) {
	t.Helper()
	if server == "" {
		t.Fatal("eventstest.Database: the URL of the server is empty: set DATABASE_URL, or whatever it is read from, " +
			"to a Postgres whose role may create databases")
	}
	name := fmt.Sprintf("eventstest_%d_%s", os.Getpid(), strings.ToLower(rand.Text()[:12]))
	databaseURL, err := withDatabase(server, name)
	if err == nil {
		err = administer(t.Context(), server, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	}
	if err != nil {
		t.Fatalf("eventstest.Database: %v", err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := administer(context.Background(), server, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
			t.Errorf("eventstest.Database: %v", err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), adminTakes)
	defer cancel()
	if _, err := migrations.Up(ctx, databaseURL); err != nil {
		t.Fatalf("eventstest.Database: make the queue's schema: %v", err)
	}
	if len(statements) > 0 {
		if err := administer(ctx, databaseURL, statements...); err != nil {
			t.Fatalf("eventstest.Database: %v", err)
		}
	}
	return databaseURL
}

// administer executes statements on a connection of its own.
func administer(ctx context.Context, databaseURL string, statements ...string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, adminTakes)
	defer cancel()
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("execute %s: %w", shortened(statement), err)
		}
	}
	return nil
}

// withDatabase names another database of the same server.
func withDatabase(server, name string) (string, error) {
	if !strings.Contains(server, "://") { // keywords and values, of which the last counts
		return server + " dbname=" + name, nil
	}
	u, err := url.Parse(server)
	if err != nil {
		return "", errors.New("the URL of the server cannot be read") // the error would have the password
	}
	u.Path = "/" + name
	if query := u.Query(); query.Has("dbname") {
		query.Del("dbname")
		u.RawQuery = query.Encode()
	}
	return u.String(), nil
}
