package pgsession_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue/pgsession"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

func TestPasswordFileIsReadForEachConnection(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "password")
	access := pgsession.Access{PasswordFile: path}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	apply := func() error {
		config, err := pgsession.ParseURL("postgres://me:before@127.0.0.1/db")
		if err != nil {
			t.Fatal(err)
		}
		return access.Apply(config)
	}
	if err := apply(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("without the file: %v", err)
	}
	for text, want := range map[string]string{"": "is empty", "\ns3cret": "is empty", "s3cret\ns3cret\n": "more than one line", "s3\x00cret": "null byte"} {
		write(text)
		if err := apply(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "cret") {
			t.Errorf("%q: %v", text, err)
		}
	}
	config, err := pgsession.ParseURL(testenv.DatabaseURL(t))
	if err != nil {
		t.Fatal(err)
	}
	right := config.ConnConfig.Password
	config.ConnConfig.Password = "before"
	for text, want := range map[string]bool{right: true, right + "\n": true, right + "\r\n": true, right + " ": false} {
		write(text)
		if config.BeforeConnect == nil {
			if err := access.Apply(config); err != nil {
				t.Fatal(err)
			}
		}
		conn, err := pgsession.Connect(testenv.Context(t), config, func(c *pgx.ConnConfig) { c.RuntimeParams["application_name"] = "beside" })
		if (err == nil) != want {
			t.Errorf("%q: %v", strings.ReplaceAll(text, right, "right"), err)
		}
		if err != nil {
			continue
		}
		if name := conn.PgConn().ParameterStatus("application_name"); name != "beside" {
			t.Errorf("the connection has the name %q", name)
		}
		_ = conn.Close(testenv.Context(t))
	}
}

// TestDialerReplacesHostAndTLS: neither the host nor the sslmode of the URL matters, and messages name the server.
func TestDialerReplacesHostAndTLS(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	reached, err := url.Parse(testenv.DatabaseURL(t))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := *reached
	elsewhere.Host = "nowhere.invalid:1"
	elsewhere.RawQuery = "sslmode=require"
	access := pgsession.Access{Server: "a:b:c", Dial: func(ctx context.Context) (net.Conn, error) { return pgstore.Dial(ctx, "tcp", reached.Host) }}
	pool, err := pgstore.NewPoolWith(access, elsewhere.String(), "dialed", 2)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pool.Ping(ctx); err != nil {
		t.Error(err)
	}
	access.Dial = func(context.Context) (net.Conn, error) { return nil, errors.New("no way") }
	refused, err := pgstore.NewPoolWith(access, elsewhere.String(), "dialed", 2)
	if err != nil {
		t.Fatal(err)
	}
	defer refused.Close()
	if err := refused.Ping(ctx); err == nil || !strings.Contains(err.Error(), "a:b:c") || !strings.Contains(err.Error(), "no way") {
		t.Errorf("got %v", err)
	}
}
