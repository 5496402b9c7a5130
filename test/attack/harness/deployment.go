package harness

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"

	"eventsv2/eventqueue"
	"eventsv2/migrations"
	"eventsv2/pubsubnotify"
	"eventsv2/test/command"
	"eventsv2/test/programs"
	"eventsv2/test/services"
)

// Deployment is what a program loads and attacks: servers of its own and the built programs.
type Deployment struct {
	command.Cleanups

	Name     string // of its project at Pub/Sub
	Dir      string // of binaries and logs
	Progress *command.Reporter

	Postgres *Server // with fsync
	Emulator *Server
}

// Open builds programs, given by the names of their binaries, starts the servers and applies the
// schema.
func (d *Deployment) Open(ctx context.Context, packages map[string]string) error {
	d.Progress.Report("building the programs")
	if err := programs.Build(ctx, d.Dir, packages); err != nil {
		return err
	}
	d.Progress.Report("starting Postgres with fsync, and the Pub/Sub emulator")
	postgres, err := services.Postgres(ctx, services.Durable(), services.Private())
	if err != nil {
		return err
	}
	d.OnCleanup(postgres.Stop)
	emulator, err := services.Emulator(ctx, services.Private())
	if err != nil {
		return err
	}
	d.OnCleanup(emulator.Stop)
	if postgres.PID == 0 || emulator.PID == 0 {
		return errors.New("Postgres and the emulator must be started from binaries, so that they can be killed: install both")
	}
	d.Postgres, d.Emulator = &Server{Service: postgres}, &Server{Service: emulator}
	_, err = migrations.Up(ctx, postgres.URL)
	return err
}

// The names at Pub/Sub.
const (
	Topic        = "events"
	Subscription = "workers"
)

// PubSub is where the topic and the subscription are, by way of some address.
func (d *Deployment) PubSub(address string) pubsubnotify.Config {
	return pubsubnotify.Config{ProjectID: d.Name, Topic: Topic, Subscription: Subscription, Create: true, EmulatorHost: address}
}

// Canvases are some tenants, the same for the same seed.
func Canvases(seed int64, count int) []eventqueue.CanvasID {
	all := make([]eventqueue.CanvasID, count)
	for n := range all {
		all[n] = eventqueue.CanvasID(uuid.NewSHA1(uuid.Nil, []byte(strconv.FormatInt(seed, 10)+"/"+strconv.Itoa(n))))
	}
	return all
}

// Result is what a run came to.
type Result interface {
	Good() bool      // nothing was found
	Line() string    // the verdict, which is the last line
	Details() string // what stands before it
	Page() string    // the report in Markdown
}

// cleanupLimit bounds the stopping of everything.
const cleanupLimit = 2 * time.Minute

// Play is a whole run. A signal ends the load, and what was done until then is checked all the same;
// broken, which setUp gets, does so too, and the run has failed then. Everything is stopped at the end.
func (d *Deployment) Play(ctx context.Context, setUp func(ctx context.Context, broken context.CancelCauseFunc) error,
	load func(context.Context) error, check func(ctx context.Context, loaded time.Duration) (Result, error)) (found Result, err error) {
	defer func() { err = errors.Join(err, d.CleanUp(ctx, cleanupLimit)) }()
	run, broken := context.WithCancelCause(ctx)
	defer broken(nil)
	if err := setUp(run, broken); err != nil {
		return nil, err
	}
	began := time.Now()
	err = load(run)
	loaded := time.Since(began)
	if ctx.Err() == nil && run.Err() != nil {
		err = errors.Join(err, context.Cause(run))
	}
	found, failure := check(context.WithoutCancel(ctx), loaded)
	return found, errors.Join(err, failure)
}
