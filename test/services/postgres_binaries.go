package services

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// startAttempts is how often a server is started anew when it ends at once. The
// statistics extension is tried for in the first half of them.
const startAttempts = 6

// findPostgres returns the directory of initdb and postgres: that on PATH, else
// the newest in the places where distributions put it.
func findPostgres() (string, bool) {
	if initdb, err := exec.LookPath("initdb"); err == nil && hasPostgres(filepath.Dir(initdb)) {
		return filepath.Dir(initdb), true
	}
	return newestPostgres(
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql@*/bin",
		"/usr/local/opt/postgresql@*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	)
}

// newestPostgres returns the directory with the highest version in its name
// that holds both programs, of all that match the patterns.
func newestPostgres(patterns ...string) (string, bool) {
	var dirs []string
	for _, pattern := range patterns {
		// The only error is a malformed pattern, and ours are constants.
		matches, _ := filepath.Glob(pattern)
		dirs = append(dirs, matches...)
	}
	slices.SortStableFunc(dirs, func(a, b string) int {
		return slices.Compare(versionIn(b), versionIn(a))
	})
	for _, dir := range dirs {
		if hasPostgres(dir) {
			return dir, true
		}
	}
	return "", false
}

// versionIn reads the version of Postgres in the last directory but one of a
// path that ends in bin; none is older than all others.
func versionIn(dir string) []int {
	var version []int
	for _, digits := range regexp.MustCompile(`[0-9]+`).FindAllString(filepath.Base(filepath.Dir(dir)), -1) {
		// More digits than an int holds are no version.
		n, _ := strconv.Atoi(digits)
		version = append(version, n)
	}
	return version
}

func hasPostgres(dir string) bool {
	for _, program := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, program)); err != nil {
			return false
		}
	}
	return true
}

// cluster is a database cluster of our own.
type cluster struct {
	home     *home
	bin      string
	password string

	// What the server was last started with.
	port      int
	arguments []string
}

func postgresFromBinaries(ctx context.Context, bin, base string, server [][2]string) (*Service, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	cred, err := serverUser()
	if err != nil {
		return nil, err
	}
	h, err := newHome(base, "postgres", cred, serverEnvironment())
	if err != nil {
		return nil, err
	}
	c := &cluster{home: h, bin: bin, password: rand.Text()}
	pid, err := c.create(ctx, server)
	if err != nil {
		return nil, errors.Join(err, h.remove(context.WithoutCancel(ctx)))
	}
	return &Service{
		URL:     postgresURL(loopback, c.port, c.password),
		Origin:  "binaries in " + bin,
		PID:     pid,
		stop:    h.remove,
		restart: c.restart,
	}, nil
}

// serverEnvironment is the environment without what would change the server's
// or initdb's mind (PGDATA, PGPORT, a locale).
func serverEnvironment() []string {
	env := []string{"LC_ALL=C", "TZ=UTC"}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "PG") && !strings.HasPrefix(name, "LC_") && name != "LANG" && name != "TZ" {
			env = append(env, variable)
		}
	}
	return env
}

// create makes the cluster and starts its server, and returns its process.
func (c *cluster) create(ctx context.Context, server [][2]string) (int, error) {
	if err := c.initdb(ctx); err != nil {
		return 0, err
	}
	if err := c.configure(server); err != nil {
		return 0, err
	}
	var err error
	for attempt := range startAttempts {
		if c.port, err = freePort(); err != nil {
			return 0, err
		}
		c.arguments = nil
		if attempt < startAttempts/2 {
			c.arguments = []string{"-c", "shared_preload_libraries=pg_stat_statements", "-c", statementsKept}
		}
		var pid int
		if pid, err = c.start(ctx); err == nil {
			return pid, nil
		}
		if !errors.Is(err, errEnded) {
			break
		}
	}
	return 0, fmt.Errorf("%w; its last words:\n%s", err, c.home.logTail())
}

// initdb makes the cluster's files. The password goes through a file that only
// the server's user can read, not through the command line.
func (c *cluster) initdb(ctx context.Context) error {
	secret := filepath.Join(c.home.dir, "password")
	if err := c.write(secret, c.password+"\n"); err != nil {
		return err
	}
	p, err := c.home.run("TERM", filepath.Join(c.bin, "initdb"),
		"--pgdata="+c.data(), "--username="+superuser, "--pwfile="+secret,
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync")
	if err != nil {
		return err
	}
	select {
	case <-p.exited:
	case <-ctx.Done():
		return fmt.Errorf("wait for initdb: %w", context.Cause(ctx))
	}
	if p.status != 0 {
		return fmt.Errorf("initdb failed with status %d; its last words:\n%s", p.status, c.home.logTail())
	}
	if err := os.Remove(secret); err != nil {
		return fmt.Errorf("remove the password file: %w", err)
	}
	return nil
}

func (c *cluster) data() string { return filepath.Join(c.home.dir, "data") }

// write makes a file that belongs to the server's user.
func (c *cluster) write(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	if c.home.cred == nil {
		return nil
	}
	if err := os.Chown(path, int(c.home.cred.Uid), int(c.home.cred.Gid)); err != nil {
		return fmt.Errorf("give %s to the user of Postgres: %w", filepath.Base(path), err)
	}
	return nil
}

// configure writes the settings to the file that ALTER SYSTEM changes, so that
// a test can change them.
func (c *cluster) configure(server [][2]string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "listen_addresses = '%s'\nunix_socket_directories = ''\n", loopback)
	for _, setting := range server {
		fmt.Fprintf(&b, "%s = '%s'\n", setting[0], setting[1])
	}
	return c.write(filepath.Join(c.data(), "postgresql.auto.conf"), b.String())
}

// start starts the server on the cluster's port and waits until it answers.
func (c *cluster) start(ctx context.Context) (int, error) {
	command := append([]string{filepath.Join(c.bin, "postgres"), "-D", c.data(), "-p", strconv.Itoa(c.port)}, c.arguments...)
	// An immediate shutdown: there is no data to be saved.
	p, err := c.home.run("QUIT", command...)
	if err != nil {
		return 0, err
	}
	databaseURL := postgresURL(loopback, c.port, c.password)
	err = poll(ctx, p.exited, func(ctx context.Context) error { return pingPostgres(ctx, databaseURL) })
	if err != nil {
		p.kill()
		return 0, err
	}
	return p.pid, nil
}

// restart kills the server, if it still runs, and starts it on its port. The
// backends of a killed server hold its memory for a moment, and a new one ends
// at once as long as they do; hence it is tried until ctx ends.
func (c *cluster) restart(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	c.home.last.kill()
	var pid int
	err := poll(ctx, nil, func(ctx context.Context) (err error) {
		pid, err = c.start(ctx)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("%w; its last words:\n%s", err, c.home.logTail())
	}
	return pid, nil
}
