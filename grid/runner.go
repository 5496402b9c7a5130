package grid

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
)

// Config configures a Runner. The zero value is ready to use.
type Config struct {
	// Schema is the schema of the queue. Default (""): public.
	Schema pgsession.Schema

	// Policy is the policy of the handlers: Timeout bounds an attempt with all of its
	// actions, and MaxRetries is how often a failed run is tried again.
	Policy eventqueue.Policy

	// Concurrency is how many actions of one run may run at once. Default (0): 4.
	Concurrency int

	// MaxOutputBytes is the largest output of an action, as JSON. Default (0): 256
	// KiB.
	MaxOutputBytes int

	// Logger gets a debug line for each action that ends. Default (nil): none.
	Logger *zap.Logger
}

func (c Config) withDefaults() Config {
	if c.Concurrency == 0 {
		c.Concurrency = 4
	}
	if c.MaxOutputBytes == 0 {
		c.MaxOutputBytes = 256 << 10
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}

// Validate returns an error that names the first field with an invalid value.
func (c Config) Validate() error {
	if err := c.Policy.Validate(); err != nil {
		return fmt.Errorf("Policy: %w", err)
	}
	if err := c.Schema.Validate(); err != nil {
		return fmt.Errorf("Schema: %w", err)
	}
	if c.Concurrency < 0 {
		return fmt.Errorf("Concurrency is %d: it must be positive", c.Concurrency)
	}
	if c.MaxOutputBytes < 0 {
		return fmt.Errorf("MaxOutputBytes is %d: it must be positive", c.MaxOutputBytes)
	}
	return nil
}

// Runner runs grids. It is safe for concurrent use once its grids are registered, and holds no
// goroutine between runs.
type Runner struct {
	db      eventqueue.DB
	outputs outputs
	config  Config
	swept   []program // that run a Sweeper
}

// NewRunner makes a Runner. db (usually a pool) must be on the queue's database. The
// caller closes it.
func NewRunner(db eventqueue.DB, config Config) (*Runner, error) {
	if db == nil {
		return nil, errors.New("grid.NewRunner: the database must not be nil")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("grid.NewRunner: %w", err)
	}
	return &Runner{db: db, outputs: outputs{config.Schema.On(db)}, config: config.withDefaults()}, nil
}

// Handlers accepts the grids of Register: a *service.Service, or an *eventqueue.Handlers.
type Handlers interface {
	Register(key eventqueue.HandlerKey, h eventqueue.Handler, policy eventqueue.Policy) error
	RegisterOn(canvas eventqueue.CanvasID, key eventqueue.HandlerKey, h eventqueue.Handler, policy eventqueue.Policy) error
}

// program is one that runs more than its worker, as a *service.Service does.
type program interface {
	AddPart(name string, run func(ctx context.Context) error)
	Logger() *zap.Logger
}

// Register adds grids to the handlers of a worker: each for its canvas, or for all
// canvases that have no grid of this name of their own. The error names the grids whose
// name is taken. The others are registered nevertheless, so do not use the handlers after
// an error.
//
// A *service.Service also runs a [Sweeper] from then on. In another program, run one yourself.
func (r *Runner) Register(handlers Handlers, grids ...*Grid) error {
	if p, ok := handlers.(program); ok && !slices.Contains(r.swept, p) {
		sweeper, err := NewSweeper(r.db, SweeperConfig{Schema: r.config.Schema, Logger: p.Logger()})
		if err != nil {
			return err
		}
		p.AddPart("sweeper of grids", sweeper.Run)
		r.swept = append(r.swept, p)
	}
	var failed []error
	for _, g := range grids {
		if g == nil {
			failed = append(failed, errors.New("grid: a grid is nil"))
			continue
		}
		err := r.register(handlers, g)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", g.file, err))
		}
	}
	return errors.Join(failed...)
}

func (r *Runner) register(handlers Handlers, g *Grid) error {
	h := eventqueue.HandlerFunc(func(ctx context.Context, run *eventqueue.Run) error { return r.handle(ctx, g, run) })
	if g.canvas == (eventqueue.CanvasID{}) {
		return handlers.Register(g.Handler(), h, r.config.Policy)
	}
	return handlers.RegisterOn(g.canvas, g.Handler(), h, r.config.Policy)
}

// handle is one attempt of a run: it continues from the saved outputs. When every
// action that can run is complete, it completes the event and deletes the outputs in
// one transaction.
func (r *Runner) handle(ctx context.Context, g *Grid, run *eventqueue.Run) error {
	if err := g.checkValue(run.Value); err != nil {
		if run.Encrypted {
			err = errors.New("the event does not fit the inputs of its actions; how is left out, as the value is encrypted")
		}
		return eventqueue.Permanent(fmt.Errorf("grid %s: %w", g.name, err))
	}
	a, err := r.resume(ctx, g, run)
	if err != nil {
		return fmt.Errorf("grid %s: load the outputs of its actions: %w", g.name, err)
	}
	if err := a.runAll(ctx); err != nil {
		return err
	}
	return run.CompleteTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		if err := deleteOutputs(ctx, r.config.Schema.On(tx), run.ID); err != nil {
			return fmt.Errorf("grid %s: remove the outputs of its actions: %w", g.name, err)
		}
		return nil
	})
}
