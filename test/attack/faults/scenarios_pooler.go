package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/pubsubnotify"
	"eventsv2/test/programs"
)

func poolerScenarios() []scenario {
	return []scenario{
		{"pgbouncer-session", "everything works behind PgBouncer with pools of sessions", 25 * time.Second, behindPooler("session")},
		{"pgbouncer-transaction", "behind PgBouncer with pools of transactions it works, or is refused by name", 25 * time.Second, behindPooler("transaction")},
	}
}

// pooler starts the machine's PgBouncer before the scenario's Postgres and returns
// the URL through it.
func (r *rig) pooler(ctx context.Context, mode string) string {
	binary, err := exec.LookPath("pgbouncer")
	if err != nil {
		binary = "/usr/sbin/pgbouncer" // where Debian puts it, which is not on everybody's PATH
	}
	if _, err := os.Stat(binary); err != nil {
		r.fatalf("there is no pgbouncer to be tested with: install it (Debian, Ubuntu: apt-get install pgbouncer)")
	}
	// The directory must be open to the user that it runs as.
	dir, err := os.MkdirTemp("", "eventsv2-pooler-")
	r.must(err)
	r.OnCleanup(func(context.Context) error { return os.RemoveAll(dir) })
	r.must(os.Chmod(dir, 0o755))
	u, err := url.Parse(r.databaseURL)
	r.must(err)
	password, _ := u.User.Password()
	users := filepath.Join(dir, "users.txt")
	r.must(os.WriteFile(users, fmt.Appendf(nil, "%q %q\n", u.User.Username(), password), 0o644)) // of a server that lives as long as the scenario
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	r.must(err)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	r.must(err)
	r.must(listener.Close())
	text := fmt.Sprintf(`[databases]
* = host=%s port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
pool_mode = %s
default_pool_size = 40
max_client_conn = 200
`, u.Hostname(), u.Port(), port, users, mode)
	config := filepath.Join(dir, "pgbouncer.ini")
	r.must(os.WriteFile(config, []byte(text), 0o644))
	var args []string
	if os.Geteuid() == 0 { // it refuses to be root
		args = append(args, "-u", "nobody")
	}
	process, err := programs.Start(programs.Program{Name: "pgbouncer", Path: binary, Args: append(args, config),
		Log: filepath.Join(r.dir, "pgbouncer.log"), Env: os.Environ()})
	r.must(err)
	p := &program{Process: process}
	r.mu.Lock()
	r.programs = append(r.programs, p)
	r.mu.Unlock()
	r.awaitLog(ctx, p, "process up", startLimit)
	u.Host = net.JoinHostPort("127.0.0.1", port)
	return u.String()
}

// behindPooler has all programs behind PgBouncer, as Debian configures it: nothing
// is ignored. A program that refuses must say why.
func behindPooler(mode string) func(context.Context, *rig) {
	return func(ctx context.Context, r *rig) {
		direct := r.databaseURL
		r.databaseURL = r.pooler(ctx, mode)
		defer func() { r.databaseURL = direct }()
		programs := []*program{r.start(programs.Worker, "worker", impatient("5s")), r.start(programs.Cron, "cron", impatient("5s"))}
		for _, p := range programs {
			if !r.eventually(ctx, startLimit, func() bool { return p.Started() || !p.Running() }) {
				r.fatalf("%s neither starts nor refuses to", p.Name)
			}
			if p.Running() {
				continue
			}
			text := strings.ToLower(p.LogText())
			if mode == "session" || !strings.Contains(text, "transaction") || !strings.Contains(text, "pool") {
				r.fatalf("%s refuses to start, and does not name the pooler: %s", p.Name, p.LastWords())
			}
			r.figure("refused_by=%s", p.Name)
			return
		}
		pool, err := pgstore.Open(ctx, r.databaseURL, "pooled", 4)
		r.must(err)
		defer pool.Close()
		notifier, err := pubsubnotify.New(ctx, r.pubsub())
		r.must(err)
		defer func() { _ = notifier.Close() }() // the scenario is over
		queue, err := eventqueue.New(pgstore.New(pool), notifier, eventqueue.QueueConfig{})
		r.must(err)
		one := func(ctx context.Context, events []eventqueue.NewEvent) ([]eventqueue.EventID, error) {
			id, err := queue.Emit(ctx, events[0])
			return []eventqueue.EventID{id}, err
		}
		r.emitBy(ctx, batch{label: "pooled", n: 400, every: time.Millisecond}, one)
		r.awaitDone(ctx, "pooled", time.Minute)
		r.emitBy(ctx, batch{label: "lines", n: 200, every: time.Millisecond, key: func(i int) string { return fmt.Sprint(i % 10) }}, one)
		r.awaitDone(ctx, "lines", time.Minute)
		r.must(queue.Close(ctx))
	}
}
