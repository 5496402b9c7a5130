// Command cron emits the events of cron definitions, publishes pending and lost
// notifications, and deletes old history. Run at least one; any number may run. It is
// configured by its environment; see docs/configuration.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/caarlos0/env/v11"

	"eventsv2/internal/program"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal kills the process
	os.Exit(program.Cron(ctx, os.Args[1:], env.ToMap(os.Environ()), os.Stdout, os.Stderr))
}
