// Command worker runs events: it posts each event to the HTTP target of its handler. The
// handlers file (HANDLERS_FILE) maps handlers to targets, and may list sources of webhooks,
// which the worker then serves. It is configured by its environment; see
// docs/configuration.md.
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
	os.Exit(program.Worker(ctx, os.Args[1:], env.ToMap(os.Environ()), os.Stdout, os.Stderr))
}
