package grid_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/grid"
	"eventsv2/test/testenv"
)

// taken are the inputs of the actions of these tests.
type taken struct {
	A string `grid:"a,action,event,static,optional"`
	B string `grid:"b,optional"`
	// Needs is for an output that has to be there.
	Needs string `grid:"needs,optional"`
}

type call = grid.Call[taken, settings, grid.None]

type settings struct {
	Say string `grid:"say,optional"`
}

// does is the behaviour of an action of a test.
type does func(ctx context.Context, c call) (string, error)

// rig is a queue on a database of its own, and what its grids do.
type rig struct {
	*testing.T
	url      string
	pool     *pgxpool.Pool
	db       eventqueue.DB // of the runner
	store    *pgstore.Store
	notifier *memnotify.Notifier
	queue    *eventqueue.Queue
	ended    chan worker.Outcome // what is not Claimed

	mu   sync.Mutex
	does map[string]does
	ran  []string // the actions that were called, in the order of their beginnings
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, url: testenv.DatabaseURL(t), notifier: memnotify.New(memnotify.Config{}), ended: make(chan worker.Outcome, 1000), does: map[string]does{}}
	var err error
	if r.pool, err = pgxpool.New(t.Context(), r.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.pool.Close)
	r.db, r.store = r.pool, pgstore.New(r.pool)
	if r.queue, err = eventqueue.New(r.store, r.notifier, eventqueue.QueueConfig{Logger: testenv.Logger(t)}); err != nil {
		t.Fatal(err)
	}
	return r
}

// on says what an action does; without it, it puts out its name and what it took.
func (r *rig) on(action string, f does) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.does[action] = f
}

func (r *rig) do(ctx context.Context, c call) (string, error) {
	r.mu.Lock()
	r.ran = append(r.ran, c.Action)
	f := r.does[c.Action]
	r.mu.Unlock()
	if f != nil {
		return f(ctx, c)
	}
	return echo(c), nil
}

func echo(c call) string {
	return fmt.Sprintf("%s%s(%s)", c.Action, c.Params.Say, strings.Join(slices.DeleteFunc([]string{c.Inputs.A, c.Inputs.B, c.Inputs.Needs}, func(s string) bool { return s == "" }), ","))
}

// calls returns the actions that were called so far.
func (r *rig) calls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ran)
}

// wantCalls asserts which actions were called, in any order.
func (r *rig) wantCalls(want ...string) {
	r.Helper()
	got := r.calls()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.Errorf("the calls were %v, want %v", got, want)
	}
}

// definition makes a grid from lines like "c a=a b=b needs=event say=static:x".
func (r *rig) definition(lines ...string) *grid.Grid {
	r.Helper()
	return r.grid(r.actions(), lines...)
}

func (r *rig) actions(options ...grid.Option) *grid.Actions {
	r.Helper()
	actions := grid.NewActions()
	if err := grid.Register(actions, "do", r.do, append(options, grid.Cast("a", grid.Strict[string]))...); err != nil {
		r.Fatal(err)
	}
	return actions
}

func (r *rig) grid(actions *grid.Actions, lines ...string) *grid.Grid {
	r.Helper()
	return r.parse(actions, definition(lines...))
}

func (r *rig) parse(actions *grid.Actions, text string) *grid.Grid {
	r.Helper()
	g, err := grid.Parse("test", []byte(text), actions, nil)
	if err != nil {
		r.Fatal(err)
	}
	return g
}

func definition(lines ...string) string {
	text := "grid: g\nactions:\n"
	for _, line := range lines {
		fields := strings.Fields(line)
		var inputs, params []string
		for _, field := range fields[1:] {
			name, from, _ := strings.Cut(field, "=")
			literal, static := strings.CutPrefix(from, "static:")
			switch {
			case name == "say":
				params = append(params, "say: '"+from+"'")
			case static:
				inputs = append(inputs, name+": {origin: static, static: "+literal+"}")
			case from == "event":
				inputs = append(inputs, name+": {origin: event}")
			default:
				inputs = append(inputs, name+": {origin: action, action: "+from+"}")
			}
		}
		text += fmt.Sprintf("  %s: {use: do, params: {%s}, inputs: {%s}}\n", fields[0], strings.Join(params, ", "), strings.Join(inputs, ", "))
	}
	return text
}

// quick is a policy without waits between attempts.
func quick() eventqueue.Policy {
	return eventqueue.Policy{Backoff: func(int) time.Duration { return time.Millisecond }, MinSnooze: time.Millisecond}
}

// handlers registers a grid.
func (r *rig) handlers(g *grid.Grid, config grid.Config) *eventqueue.Handlers {
	r.Helper()
	if config.Policy.Backoff == nil {
		config.Policy.Backoff, config.Policy.MinSnooze = quick().Backoff, quick().MinSnooze
	}
	config.Logger = testenv.Logger(r)
	runner, err := grid.NewRunner(r.db, config)
	if err != nil {
		r.Fatal(err)
	}
	handlers := eventqueue.NewHandlers()
	if err := runner.Register(handlers, g); err != nil {
		r.Fatal(err)
	}
	return handlers
}

// start runs a worker of a grid until the test ends or stop is called.
func (r *rig) start(g *grid.Grid, config grid.Config, workers worker.Config) (stop func()) {
	r.Helper()
	workers.Logger = testenv.Logger(r)
	workers.Observe = func(o worker.Outcome) {
		if o.Label != machine.Claimed {
			r.ended <- o
		}
	}
	w, err := worker.New(r.queue, r.store, r.notifier, r.handlers(g, config), workers)
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			r.Errorf("worker: %v", err)
		}
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	r.Cleanup(stop)
	return stop
}

// emit starts a run.
func (r *rig) emit(value any) eventqueue.EventID {
	r.Helper()
	return r.emitIn(testenv.Context(r), value)
}

func (r *rig) emitIn(ctx context.Context, value any) eventqueue.EventID {
	r.Helper()
	event, err := grid.NewInput(canvas, "g", "instance", value)
	if err != nil {
		r.Fatal(err)
	}
	id, err := r.queue.Emit(ctx, event)
	if err != nil {
		r.Fatal(err)
	}
	return id
}

// await waits for an outcome with one of the labels and returns it.
func (r *rig) await(labels ...machine.Label) worker.Outcome {
	r.Helper()
	ctx := testenv.Context(r)
	for {
		select {
		case o := <-r.ended:
			if slices.Contains(labels, o.Label) {
				return o
			}
		case <-ctx.Done():
			r.Fatalf("waited in vain for %v", labels)
		}
	}
}

// output is a row of grid_outputs.
type output struct {
	Action  string
	Attempt int32
	Output  *string
}

func (o output) String() string {
	if o.Output == nil {
		return fmt.Sprintf("%s/%d -", o.Action, o.Attempt)
	}
	return fmt.Sprintf("%s/%d %s", o.Action, o.Attempt, *o.Output)
}

// wantOutputs asserts what is kept: action/attempt and output.
func (r *rig) wantOutputs(want ...string) {
	r.Helper()
	rows, err := r.pool.Query(testenv.Context(r), `SELECT split_part(action, '/', 1), attempt, output FROM grid_outputs ORDER BY event_id, action, attempt`)
	if err != nil {
		r.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[output])
	if err != nil {
		r.Fatal(err)
	}
	got := make([]string, len(list))
	for i, o := range list {
		got[i] = o.String()
	}
	if !slices.Equal(got, want) {
		r.Errorf("what is kept is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// one returns the only value of a query.
func one[T any](r *rig, sql string, args ...any) T {
	r.Helper()
	var v T
	if err := r.pool.QueryRow(testenv.Context(r), sql, args...).Scan(&v); err != nil {
		r.Fatalf("%s: %v", sql, err)
	}
	return v
}

func (r *rig) exec(sql string, args ...any) {
	r.Helper()
	if _, err := r.pool.Exec(testenv.Context(r), sql, args...); err != nil {
		r.Fatalf("%s: %v", sql, err)
	}
}

// completed asserts that nothing is left of any run.
func (r *rig) completed() {
	r.Helper()
	r.wantOutputs()
	if n := one[int](r, `SELECT count(*) FROM events_v2`) + one[int](r, `SELECT count(*) FROM event_log`); n != 0 {
		r.Errorf("%d events are left", n)
	}
}

// lastError is why the only failed event failed.
func (r *rig) lastError() string {
	r.Helper()
	return one[string](r, `SELECT last_error FROM event_log WHERE status = 'FAILED'`)
}
