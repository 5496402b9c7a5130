package testenv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/test/services"
)

const (
	// startLimit covers pulling an image over a slow line.
	startLimit = 10 * time.Minute

	// adminLimit is for one statement that makes or drops a database.
	adminLimit = 5 * time.Minute

	// adminConnections is how many of those run at once in one process.
	adminConnections = 4
)

// environment holds what the tests of one process share.
type environment struct {
	postgres postgres
	emulator emulator
}

// process is the one environment of this process. Tests have no owner who could
// hand it to them, and starting a Postgres for each would take minutes.
var process environment

// postgres is the cluster, and a pool for making databases in it.
type postgres struct {
	once     sync.Once
	service  *services.Service
	admin    *pgxpool.Pool
	template string
	err      error

	// inSchema are templates that have the queue in a schema as well, by its name.
	inSchema sync.Map // of func() (string, error)
}

// templateIn makes the template that has the queue in a schema as well, at the first call for it.
func (p *postgres) templateIn(schema string) (name string, err error) {
	once, _ := p.inSchema.LoadOrStore(schema, sync.OnceValues(func() (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		name := p.template + "_" + schema
		return name, ensureTemplate(ctx, p.admin, p.service.URL, name, schema)
	}))
	return once.(func() (string, error))()
}

// get starts the service at the first call; all others wait for it and get the
// same result.
func (p *postgres) get() (*postgres, error) {
	p.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		p.err = p.start(ctx)
	})
	return p, p.err
}

func (p *postgres) start(ctx context.Context) error {
	var err error
	if p.service, err = services.Postgres(ctx, services.InMemory()); err != nil {
		return err
	}
	config, err := pgxpool.ParseConfig(p.service.URL)
	if err != nil {
		return fmt.Errorf("read the database URL: %w", err)
	}
	config.MaxConns = adminConnections
	if p.admin, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return fmt.Errorf("open the pool for making databases: %w", err)
	}
	p.template = templateName()
	return ensureTemplate(ctx, p.admin, p.service.URL, p.template)
}

// stop closes what get has started.
func (p *postgres) stop(ctx context.Context) error {
	if p.admin != nil {
		p.admin.Close()
	}
	if p.service != nil {
		return p.service.Stop(ctx)
	}
	return nil
}

// emulator is the Pub/Sub emulator.
type emulator struct {
	once    sync.Once
	service *services.Service
	err     error
}

func (e *emulator) get() (*services.Service, error) {
	e.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		e.service, e.err = services.Emulator(ctx)
	})
	return e.service, e.err
}

func (e *emulator) stop(ctx context.Context) error {
	if e.service != nil {
		return e.service.Stop(ctx)
	}
	return nil
}

// stop ends the services that this process started.
func (e *environment) stop(ctx context.Context) error {
	return errors.Join(e.postgres.stop(ctx), e.emulator.stop(ctx))
}
