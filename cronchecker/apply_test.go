package cronchecker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

// TestApplyMakesDefinitionsMatchTheList: what differs is added, changed and, with Prune, removed, on the canvases of the list only; again, nothing
// differs (I14). A list with a mistake changes nothing, and in a transaction that is rolled back nothing is left.
func TestApplyMakesDefinitionsMatchTheList(t *testing.T) {
	t.Parallel()
	ctx, pool := testenv.Context(t), testenv.Pool(t)
	definitions := cronchecker.NewDefinitions(pool)
	ours, others := eventqueue.CanvasID{1}, eventqueue.CanvasID{2}
	on := func(canvas eventqueue.CanvasID, name, schedule string) cronchecker.NewDefinition {
		return cronchecker.NewDefinition{Canvas: canvas, Name: name, Schedule: schedule}
	}
	for _, d := range []cronchecker.NewDefinition{on(ours, "gone", "every day"), on(ours, "kept", "every day"), on(ours, "off", "every day"), on(others, "theirs", "every day")} {
		if _, err := definitions.Add(ctx, d, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := definitions.SetEnabled(ctx, ours, "off", false); err != nil {
		t.Fatal(err)
	}
	list := []cronchecker.NewDefinition{on(ours, "off", "every hour"), on(ours, "new", "every minute"), on(ours, "kept", "every day")}
	apply := func(options cronchecker.ApplyOptions) (did []string) {
		t.Helper()
		changes, err := definitions.Apply(ctx, list, options)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			did = append(did, fmt.Sprintf("%s %s %s", c.Action, c.Name, c.New.Schedule))
		}
		return did
	}
	want := []string{"add new every minute", "change off every hour"}
	pruned := append(slices.Clone(want), "remove gone ")
	for _, step := range []struct {
		options cronchecker.ApplyOptions
		want    []string
	}{
		{cronchecker.ApplyOptions{DryRun: true}, want}, {cronchecker.ApplyOptions{DryRun: true, Prune: true}, pruned},
		{cronchecker.ApplyOptions{}, want}, {cronchecker.ApplyOptions{}, nil},
		{cronchecker.ApplyOptions{Prune: true}, pruned[2:]}, {cronchecker.ApplyOptions{Prune: true}, nil},
		{cronchecker.ApplyOptions{Canvases: []eventqueue.CanvasID{others}}, nil},
		{cronchecker.ApplyOptions{DryRun: true, Prune: true, Canvases: []eventqueue.CanvasID{others}}, []string{"remove theirs "}},
	} {
		if diff := cmp.Diff(step.want, apply(step.options)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", step.options, diff)
		}
	}
	there, err := definitions.List(ctx, &ours)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range there {
		if d.Enabled == (d.Name == "off") {
			t.Errorf("%s is enabled: %t", d.Name, d.Enabled)
		}
	}
	bad := append(slices.Clone(list), on(ours, "bad", "sometimes"))
	if changes, err := definitions.Apply(ctx, bad, cronchecker.ApplyOptions{Prune: true}); err == nil || len(changes) != 0 {
		t.Errorf("a list with a mistake made %v, error %v", changes, err)
	}
	undone := errors.New("undone")
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		return errors.Join(applyIn(ctx, tx, on(ours, "more", "every day")), undone)
	})
	if !errors.Is(err, undone) {
		t.Error(err)
	}
	if got := apply(cronchecker.ApplyOptions{Prune: true, DryRun: true}); len(got) != 0 {
		t.Errorf("after the rollback there is %v to do", got)
	}
}

func applyIn(ctx context.Context, tx pgx.Tx, d cronchecker.NewDefinition) error {
	_, err := cronchecker.NewDefinitions(tx).Apply(ctx, []cronchecker.NewDefinition{d}, cronchecker.ApplyOptions{})
	return err
}
