package testenv

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// PgBouncer starts a real PgBouncer before the database of a URL, with settings of
// its section [pgbouncer], such as pool_mode, and returns the URL that leads through
// it. It is ended with the test. Without one it calls Missing.
func PgBouncer(t testing.TB, databaseURL string, settings map[string]string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer" // no folder of most users' PATH
		if _, err := os.Stat(program); err != nil {
			Missing(t, "there is no pgbouncer on this machine: apt-get install pgbouncer")
		}
	}
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	file := filepath.Join(t.TempDir(), "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(pgBouncerConfig(config, port, settings)), 0o644); err != nil {
		t.Fatal(err)
	}
	arguments := []string{file}
	if os.Geteuid() == 0 {
		arguments = []string{"-u", "nobody", file} // it refuses to be root
	}
	cmd := exec.Command(program, arguments...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Logf("log of pgbouncer:\n%s", log.String())
		}
	})
	address := net.JoinHostPort("127.0.0.1", port)
	Eventually(t, "pgbouncer listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return (&url.URL{Scheme: "postgres", User: url.User("anybody"), Host: address, Path: "/" + config.Database, RawQuery: "sslmode=disable"}).String()
}

func pgBouncerConfig(config *pgx.ConnConfig, port string, settings map[string]string) string {
	quote := func(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
	all := map[string]string{
		"listen_addr":     "127.0.0.1",
		"listen_port":     port,
		"unix_socket_dir": "",
		"auth_type":       "any",
		"max_client_conn": "200",
	}
	maps.Copy(all, settings)
	var b strings.Builder
	fmt.Fprintf(&b, "[databases]\n* = host=%s port=%d user=%s password=%s\n[pgbouncer]\n",
		quote(config.Host), config.Port, quote(config.User), quote(config.Password))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s = %s\n", name, all[name])
	}
	return b.String()
}

func freePort(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }() // nobody uses it
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
