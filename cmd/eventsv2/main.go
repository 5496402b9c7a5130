// Command eventsv2 is worker, cron and eventctl in one binary, for an image that is a third as large: it is the program
// by whose name it is called, /worker, /cron or /eventctl.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/caarlos0/env/v11"

	"eventsv2/internal/eventctl"
	"eventsv2/internal/program"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal kills the process
	os.Exit(run(ctx, filepath.Base(os.Args[0])))
}

func run(ctx context.Context, name string) int {
	environment, args := env.ToMap(os.Environ()), os.Args[1:]
	switch name {
	case "worker":
		return program.Worker(ctx, args, environment, os.Stdout, os.Stderr)
	case "cron":
		return program.Cron(ctx, args, environment, os.Stdout, os.Stderr)
	case "eventctl":
		return eventctl.Run(ctx, args, environment, os.Stdin, os.Stdout, os.Stderr)
	}
	fmt.Fprintf(os.Stderr, "%s: call it by the name of a program: worker, cron or eventctl\n", name)
	return 2
}
