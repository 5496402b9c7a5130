package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/grid"
	"eventsv2/internal/backoff"
	"eventsv2/test/oracle"
)

// gridName is the name of the grid. Versions of programs have one of two definitions of it, with another param of c: so c, and
// d, which takes its output, are other actions there, and a and b are the same.
const (
	gridName       = "workflow"
	gridDefinition = `grid: workflow
actions:
  a: {use: work, inputs: {start: {origin: event}}}
  b: {use: work, inputs: {left: {origin: action, action: a}}}
  c: {use: work, params: {version: %d}, inputs: {left: {origin: action, action: a}}}
  d: {use: work, inputs: {left: {origin: action, action: b}, right: {origin: action, action: c}}}
`
)

// gridOrigins are the actions that each action takes outputs of.
var gridOrigins = map[string][2]string{"b": {"a"}, "c": {"a"}, "d": {"b", "c"}}

type (
	gridInputs struct {
		Start json.RawMessage `grid:"start,event,optional"`
		Left  string          `grid:"left,optional"`
		Right string          `grid:"right,optional"`
	}
	gridParams struct {
		Version int `grid:"version,optional"`
	}
)

// actionOf names an action as a version defines it.
func actionOf(action string, version int) string {
	if action == "c" || action == "d" {
		return fmt.Sprint(action, version)
	}
	return action
}

// gridHandlers registers handlers whose runs are marked.
type gridHandlers struct {
	*eventqueue.Handlers
	p       *process
	version int
}

// Register implements grid.Handlers.
func (h gridHandlers) Register(key eventqueue.HandlerKey, handler eventqueue.Handler, policy eventqueue.Policy) error {
	return h.Handlers.Register(key, eventqueue.HandlerFunc(func(ctx context.Context, run *eventqueue.Run) error {
		return h.p.runGrid(ctx, run, h.version, handler)
	}), policy)
}

// registerGrid registers the grid, in one of its versions, on the process' way to the database.
func (p *process) registerGrid(handlers *eventqueue.Handlers, policy eventqueue.Policy) {
	d := newDice(mix(p.w.seed, hash(p.name)), "grid")
	h := gridHandlers{handlers, p, 1 + d.IntN(2)}
	actions := grid.NewActions()
	must(grid.Register(actions, "work", func(ctx context.Context, c grid.Call[gridInputs, gridParams, grid.None]) (string, error) {
		return p.act(ctx, c, h.version)
	}))
	g, err := grid.Parse("simulated", fmt.Appendf(nil, gridDefinition, h.version), actions, nil)
	must(err)
	runner, err := grid.NewRunner(direct{port: p.store(), op: "Grid", record: p.w.stored}, grid.Config{Policy: policy, Concurrency: 1 + d.IntN(3)})
	must(err)
	must(runner.Register(h, g))
}

// runGrid is a run of the grid, between its marks.
func (p *process) runGrid(ctx context.Context, run *eventqueue.Run, version int, handler eventqueue.Handler) error {
	p.w.alive.Add(1)
	defer p.w.alive.Done()
	actions := []string{"a", "b", actionOf("c", version), actionOf("d", version)}
	if err := p.markWith(run, oracle.Record{Kind: oracle.RunStarted, Value: string(run.Value), Actions: actions}); err != nil {
		return err
	}
	err := handler.Handle(ctx, run)
	if dead := p.markWith(run, oracle.Record{Kind: oracle.RunEnded, Result: resultOf(ctx, err)}); dead != nil {
		return dead
	}
	return err
}

// act is every action. What it puts out tells who has computed it, and from what.
func (p *process) act(ctx context.Context, c grid.Call[gridInputs, gridParams, grid.None], version int) (string, error) {
	name := actionOf(c.Action, version)
	took := map[string]string{}
	for i, value := range []string{c.Inputs.Left, c.Inputs.Right} {
		if from := gridOrigins[c.Action][i]; from != "" {
			took[actionOf(from, version)] = value
		}
	}
	run := &eventqueue.Run{Event: eventqueue.Event{ID: c.Event}, Attempt: c.Attempt}
	if err := p.markWith(run, oracle.Record{Kind: oracle.ActionBegun, Actions: []string{name}, Took: took}); err != nil {
		return "", err
	}
	d := newDice(mix(p.w.seed, uint64(c.Event), uint64(c.Attempt), hash(c.Action)), "action")
	if d.chance(0.6) && !backoff.Sleep(ctx, d.between(time.Millisecond, 4*time.Second)) {
		return "", ctx.Err()
	}
	switch {
	case d.chance(0.8):
	case d.chance(0.1):
		return "", eventqueue.Permanent(errHandler)
	case d.chance(0.2):
		return "", eventqueue.Snooze(d.between(0, 5*time.Second))
	case d.chance(0.3):
		panic("the action panics")
	default:
		return "", errHandler
	}
	output := fmt.Sprintf("%s#%d(%s%s)", name, c.Attempt, c.Inputs.Left, c.Inputs.Right)
	return output, p.markWith(run, oracle.Record{Kind: oracle.ActionDone, Actions: []string{name}, Value: output})
}

// sweepGrids runs the sweeper of outputs, more often than programs do.
func (p *process) sweepGrids(ctx context.Context) {
	sweeper, err := grid.NewSweeper(direct{port: p.store(), op: "Sweep outputs", record: p.w.stored}, grid.SweeperConfig{})
	must(err)
	for p.w.grids && backoff.Sleep(ctx, 5*time.Second+p.jitter(20*time.Second)) {
		_, _ = sweeper.Pass(ctx) // the next pass does what this one has not done
	}
}

// drawInput draws an input of the grid, of one of two instances or of one of its own.
func (p *process) drawInput(d dice, canvas eventqueue.CanvasID, serial int) eventqueue.NewEvent {
	instance := fmt.Sprint("instance ", serial)
	if d.chance(0.3) {
		instance = groupKeys[d.IntN(len(groupKeys))]
	}
	e, err := grid.NewInput(canvas, gridName, instance, nil)
	must(err)
	e.Value = p.payload(&e, payload{Serial: serial})
	return e
}
