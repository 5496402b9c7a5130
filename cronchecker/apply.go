package cronchecker

import (
	"context"
	"fmt"
	"slices"

	"eventsv2/eventqueue"
)

// Action is a change that Definitions.Apply makes to a definition.
type Action string

// The actions of Apply.
const (
	ActionAdd    Action = "add"
	ActionChange Action = "change"
	ActionRemove Action = "remove"
)

// Change is one step of Definitions.Apply.
type Change struct {
	Action Action
	// Canvas and Name identify the definition.
	Canvas eventqueue.CanvasID
	Name   string
	// New is the definition after the change, with its defaults; zero for a removal.
	New NewDefinition
	// Disabled: the definition was switched off, and stays so.
	Disabled bool
}

// ApplyOptions say how far Definitions.Apply goes.
type ApplyOptions struct {
	// Prune removes the definitions of Canvases, and of the canvases of the list, that are not in the list.
	Prune    bool
	Canvases []eventqueue.CanvasID
	// DryRun changes nothing.
	DryRun bool
}

// Apply makes the definitions of a list, and with Prune no others, those that the database has. It returns what it has changed,
// or would change with DryRun, ordered by canvas and name, with removals last. What is as it should be stays as it is, and what is
// switched off stays so: a deployment may apply its list each time.
//
// It checks the whole list before it changes anything, and sends a statement per change: on a transaction all are made or none. On
// an error it returns the changes that it has made.
func (s *Definitions) Apply(ctx context.Context, list []NewDefinition, options ApplyOptions) ([]Change, error) {
	changes, err := s.plan(ctx, list, options)
	if err != nil || options.DryRun {
		return changes, err
	}
	for i, c := range changes {
		if err := s.Make(ctx, c); err != nil {
			return changes[:i], err
		}
	}
	return changes, nil
}

// Make makes one change that Apply has returned for a DryRun.
func (s *Definitions) Make(ctx context.Context, c Change) error {
	if c.Action == ActionRemove {
		return s.Remove(ctx, c.Canvas, c.Name)
	}
	if _, err := s.Add(ctx, c.New, c.Action == ActionChange); err != nil {
		return err
	}
	if c.Disabled {
		return s.SetEnabled(ctx, c.Canvas, c.Name, false)
	}
	return nil
}

// definitionID identifies a definition.
type definitionID struct {
	canvas eventqueue.CanvasID
	name   string
}

func (s *Definitions) plan(ctx context.Context, list []NewDefinition, options ApplyOptions) (changes []Change, err error) {
	wanted, canvases, err := normalized(list)
	if err != nil {
		return nil, err
	}
	there, err := s.List(ctx, nil)
	if err != nil {
		return nil, err
	}
	have := map[definitionID]Definition{}
	for _, d := range there {
		have[definitionID{d.Canvas, d.Name}] = d
	}
	for _, d := range wanted {
		old, exists := have[definitionID{d.Canvas, d.Name}]
		switch {
		case !exists:
			changes = append(changes, Change{Action: ActionAdd, Canvas: d.Canvas, Name: d.Name, New: d})
		case !old.is(d):
			changes = append(changes, Change{Action: ActionChange, Canvas: d.Canvas, Name: d.Name, New: d, Disabled: !old.Enabled})
		}
		delete(have, definitionID{d.Canvas, d.Name})
	}
	if !options.Prune {
		return changes, nil
	}
	for _, canvas := range options.Canvases {
		canvases[canvas] = true
	}
	for _, d := range there { // in their order
		if _, left := have[definitionID{d.Canvas, d.Name}]; left && canvases[d.Canvas] {
			changes = append(changes, Change{Action: ActionRemove, Canvas: d.Canvas, Name: d.Name})
		}
	}
	return changes, nil
}

// normalized returns the definitions of a list with their defaults, by canvas and name, and their canvases.
func normalized(list []NewDefinition) ([]NewDefinition, map[eventqueue.CanvasID]bool, error) {
	wanted, canvases := slices.Clone(list), map[eventqueue.CanvasID]bool{}
	seen := map[definitionID]bool{}
	for i := range wanted {
		d := &wanted[i]
		if err := d.normalize(); err != nil {
			return nil, nil, fmt.Errorf("apply cron definition %d, %q: %w", i+1, d.Name, err)
		}
		id := definitionID{d.Canvas, d.Name}
		if seen[id] {
			return nil, nil, fmt.Errorf("apply cron definition %d: %q on canvas %s is in the list twice", i+1, d.Name, d.Canvas)
		}
		seen[id], canvases[d.Canvas] = true, true
	}
	slices.SortFunc(wanted, func(a, b NewDefinition) int {
		if c := slices.Compare(a.Canvas[:], b.Canvas[:]); c != 0 {
			return c
		}
		return slices.Compare([]byte(a.Name), []byte(b.Name))
	})
	return wanted, canvases, nil
}

// is reports whether the definition has the settings of a new one, with its defaults.
func (d Definition) is(n NewDefinition) bool {
	return d.Schedule == n.Schedule && d.TimeZone == n.TimeZone && d.Missed == n.Missed && d.SkipIfPaused == n.SkipIfPaused && d.SkipIfRunning == n.SkipIfRunning
}
