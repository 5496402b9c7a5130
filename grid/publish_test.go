package grid_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"eventsv2/cleanup"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/grid"
)

type (
	postInputs struct {
		Target string `grid:"target,event"`
	}
	postParams struct {
		Cleanup cleanup.Config `grid:"cleanup"`
	}
	postServices struct {
		Publications *cleanup.Publications `grid:"publications"`
	}
	postCall = grid.Call[postInputs, postParams, postServices]
)

// chat holds the posted messages that were not deleted.
type chat struct {
	posts []string
	fails int // after a post
}

func (c *chat) post(ctx context.Context, call postCall) (string, error) {
	key, err := cleanup.NewKey(call.Canvas, "chat", call.Params.Cleanup, map[string]any{"target": call.Inputs.Target})
	if err != nil {
		return "", eventqueue.Permanent(err)
	}
	result, err := call.Services.Publications.Publish(ctx, call.Run(), cleanup.Publication{
		Key: key,
		TTL: call.Params.Cleanup.TTL,
		Send: func(context.Context, cleanup.Intent) ([]byte, error) {
			c.posts = append(c.posts, fmt.Sprint(call.Inputs.Target, " ", call.Event))
			return []byte(c.posts[len(c.posts)-1]), nil
		},
		Find: cleanup.Unsearchable,
		Delete: func(_ context.Context, old cleanup.Cleanup) error {
			c.posts = slices.DeleteFunc(c.posts, func(post string) bool { return post == string(old.Data) })
			return nil
		},
	})
	if err == nil && c.fails > 0 {
		c.fails--
		err = errors.New("no luck")
	}
	return string(result.Data), err
}

// An action publishes and cleans up as a handler does, once in all attempts of a run.
func TestActionPublishes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := &chat{fails: 1}
	actions := grid.NewActions()
	if err := grid.Register(actions, "post", c.post); err != nil {
		t.Fatal(err)
	}
	g, err := grid.Parse("f", []byte(`grid: g
actions:
  post:
    use: post
    inject: {publications: publications}
    params:
      cleanup: {key: todo_list, ttl: replace, inputs: [target]}
    inputs:
      target: {origin: event}
`), actions, grid.Services{"publications": cleanup.NewPublications(r.pool)})
	if err != nil {
		t.Fatal(err)
	}
	r.start(g, grid.Config{}, worker.Config{})
	var want []string
	for _, target := range []string{"ann", "bob", "ann"} {
		want = append(want, fmt.Sprint(target, " ", r.emit(target)))
		r.await(machine.ExecutesToCompletion)
	}
	if !slices.Equal(c.posts, want[1:]) {
		t.Errorf("the posts are %q, want %q", c.posts, want[1:])
	}
	r.completed()
}

// The grid ends the event, and no action does.
func TestActionCannotCompleteTheRun(t *testing.T) {
	t.Parallel()
	at := grid.ActionRun{Canvas: canvas, Event: 7, Grid: "g", Action: "a", Attempt: 3}
	run := at.Run()
	if run.ID != 7 || run.Canvas != canvas || run.Handler().String() != "GRID/g/_" || run.Attempt != 3 {
		t.Errorf("the run is %+v", &run.Event)
	}
	if err := run.CompleteTx(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "an action of a grid") {
		t.Errorf("completing: %v", err)
	}
	if err := run.CompleteIn(t.Context(), nil); err == nil {
		t.Error("the run was completed")
	}
}
