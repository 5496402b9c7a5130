package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/test/command"
	"eventsv2/test/programs"
	"eventsv2/test/services"
)

func main() { command.Main(run) }

const (
	cleanupLimit = time.Minute
	// stopLimit is how long the programs have at the end: their data is removed with them.
	stopLimit = 15 * time.Second
	// finishLimit is how long the runs of a worker with an old handlers file may take.
	finishLimit = 10 * time.Minute

	notifierAuto     = "auto"
	notifierPubSub   = "pubsub"
	notifierPostgres = "postgres"
)

// run is the program without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := command.Flags("up")
	handlers := flags.String("handlers", "", "handlers `file` of the worker (default: a sample, whose target is a server in this program)")
	notifier := flags.String("notifier", notifierAuto, "`notifier`: pubsub (the emulator), postgres, or auto (the emulator if it is there)")
	if err := command.Parse(flags, args, stderr); err != nil {
		return command.Usage("up", err, stderr)
	}
	if *notifier != notifierAuto && *notifier != notifierPubSub && *notifier != notifierPostgres {
		return command.Usage("up", fmt.Errorf("-notifier is %q: it must be %s, %s or %s", *notifier, notifierAuto, notifierPubSub, notifierPostgres), stderr)
	}
	err := up(ctx, *handlers, *notifier, command.NewReporter(stdout))
	if err != nil && ctx.Err() == nil {
		return command.Fail("up", err, command.ExitFailed, stderr)
	}
	return command.ExitOK
}

// up starts everything, and waits until ctx ends. It returns why it had to stop before.
func up(signals context.Context, handlers, notifier string, out *command.Reporter) (err error) {
	ctx, broken := context.WithCancelCause(signals)
	defer broken(nil)
	dir, err := os.MkdirTemp("", "eventsv2-up-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	stop := &command.Cleanups{}
	stop.OnCleanup(func(context.Context) error { return os.RemoveAll(dir) })
	defer func() {
		err = errors.Join(err, stop.CleanUp(ctx, cleanupLimit))
		out.Report("everything is stopped, and its data is removed")
	}()
	e := &environment{dir: dir, out: out, fleet: programs.NewFleet(broken), handlers: handlers}
	if err := e.start(ctx, notifier, stop); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	e.watch(ctx)
	return context.Cause(ctx)
}

// environment is the set of running programs.
type environment struct {
	dir      string
	out      *command.Reporter
	fleet    *programs.Fleet
	settings map[string]string // of all programs
	handlers string            // path of the handlers file
	worker   *programs.Process
	workers  int // that were started
}

// start starts everything, and says how it is used.
func (e *environment) start(ctx context.Context, notifier string, stop *command.Cleanups) error {
	e.out.Report("building worker, cron and eventctl")
	if err := programs.Build(ctx, e.dir, programs.Deployed(programs.Worker, programs.Cron, programs.Ctl)); err != nil {
		return err
	}
	if err := e.openServices(ctx, notifier, stop); err != nil {
		return err
	}
	if e.handlers == "" {
		if err := e.sample(stop); err != nil {
			return err
		}
	}
	// Before the services, which are stopped after the programs.
	stop.OnCleanup(func(context.Context) error {
		_ = e.fleet.Stop(stopLimit) // what a program says about its end is of no use any more
		return nil
	})
	if err := e.migrate(ctx); err != nil {
		return err
	}
	cron, err := e.program(programs.Cron, "cron", nil)
	if err != nil {
		return err
	}
	if err := e.replaceWorker(ctx); err != nil {
		return err
	}
	if err := cron.AwaitStart(ctx); err != nil {
		return err
	}
	dashboard, err := e.dashboard(ctx)
	if err != nil {
		return err
	}
	return e.explain(dashboard)
}

// openServices finds or starts Postgres and the notifier, and makes a database.
func (e *environment) openServices(ctx context.Context, notifier string, stop *command.Cleanups) error {
	postgres, err := services.Postgres(ctx)
	if err != nil {
		return err
	}
	stop.OnCleanup(postgres.Stop)
	name := "eventsv2_up_" + strings.ToLower(rand.Text()[:12])
	databaseURL, err := services.WithDatabase(postgres.URL, name)
	if err != nil {
		return err
	}
	if err := execute(ctx, postgres.URL, "CREATE DATABASE "+name); err != nil {
		return err
	}
	stop.OnCleanup(func(ctx context.Context) error {
		return execute(ctx, postgres.URL, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	})
	e.out.Report("Postgres answers (%s)", postgres.Origin)
	e.settings = map[string]string{"DATABASE_URL": databaseURL, "NOTIFIER": notifierPostgres, "PORT": "0", "LOG_EVENTS": "all",
		"RETAIN_HISTORY": "true", "HISTORY_COMPLETED_FOR": "24h"}
	if notifier == notifierPostgres {
		return nil
	}
	emulator, err := services.Emulator(ctx)
	switch {
	case errors.Is(err, services.ErrNotFound) && notifier == notifierAuto:
		e.out.Report("there is no Pub/Sub emulator here: Postgres is the notifier")
		return nil
	case err != nil:
		return err
	}
	stop.OnCleanup(emulator.Stop)
	e.settings["NOTIFIER"], e.settings["PUBSUB_EMULATOR_HOST"], e.settings["PUBSUB_CREATE"] = notifierPubSub, emulator.URL, "true"
	e.settings["PUBSUB_TOPIC"], e.settings["PUBSUB_SUBSCRIPTION"] = name, name
	e.out.Report("the Pub/Sub emulator answers (%s)", emulator.Origin)
	return nil
}

func execute(ctx context.Context, databaseURL, sql string) (err error) {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	_, err = conn.Exec(ctx, sql)
	return err
}

// sample makes a handlers file, and its target: a server in this program that prints what it receives.
func (e *environment) sample(stop *command.Cleanups) error {
	server, err := newTarget(e.out)
	if err != nil {
		return err
	}
	stop.OnCleanup(server.stop)
	e.handlers = filepath.Join(e.dir, "handlers.yaml")
	text := "handlers:\n  - module: WORKER\n    name: hello\n    modifier: _\n    url: http://" + server.address + "/hello\n"
	if err := os.WriteFile(e.handlers, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the sample handlers file: %w", err)
	}
	return nil
}

// migrate makes the schema.
func (e *environment) migrate(ctx context.Context) error {
	p, err := programs.Start(programs.Program{Name: "migrations", Path: filepath.Join(e.dir, programs.Ctl), Args: []string{"migrate", "up"},
		Env: programs.Environment(e.settings), Log: filepath.Join(e.dir, "migrations.log")})
	if err != nil {
		return err
	}
	select {
	case <-p.Exited:
	case <-ctx.Done():
		p.Kill()
		return context.Cause(ctx)
	}
	if p.Status != 0 {
		return p.Failure()
	}
	return nil
}

// program starts a program that has to live until the end.
func (e *environment) program(binary, name string, more map[string]string) (*programs.Process, error) {
	return e.fleet.Start(e.described(binary, name, more))
}

// described is how a program is started.
func (e *environment) described(binary, name string, more map[string]string) programs.Program {
	return programs.Program{Name: name, Path: filepath.Join(e.dir, binary), Env: programs.Environment(e.settings, more), Log: filepath.Join(e.dir, name+".log")}
}

// dashboard starts the dashboard and returns its address.
func (e *environment) dashboard(ctx context.Context) (string, error) {
	first := make(chan string, 1)
	p, err := e.fleet.Start(programs.Program{Name: "dashboard", Path: filepath.Join(e.dir, programs.Ctl), Args: []string{"ui"}, Env: programs.Environment(e.settings),
		Log: filepath.Join(e.dir, "dashboard.log"), Read: func(r io.Reader) {
			lines := bufio.NewReader(r)
			if line, err := lines.ReadString('\n'); err == nil {
				first <- strings.TrimSpace(line)
			}
			_, _ = io.Copy(io.Discard, lines) // it says nothing else
		}})
	if err != nil {
		return "", err
	}
	select {
	case address := <-first:
		return address, nil
	case <-p.Exited:
		return "", p.Failure()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// explain says where everything is. The file of variables is for a shell.
func (e *environment) explain(dashboard string) error {
	var text strings.Builder
	for name, value := range e.settings {
		fmt.Fprintf(&text, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	fmt.Fprintf(&text, "export PATH='%s':\"$PATH\"\n", e.dir)
	path := filepath.Join(e.dir, "env")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("write the variables: %w", err)
	}
	e.out.Print("\n" +
		"  dashboard      " + dashboard + "\n" +
		"  handlers file  " + e.handlers + "   (the worker takes its changes)\n" +
		"  logs           " + filepath.Join(e.dir, "*.log") + "\n" +
		"  emit an event  . " + path + " && eventctl emit --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --module WORKER --name hello --value '{\"name\": \"Ada\"}'\n" +
		"  stop           Ctrl-C\n\n")
	return nil
}

// target prints what it receives.
type target struct {
	server  *http.Server
	address string
}

func (t *target) stop(context.Context) error { return t.server.Close() }
