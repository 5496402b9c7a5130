package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"eventsv2/test/services"
)

const (
	// ownFailure is the exit status when withservices itself fails.
	ownFailure = 125

	stopLimit = 30 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	status, err := run(ctx, os.Args[1:], signals, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "withservices:", err)
	}
	os.Exit(status)
}

// run starts the services and the command and returns the exit status. ctx ends
// only the start of the services: the command is told of signals by signals.
func run(ctx context.Context, args []string, signals <-chan os.Signal, report io.Writer) (status int, err error) {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return ownFailure, errors.New("no command: say what to run, as in: withservices -- go test ./...")
	}
	env, stop, err := start(ctx, report)
	defer func() {
		if stopErr := stop(context.WithoutCancel(ctx)); stopErr != nil {
			status, err = ownFailure, errors.Join(err, stopErr)
		}
	}()
	if err != nil {
		return ownFailure, err
	}
	return execute(args, env, signals)
}

// start finds or starts both services. The returned function stops those that
// were started, and is never nil.
func start(ctx context.Context, report io.Writer) (env []string, stop func(context.Context) error, err error) {
	var started []*services.Service
	stop = func(ctx context.Context) error { return stopAll(ctx, started) }
	postgres, err := services.Postgres(ctx, services.InMemory())
	if err != nil {
		say(report, "POSTGRES IS MISSING: NOTHING CAN BE TESTED")
		return nil, stop, err
	}
	started = append(started, postgres)
	say(report, "Postgres: "+postgres.Origin)
	env = append(os.Environ(), "DATABASE_URL="+postgres.URL)

	emulator, err := services.Emulator(ctx)
	if errors.Is(err, services.ErrNotFound) {
		say(report, "THE PUB/SUB EMULATOR IS MISSING: ALL TESTS THAT NEED IT WILL BE SKIPPED, OR FAIL WHERE CI IS SET: "+err.Error())
		return env, stop, nil
	}
	if err != nil {
		return nil, stop, err
	}
	started = append(started, emulator)
	say(report, "Pub/Sub emulator: "+emulator.Origin)
	return append(env, "PUBSUB_EMULATOR_HOST="+emulator.URL), stop, nil
}

func stopAll(ctx context.Context, started []*services.Service) error {
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	var errs []error
	for _, service := range started {
		errs = append(errs, service.Stop(ctx))
	}
	return errors.Join(errs...)
}

// execute runs the command to its end and passes signals on to it.
func execute(args, env []string, signals <-chan os.Signal) (int, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return ownFailure, fmt.Errorf("run the command: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			if sig == os.Interrupt && onTerminal() {
				continue // the terminal has sent it to the command, too
			}
			// An error means that the command has just ended.
			_ = cmd.Process.Signal(sig)
		case err := <-ended:
			return exitStatus(cmd.ProcessState, err)
		}
	}
}

// onTerminal reports whether standard input is a terminal: a character device that
// is not the null device.
func onTerminal() bool {
	info, err := os.Stdin.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && !os.SameFile(info, null)
}

// exitStatus translates the end of a command into a status for a shell.
func exitStatus(state *os.ProcessState, err error) (int, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return ownFailure, fmt.Errorf("wait for the command: %w", err)
	}
	if wait, ok := state.Sys().(syscall.WaitStatus); ok && wait.Signaled() {
		return 128 + int(wait.Signal()), nil
	}
	return state.ExitCode(), nil
}

// say writes a line for the user. An error of it cannot be reported.
func say(report io.Writer, line string) { _, _ = fmt.Fprintln(report, "withservices: "+line) }
