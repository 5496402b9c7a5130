// Command eventsv2 is worker, cron and eventctl in one binary, for an image that is a third as large: it is the program
// by whose name it is called, /worker, /cron or /eventctl.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/caarlos0/env/v11"
	"github.com/spf13/cobra"

	"eventsv2/internal/eventctl"
	"eventsv2/internal/program"
	"eventsv2/internal/setup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal kills the process
	os.Exit(run(ctx, filepath.Base(os.Args[0]), os.Args[1:], env.ToMap(os.Environ()), os.Stdin, os.Stdout, os.Stderr))
}

func run(ctx context.Context, name string, args []string, environment map[string]string, stdin io.Reader, stdout, stderr io.Writer) int {
	switch name {
	case "worker":
		return program.Worker(ctx, args, environment, stdout, stderr)
	case "cron":
		return program.Cron(ctx, args, environment, stdout, stderr)
	case "eventctl":
		return eventctl.Run(ctx, args, environment, stdin, stdout, stderr)
	}
	return setup.Execute(ctx, ownCommand(), args, stdout, stderr)
}

// ownCommand is the command of the binary under its own name.
func ownCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "eventsv2",
		Short: "Worker, cron and eventctl in one binary",
		Long: "eventsv2 is worker, cron and eventctl in one binary. It is the program by whose name it is called, so give it\n" +
			"these names, or install the programs one by one.",
		Example: "  ln -s eventsv2 worker && ./worker --help",
		Args:    cobra.ArbitraryArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("call it by the name of a program, worker, cron or eventctl: eventsv2 --help")
		},
	}
}
