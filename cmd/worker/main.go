// Command worker runs events: it maps handlers to HTTP targets (HANDLERS_FILE)
// and posts each event to its target. It serves the sources of webhooks that the
// same file lists. It is configured by its environment; see docs/configuration.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/caarlos0/env/v11"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal kills
	os.Exit(run(ctx, os.Args[1:], env.ToMap(os.Environ()), os.Stdout, os.Stderr))
}
