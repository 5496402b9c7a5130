package memcron

import (
	"context"
	"fmt"
	"slices"
	"time"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
)

// Add adds a definition, or replaces one, as cronchecker.Definitions.Add does. It waits
// for a checker that is emitting for the definition.
func (s *Store) Add(ctx context.Context, d cronchecker.NewDefinition, replace bool) (cronchecker.Definition, error) {
	schedule, err := cronchecker.ParseSchedule(d.Schedule, d.TimeZone)
	if err != nil {
		return cronchecker.Definition{}, fmt.Errorf("add cron definition: %w", err)
	}
	missed, err := cronchecker.ParseMissed(string(d.Missed))
	if err != nil {
		return cronchecker.Definition{}, fmt.Errorf("add cron definition: %w", err)
	}
	var added cronchecker.Definition
	err = s.change(ctx, d.Canvas, d.Name, func(old *definition, now time.Time) error {
		t := s.tables
		switch {
		case old == nil:
			t.lastID++
			old = &definition{Definition: cronchecker.Definition{ID: t.lastID, Canvas: d.Canvas, Name: d.Name}}
			t.definitions[old.ID] = old
		case !replace:
			return cronchecker.ErrTaken
		}
		renewed := *old
		renewed.Schedule, renewed.TimeZone, renewed.Missed = schedule.String(), schedule.Zone().String(), missed
		same := old.Enabled && renewed.Definition == old.Definition
		renewed.Skips = d.Skips
		if !same {
			renewed.Enabled, renewed.StartsAt = true, now
		}
		*old = renewed
		added = old.Definition
		return nil
	})
	return added, err
}

// SetEnabled switches a definition on or off; no event is emitted for slots that pass
// while it is off. If it does not exist, the error is cronchecker.ErrNotFound. It waits
// as Add does.
func (s *Store) SetEnabled(ctx context.Context, canvas eventqueue.CanvasID, name string, enabled bool) error {
	return s.change(ctx, canvas, name, func(d *definition, now time.Time) error {
		if d == nil {
			return cronchecker.ErrNotFound
		}
		if enabled && !d.Enabled {
			d.StartsAt = now
		}
		d.Enabled = enabled
		return nil
	})
}

// Remove deletes a definition and its records. If it does not exist, the error is
// cronchecker.ErrNotFound. It waits as Add does.
func (s *Store) Remove(ctx context.Context, canvas eventqueue.CanvasID, name string) error {
	return s.change(ctx, canvas, name, func(d *definition, _ time.Time) error {
		if d == nil {
			return cronchecker.ErrNotFound
		}
		t := s.tables
		delete(t.definitions, d.ID)
		t.records = slices.DeleteFunc(t.records, func(r Record) bool { return r.Cron == d.ID })
		return nil
	})
}

// change runs f, as one step, on a definition that no checker has locked, or on nil if
// the definition does not exist.
func (s *Store) change(ctx context.Context, canvas eventqueue.CanvasID, name string, f func(d *definition, now time.Time) error) error {
	for {
		var locked chan struct{}
		var refused error
		err := s.store.Do(ctx, OpDefine, func(now time.Time) {
			d := s.tables.find(canvas, name)
			if d != nil && d.locked != nil {
				locked = d.locked
				return
			}
			refused = f(d, now)
		})
		switch {
		case err != nil:
			return err
		case refused != nil:
			return fmt.Errorf("cron definition %q of canvas %s: %w", name, canvas, refused)
		case locked == nil:
			return nil
		}
		select {
		case <-locked:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (t *Tables) find(canvas eventqueue.CanvasID, name string) *definition {
	for _, d := range t.definitions {
		if d.Canvas == canvas && d.Name == name {
			return d
		}
	}
	return nil
}
