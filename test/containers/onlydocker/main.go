// Command onlydocker asks test/services for Postgres and the Pub/Sub emulator,
// uses them, and stops them. The test runs it in an empty container, where there
// are no binaries and no gcloud, so that the services can only come from images.
// It prints the origin of each service, and exits with status 1 if one does not
// work.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/test/services"
)

const limit = 5 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := errors.Join(postgres(ctx), emulator(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, "onlydocker:", err)
		os.Exit(1) //nolint:gocritic // the process and all that is deferred end here
	}
}

// postgres starts a server and asks it for a setting that test/services gives on
// the command line, which shows that the image passes those on.
func postgres(ctx context.Context) (err error) {
	service, err := services.Postgres(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, service.Stop(context.WithoutCancel(ctx))) }()
	fmt.Println(service.Origin)
	conn, err := pgx.Connect(ctx, service.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	var fsync string
	if err := conn.QueryRow(ctx, "SELECT current_setting('fsync')").Scan(&fsync); err != nil {
		return err
	}
	if fsync != "off" {
		return fmt.Errorf("fsync is %q in the container: the arguments of the server did not arrive", fsync)
	}
	return nil
}

// emulator needs no question of its own: Emulator returns one that has answered.
func emulator(ctx context.Context) error {
	service, err := services.Emulator(ctx)
	if err != nil {
		return err
	}
	fmt.Println(service.Origin)
	return service.Stop(context.WithoutCancel(ctx))
}
