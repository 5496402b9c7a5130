package grid_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/grid"
	"eventsv2/test/testenv"
)

func TestRunPerformsEveryActionOnceInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	said := make(chan string, 1)
	r.on("d", func(_ context.Context, c call) (string, error) {
		said <- echo(c)
		return "", nil
	})
	runs := make(chan grid.ActionRun, 1)
	r.on("alone", func(_ context.Context, c call) (string, error) {
		runs <- c.ActionRun
		return "", nil
	})
	r.start(r.definition("d a=b b=c say=!", "b a=a", "c a=a b=event", "a a=static:start", "alone"), grid.Config{Concurrency: 1}, worker.Config{})
	id := r.emit("go")
	r.await(machine.ExecutesToCompletion)
	if got := <-said; got != "d!(b(a(start)),c(a(start),go))" {
		t.Errorf("the last action took %s", got)
	}
	// Dependencies first, then the order of the file.
	if want := []string{"a", "b", "c", "d", "alone"}; !slices.Equal(r.calls(), want) {
		t.Errorf("the calls were %v, want %v", r.calls(), want)
	}
	at := <-runs
	if want := (grid.ActionRun{Canvas: canvas, Event: id, Grid: "g", Action: "alone", Attempt: 1, ClaimID: at.ClaimID}); at != want || at.Key() != id.String()+"/alone" {
		t.Errorf("the run of the action is %+v, with key %s", at, at.Key())
	}
	r.completed()
}

// keeper is a database that keeps every output.
type savingDB struct{ eventqueue.DB }

func (savingDB) QueryRow(context.Context, string, ...any) pgx.Row { return heldRow{} }

type heldRow struct{}

func (heldRow) Scan(into ...any) error {
	*into[0].(*bool) = true
	return nil
}

// Independent actions run at the same time, up to the bound.
func TestIndependentActionsRunTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, does: map[string]does{}}
		proceed := make(chan struct{})
		for _, name := range []string{"a", "b", "c", "d"} {
			r.on(name, func(context.Context, call) (string, error) {
				<-proceed
				return "", nil
			})
		}
		runner, err := grid.NewRunner(savingDB{}, grid.Config{Concurrency: 2})
		if err != nil {
			t.Fatal(err)
		}
		g, ended := r.definition("a", "b", "c", "d", "last a=d"), make(chan error, 1)
		go func() { ended <- runner.RunAll(t.Context(), g, &eventqueue.Run{}) }()
		for began := 2; began <= 4; began++ {
			synctest.Wait() // until nothing can go on by itself
			if got := r.calls(); len(got) != began {
				t.Errorf("%v have begun, want %d", got, began)
			}
			proceed <- struct{}{}
		}
		proceed <- struct{}{}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		r.wantCalls("a", "b", "c", "d", "last")
	})
}

// After a failure the run goes on where it stopped, and what does not need the
// failed action has run meanwhile.
func TestFailedRunContinuesWhereItStopped(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	failures := 0 // one at a time
	r.on("b", func(_ context.Context, c call) (string, error) {
		if failures++; failures < 3 {
			return "", errors.New("not yet")
		}
		return echo(c), nil
	})
	said := make(chan string, 1)
	r.on("c", func(_ context.Context, c call) (string, error) {
		said <- echo(c)
		return "", nil
	})
	r.start(r.definition("a a=event", "b a=a", "c a=b b=other", "other"), grid.Config{}, worker.Config{})
	r.emit("x")
	r.await(machine.RetryAllowed)
	r.await(machine.ExecutesToCompletion)
	r.wantCalls("a", "b", "b", "b", "c", "other")
	if got := <-said; got != "c(b(a(x)),other())" {
		t.Errorf("the last action took %s", got)
	}
	r.completed()
}

func TestActionMayDoNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.on("skips", func(context.Context, call) (string, error) {
		return "", fmt.Errorf("no issues: %w", grid.ErrSkip)
	})
	said, looked := make(chan string, 1), make(chan struct{})
	failures := 0
	r.on("optional", func(_ context.Context, c call) (string, error) {
		if failures++; failures == 1 {
			return "", errors.New("not yet")
		}
		<-looked
		said <- echo(c)
		return "", nil
	})
	// taken's inputs are optional; strict's are not.
	actions := r.actions()
	if err := grid.Register(actions, "strict", func(context.Context, grid.Call[struct {
		In string `grid:"in"`
	}, grid.None, grid.None]) (string, error) {
		t.Error("an action ran without its input")
		return "", nil
	}); err != nil {
		t.Fatal(err)
	}
	text := definition("skips", "optional a=skips b=static") + "  static: {use: do}\n" +
		"  strict: {use: strict, inputs: {in: {origin: action, action: skips}}}\n" +
		"  after: {use: strict, inputs: {in: {origin: action, action: strict}}}\n"
	g, err := grid.Parse("test", []byte(text), actions, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.start(g, grid.Config{}, worker.Config{})
	r.emit(1)
	r.await(machine.RetryAllowed)
	r.wantOutputs("skips/1 -", `static/1 "static()"`)
	close(looked)
	r.await(machine.ExecutesToCompletion)
	r.wantCalls("skips", "static", "optional", "optional")
	if got := <-said; got != "optional(static())" {
		t.Errorf("the action took %s", got)
	}
	r.completed()
}

// stopInSlow stops the worker of a run while the action slow is under way, which
// then ends as it is told.
func (r *rig) stopInSlow(g *grid.Grid, config grid.Config, end func(context.Context) (string, error)) {
	r.Helper()
	began := make(chan struct{}, 1)
	r.on("slow", func(ctx context.Context, _ call) (string, error) {
		began <- struct{}{}
		<-ctx.Done()
		return end(ctx)
	})
	stop := r.start(g, config, worker.Config{GracePeriod: -1})
	r.emit(1)
	<-began
	stop()
	r.await(machine.Released)
}

// A worker that stops gives the run back, with what has finished.
func TestRunContinuesAfterADeploy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := r.definition("a", "slow a=a", "last a=slow", "other")
	never := 0
	config := grid.Config{Concurrency: 1, Policy: eventqueue.Policy{MaxRetries: &never}}
	r.stopInSlow(g, config, func(ctx context.Context) (string, error) { return "", ctx.Err() })
	r.wantOutputs(`a/1 "a()"`)
	r.on("slow", nil)
	r.start(g, config, worker.Config{})
	r.await(machine.ExecutesToCompletion)
	r.wantCalls("a", "slow", "slow", "last", "other")
	r.completed()
}

// An action that finishes just when its context ends is kept all the same.
func TestOutputAtTheDeadlineIsSaved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := r.definition("slow", "last a=slow")
	r.stopInSlow(g, grid.Config{}, func(context.Context) (string, error) { return "done", nil })
	r.wantOutputs(`slow/1 "done"`)
	r.start(g, grid.Config{}, worker.Config{})
	r.await(machine.ExecutesToCompletion)
	r.wantCalls("slow", "last")
}

// A definition that has changed: what is the same is kept, what is not, and what
// took from it, runs anew.
func TestChangedDefinitionRepeatsChangedActions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		options []grid.Option
		lines   []string
		anew    []string // beside the one that had failed
	}{
		{name: "not at all", lines: []string{"a a=event", "b a=a", "c a=static:x", "bad b=b"}},
		{name: "in its order", lines: []string{"bad b=b", "c a=static:x", "b a=a", "a a=event"}},
		{name: "a param", lines: []string{"a a=event", "b a=a say=!", "c a=static:x", "bad b=b"}, anew: []string{"b"}},
		{name: "a literal", lines: []string{"a a=event", "b a=a", "c a=static:y", "bad b=b"}, anew: []string{"c"}},
		{name: "an origin", lines: []string{"a a=static:x", "b a=a", "c a=static:x", "bad b=b"}, anew: []string{"a", "b"}},
		{name: "an action more", lines: []string{"a a=event", "b a=a", "c a=static:x", "d a=b", "bad b=b"}, anew: []string{"d"}},
		{name: "an action less", lines: []string{"a a=event", "b a=a", "bad b=b"}},
		{name: "the code", options: []grid.Option{grid.Version("2")}, lines: []string{"a a=event", "b a=a", "c a=static:x", "bad b=b"}, anew: []string{"a", "b", "c"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.on("bad", func(context.Context, call) (string, error) { return "", eventqueue.Snooze(0) })
			stop := r.start(r.definition("a a=event", "b a=a", "c a=static:x", "bad b=b"), grid.Config{}, worker.Config{})
			r.emit("x")
			r.await(machine.Snoozed)
			stop()
			r.on("bad", nil)
			r.mu.Lock()
			r.ran = nil
			r.mu.Unlock()
			r.start(r.grid(r.actions(c.options...), c.lines...), grid.Config{}, worker.Config{})
			r.await(machine.ExecutesToCompletion)
			r.wantCalls(append(c.anew, "bad")...)
			r.completed()
		})
	}
}

// A rolling deployment gives a run now to one version, now to the other: each keeps what it has finished.
func TestVersionsSideBySideRepeatNoFinishedAction(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.on("bad", func(context.Context, call) (string, error) { return "", eventqueue.Snooze(0) })
	before, after := r.definition("a", "b a=a", "bad b=b"), r.definition("a say=!", "b a=a", "bad b=b")
	r.emit("x")
	for range 4 {
		for _, g := range []*grid.Grid{before, after} {
			stop := r.start(g, grid.Config{}, worker.Config{})
			r.await(machine.Snoozed)
			stop()
		}
	}
	r.on("bad", nil)
	r.start(before, grid.Config{}, worker.Config{})
	r.await(machine.ExecutesToCompletion)
	finished := slices.DeleteFunc(r.calls(), func(action string) bool { return action == "bad" })
	if want := []string{"a", "b", "a", "b"}; !slices.Equal(finished, want) {
		t.Errorf("the calls were %v, want %v", finished, want)
	}
	r.completed()
}

// Outputs that a version before rows per definition has saved are used, too.
func TestOutputsOfAnEarlierVersionAreUsed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := r.definition("a", "bad a=a")
	r.on("bad", func(context.Context, call) (string, error) { return "", eventqueue.Snooze(0) })
	stop := r.start(g, grid.Config{}, worker.Config{})
	r.emit("x")
	r.await(machine.Snoozed)
	stop()
	r.exec(`UPDATE grid_outputs SET action = split_part(action, '/', 1)`)
	r.on("bad", nil)
	r.start(g, grid.Config{}, worker.Config{})
	r.await(machine.ExecutesToCompletion)
	r.wantCalls("a", "bad", "bad")
	r.completed()
}

// A canvas' own grid goes before that of all.
func TestGridOfACanvasTakesPrecedence(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	runner, err := grid.NewRunner(r.pool, grid.Config{})
	if err != nil {
		t.Fatal(err)
	}
	all := r.definition("a")
	own, err := grid.Parse("own", []byte("grid: g\ncanvas: "+canvas.String()+"\nactions: {own: {use: do}}"), r.actions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	handlers := eventqueue.NewHandlers()
	if err := runner.Register(handlers, all, own); err != nil {
		t.Fatal(err)
	}
	if err := runner.Register(handlers, own); err == nil || !strings.HasPrefix(err.Error(), "own: handler GRID/g/_ of canvas "+canvas.String()+" is registered twice") {
		t.Errorf("the same grid twice: %v", err)
	}
	w, err := worker.New(r.queue, r.store, r.notifier, handlers, worker.Config{MaxEvents: 1, Logger: testenv.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	r.emit(1)
	if err := w.Run(testenv.Context(t)); err != nil {
		t.Fatal(err)
	}
	r.wantCalls("own")
}

func TestNewRunnerRefusesInvalidConfig(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bad := -1
	for _, c := range []struct {
		config grid.Config
		want   string
	}{
		{grid.Config{Concurrency: -1}, "Concurrency is -1"},
		{grid.Config{MaxOutputBytes: -1}, "MaxOutputBytes is -1"},
		{grid.Config{Policy: eventqueue.Policy{MaxRetries: &bad}}, "Policy: MaxRetries is -1"},
	} {
		if _, err := grid.NewRunner(r.pool, c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
	if _, err := grid.NewRunner(nil, grid.Config{}); err == nil {
		t.Error("a runner without a database was made")
	}
	runner, err := grid.NewRunner(r.pool, grid.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.Register(eventqueue.NewHandlers(), nil); err == nil {
		t.Error("a grid that is nil was registered")
	}
}

// An input gets what its source has, whatever it is: null, the shortest output, or JSON that nothing has decoded.
func TestInputsGetNullsNumbersAndRawOutputs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	actions := grid.NewActions()
	type give struct {
		Literal any `grid:"literal,static"`
	}
	type take struct {
		Number int             `grid:"number"`
		Maybe  *int            `grid:"maybe,optional"`
		Raw    json.RawMessage `grid:"raw"`
		Event  nullable        `grid:"event,event"`
	}
	var got []string
	err := errors.Join(
		grid.Register(actions, "give", func(_ context.Context, c grid.Call[give, grid.None, grid.None]) (int, error) {
			got = append(got, fmt.Sprint(c.Inputs.Literal))
			return 7, nil
		}, grid.Cast("literal", grid.Strict[any])),
		grid.Register(actions, "take", func(_ context.Context, c grid.Call[take, grid.None, grid.None]) (grid.None, error) {
			got = append(got, fmt.Sprint(c.Inputs.Number), fmt.Sprint(*c.Inputs.Maybe), string(c.Inputs.Raw), string(c.Inputs.Event))
			return grid.None{}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	g := r.parse(actions, `grid: g
actions:
  give: {use: give, inputs: {literal: {origin: static, static: null}}}
  take:
    use: take
    inputs:
      number: {origin: action, action: give}
      maybe: {origin: action, action: give}
      raw: {origin: action, action: give}
      event: {origin: event}
`)
	if _, err := g.NewInput(canvas, "instance", nil); err != nil {
		t.Errorf("null is refused for an input whose type reads it: %v", err)
	}
	r.start(g, grid.Config{}, worker.Config{})
	r.emit(nil)
	r.await(machine.ExecutesToCompletion)
	if want := []string{"<nil>", "7", "7", "7", "read null"}; !slices.Equal(got, want) {
		t.Errorf("the actions got %q, want %q", got, want)
	}
}

// nullable reads null by itself.
type nullable string

func (n *nullable) UnmarshalJSON(raw []byte) error {
	*n = nullable("read " + string(raw))
	return nil
}
