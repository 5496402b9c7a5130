package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/pubsubnotify"
	"eventsv2/test/attack/harness"
	"eventsv2/test/command"
	"eventsv2/test/oracle"
	"eventsv2/test/programs"
	"eventsv2/test/pubsubproxy"
	"eventsv2/test/webtarget"
)

// rig is the deployment of one scenario: a database, a topic and a subscription of
// its own, a web server that events are posted to, and the programs that the
// scenario starts.
type rig struct {
	command.Cleanups
	judge

	stage *stage
	name  string
	dir   string // of logs

	databaseURL string // past all proxies
	db          *pgxpool.Pool
	// Programs reach Pub/Sub through the wire, whose connections can be attacked,
	// and the server behind it, which can fail single methods.
	wire         *harness.Proxy
	pubsubServer *pubsubproxy.Server

	emitter *eventqueue.Queue
	// postgresNotifier says that programs, and the emitter, that are made from now on
	// have Postgres as their notifier.
	postgresNotifier bool
	cures            []func(context.Context) error

	mu       sync.Mutex
	programs []*program
	failures []string
	late     int    // of these
	skipped  string // why the scenario could not be played here
	figures  []string
	labels   map[string][]*entry
}

const projectID = "faults"

func (r *rig) topic() string        { return "topic-" + r.name }
func (r *rig) subscription() string { return "subscription-" + r.name }

// open makes the deployment, without any program.
func (r *rig) open(ctx context.Context) error {
	r.labels, r.canFail, r.operators = map[string][]*entry{}, map[string]bool{}, map[string]bool{}
	r.handlers = []webtarget.Handler{handler("work")}
	err := r.openDatabase(ctx, r.name, template)
	if err != nil {
		return err
	}
	if r.pubsubServer, err = pubsubproxy.Open(ctx, r.stage.emulator.URL); err != nil {
		return err
	}
	r.OnCleanup(func(context.Context) error { return r.pubsubServer.Close() })
	if r.wire, err = r.stage.proxies.Open(r.name+"-pubsub", r.pubsubServer.Address()); err != nil {
		return err
	}
	r.OnCleanup(func(context.Context) error { r.wire.Close(); return nil })
	if r.target, err = startTarget(ctx); err != nil {
		return err
	}
	r.OnCleanup(r.target.server.Stop)
	r.watchMachine(ctx)
	return r.openEmitter(ctx)
}

// openDatabase gives the scenario a database, a copy of another one, in place of what it had.
func (r *rig) openDatabase(ctx context.Context, name, from string) error {
	databaseURL, drop, err := r.stage.database(ctx, name, from)
	if err != nil {
		return err
	}
	r.databaseURL = databaseURL
	r.OnCleanup(drop)
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return fmt.Errorf("the URL of the scenario's database: %w", err)
	}
	// The rig sorts all that happened, also in a database that gives little memory.
	config.ConnConfig.RuntimeParams["work_mem"] = "64MB"
	if r.db, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return fmt.Errorf("connect to the scenario's database: %w", err)
	}
	r.OnCleanup(func(context.Context) error { r.db.Close(); return nil })
	return nil
}

// openEmitter makes the queue that the scenario itself emits through, as a program
// that embeds the library does. It also makes topic and subscription.
func (r *rig) openEmitter(ctx context.Context) error {
	if err := r.makeBoth(ctx); err != nil {
		return err
	}
	var opened *programs.Emitter
	var err error
	if r.postgresNotifier {
		opened, err = programs.OpenPostgresEmitter(ctx, &r.Cleanups, r.databaseURL, "emitter", 4)
	} else {
		opened, err = programs.OpenEmitter(ctx, &r.Cleanups, r.databaseURL, "emitter", 4, r.pubsub())
	}
	if err != nil {
		return err
	}
	r.emitter = opened.Queue
	return nil
}

// pubsub is where the scenario's topic and subscription are.
func (r *rig) pubsub() pubsubnotify.Config {
	return pubsubnotify.Config{ProjectID: projectID, Topic: r.topic(), Subscription: r.subscription(), EmulatorHost: r.wire.Address()}
}

// makeBoth makes the topic and the subscription, past the proxies, with the
// settings that the queue needs.
func (r *rig) makeBoth(ctx context.Context) error {
	config := r.pubsub()
	config.Create, config.EmulatorHost = true, r.stage.emulator.URL
	notifier, err := pubsubnotify.New(ctx, config)
	if err != nil {
		return err
	}
	return notifier.Close()
}

// close ends all programs and removes what the scenario made.
func (r *rig) close(ctx context.Context) {
	for _, p := range r.programs {
		p.Kill()
	}
	err := r.CleanUp(ctx, cleanupLimit)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		r.failf("clean up: %v", err)
	}
}

// program is a running program of the deployment.
type program struct {
	*programs.Process
	// database is its way to Postgres.
	database *harness.Proxy
}

// start starts a program under a name, with settings beside those that all
// programs get; args are those of its command line. It does not wait.
func (r *rig) start(binary, name string, settings map[string]string, args ...string) *program {
	database, err := r.stage.proxies.Open(r.name+"-"+name, hostOf(r.databaseURL))
	r.must(err)
	r.OnCleanup(func(context.Context) error { database.Close(); return nil })
	databaseURL, err := database.Through(r.databaseURL, name)
	r.must(err)
	environment := map[string]string{
		"DATABASE_URL":   databaseURL,
		"RETAIN_HISTORY": "true",
		"PORT":           "0",
		"LOG_EVENTS":     "all", // some scenarios read it
		// A proxy of the machine would dial in place of the program.
		"NO_PROXY":      "*",
		"no_proxy":      "*",
		"FAULTS_TARGET": r.target.server.URL() + "/" + name,
	}
	if filepath.Base(binary) == programs.Worker && settings["HANDLERS_FILE"] == "" {
		path := filepath.Join(r.dir, name+".yaml")
		r.must(webtarget.WriteHandlersFile(path, environment["FAULTS_TARGET"], r.handlers))
		environment["HANDLERS_FILE"] = path
	}
	process, err := programs.Start(programs.Program{Name: name, Path: filepath.Join(r.stage.dir, binaries, binary), Args: args,
		Log: filepath.Join(r.dir, name+".log"), Env: programs.Environment(environment, r.notifierEnvironment(), settings)})
	r.must(err)
	p := &program{Process: process, database: database}
	operates := filepath.Base(binary) == programs.Ctl
	lockTimeout, err := time.ParseDuration(cmp.Or(settings["LOCK_TIMEOUT"], "1m"))
	r.must(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !operates {
		r.holds(lockTimeout)
	}
	r.operators[name] = operates
	r.programs = append(r.programs, p)
	return p
}

// notifierEnvironment configures the notifier of a program.
func (r *rig) notifierEnvironment() map[string]string {
	if r.postgresNotifier {
		return map[string]string{"NOTIFIER": "postgres"}
	}
	return programs.PubSubEnvironment(r.pubsub())
}

func hostOf(databaseURL string) string {
	u, err := url.Parse(databaseURL)
	if err != nil {
		panic(fmt.Sprintf("faults: our own Postgres has no URL: %v", err))
	}
	return u.Host
}

// worker starts cmd/worker, and cron cmd/cron, and wait until it says that it works.
func (r *rig) worker(ctx context.Context, name string, settings map[string]string) *program {
	return r.ready(ctx, r.start(programs.Worker, name, settings))
}

func (r *rig) cron(ctx context.Context, settings map[string]string) *program {
	return r.ready(ctx, r.start(programs.Cron, "cron", settings))
}

// embed starts a program that embeds the library, with a worker of its own.
func (r *rig) embed(ctx context.Context, name string, settings map[string]string) *program {
	return r.ready(ctx, r.start(programEmbed, name, settings))
}

// startLimit is how long a program may take to start on a busy machine.
const startLimit = 40 * time.Second

func (r *rig) ready(ctx context.Context, p *program) *program {
	r.awaitLog(ctx, p, ` started"`, startLimit)
	return p
}

// awaitLog ends the scenario when a program does not write a text in time.
func (r *rig) awaitLog(ctx context.Context, p *program, text string, limit time.Duration) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s are over", limit))
	defer cancel()
	if err := p.Await(ctx, text); err != nil {
		r.fatalf("%v", err)
	}
}

var addressPattern = regexp.MustCompile(`"address":"[^"]*:(\d+)"`)

// url is where a program serves.
func (r *rig) url(ctx context.Context, p *program) string {
	r.awaitLog(ctx, p, `"address":"`, startLimit)
	return "http://127.0.0.1:" + addressPattern.FindStringSubmatch(p.LogText())[1]
}

// eventually waits until something holds, and reports whether it did within a limit.
func (r *rig) eventually(ctx context.Context, limit time.Duration, holds func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !holds() {
		if ctx.Err() != nil {
			return false
		}
		backoff.Sleep(ctx, 50*time.Millisecond)
	}
	return true
}

// exec changes the scenario's database, as somebody with SQL does.
func (r *rig) exec(ctx context.Context, sql string, args ...any) {
	if _, err := r.db.Exec(ctx, sql, args...); err != nil {
		r.fatalf("%.60s: %v", strings.TrimSpace(sql), err)
	}
}

// number is the only value of a query.
func (r *rig) number(ctx context.Context, sql string) (n int64) {
	if err := r.db.QueryRow(ctx, sql).Scan(&n); err != nil {
		r.fatalf("%.60s: %v", strings.TrimSpace(sql), err)
	}
	return n
}

// kill ends a program like a crash, which excuses what it was running.
func (r *rig) kill(p *program) {
	now := time.Now()
	p.Signal(syscall.SIGKILL)
	<-p.Exited
	// What it had sent before, a busy target reads later.
	r.fault(oracle.Killed, p.Name, now, now.Add(10*time.Second))
}

// fault records what was done to a process, or to all (""), which explains that its events run again.
func (r *rig) fault(kind oracle.FaultKind, process string, from, to time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, oracle.Fault{Kind: kind, Actor: process, From: from, To: to})
}

// ctl runs eventctl and returns what it printed.
func (r *rig) ctl(ctx context.Context, args ...string) (string, int) {
	return r.ctlOf(ctx, programs.Ctl, args...)
}

// ctlOf is ctl of one of the binaries.
func (r *rig) ctlOf(ctx context.Context, binary string, args ...string) (string, int) {
	name := fmt.Sprintf("eventctl-%d", len(r.programs))
	p := r.start(binary, name, nil, args...)
	select {
	case <-p.Exited:
	case <-ctx.Done():
		r.fatalf("eventctl %s does not end", strings.Join(args, " "))
	}
	return p.LogText(), p.Status
}

// impatient are settings with which what was lost shows soon.
func impatient(lockTimeout string) map[string]string {
	return map[string]string{"LOCK_TIMEOUT": lockTimeout, "RELAY_LOST_AFTER": "1s", "RELAY_INTERVAL": "1s"}
}
