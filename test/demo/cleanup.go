package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// errCleanup is in the error of cleanup.run.
var errCleanup = errors.New("not everything could be stopped and removed")

// cleanup is what has to be stopped at the end, in the reverse order of its
// start. It is safe for concurrent use.
type cleanup struct {
	mu    sync.Mutex
	steps []func(context.Context) error
}

func (c *cleanup) add(step func(context.Context) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = append(c.steps, step)
}

// run takes all steps, whatever one of them returns, and outlives the end of
// ctx.
func (c *cleanup) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, step := range slices.Backward(c.steps) {
		errs = append(errs, step(ctx))
	}
	c.steps = nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: %w", errCleanup, err)
	}
	return nil
}
