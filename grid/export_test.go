package grid

import (
	"context"

	"eventsv2/eventqueue"
)

// RunAll runs the actions of a grid as a first attempt does, without a worker.
func (r *Runner) RunAll(ctx context.Context, g *Grid, run *eventqueue.Run) error {
	a := &attempt{runner: r, grid: g, run: run, states: map[*step]state{}, failures: map[*step]result{}}
	return a.runAll(ctx)
}
