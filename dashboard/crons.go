package dashboard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"eventsv2/access"
	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/internal/view"
)

const (
	// cronsShown is how many definitions a page lists.
	cronsShown = 60
	// slotsShown is how many slots each has on it, before now and after.
	slotsShown = 5
)

type cronsData struct {
	Rows []cronRow
	More int
	// MayAdd reports whether the viewer may add a definition, and Canvas is the one for which the form is filled in.
	MayAdd bool
	Canvas string
	Add    cronRow // what the form begins with
}

// cronRow is a definition with the slots around now. One that has passed without an event was missed or skipped, or its record was
// pruned.
type cronRow struct {
	view.Cron
	Next, Last []view.Slot
	MayChange  bool
	Problem    string // what is wrong with the definition
	RunKey     string // of the event that this page emits, however often its form is sent
}

func (d *dashboard) definitions() *cronchecker.Definitions {
	return cronchecker.NewDefinitionsIn(d.Store.Schema(), d.Store.Pool())
}

func (d *dashboard) crons(r *http.Request) (string, any, error) {
	filter, err := d.filter(r)
	if err != nil {
		return "", nil, err
	}
	list, err := d.definitions().List(r.Context(), filter.Canvas)
	if err != nil {
		return "", nil, err
	}
	data := cronsData{More: max(len(list)-cronsShown, 0), MayAdd: d.mayChangeOn(r, access.Administer, filter.Canvas), Canvas: canvasText(r, filter.Canvas)}
	list = list[:len(list)-data.More]
	records, err := d.definitions().Records(r.Context(), view.CronIDs(list), slotsShown)
	if err != nil {
		return "", nil, err
	}
	now := time.Now()
	for _, definition := range list {
		row := rowOfCron(definition, records[definition.ID], now)
		row.MayChange = d.mayChange(r, access.Administer, definition.Canvas)
		data.Rows = append(data.Rows, row)
	}
	return "Crons", data, nil
}

// rowOfCron computes the slots of a definition around now.
func rowOfCron(d cronchecker.Definition, records []cronchecker.Record, now time.Time) cronRow {
	row := cronRow{Cron: view.CronOf(d, records), RunKey: rand.Text()}
	schedule, err := cronchecker.ParseSchedule(d.Schedule, d.TimeZone)
	if err != nil {
		row.Problem = clean(err.Error())
		return row
	}
	if d.Enabled {
		next := now
		if d.StartsAt.After(next) {
			next = d.StartsAt
		}
		row.Next = view.All(schedule.Preview(next, slotsShown), view.SlotOf)
	}
	row.Last = slotsUntil(schedule, d.StartsAt, records, now)
	return row
}

// slotsUntil lists the last slots until now: those after the start of the definition as it is, and those that have
// a record.
func slotsUntil(schedule cronchecker.Schedule, starts time.Time, records []cronchecker.Record, now time.Time) []view.Slot {
	slots := view.All(records, view.PassedSlotOf)
	for at, passed := schedule.Latest(starts, now); passed && len(slots) < 2*slotsShown; at, passed = schedule.Latest(starts, at.Add(-time.Second)) {
		if !slices.ContainsFunc(slots, func(s view.Slot) bool { return s.Slot.Equal(at) }) {
			slots = append(slots, view.Slot{Slot: at.UTC()})
		}
	}
	slices.SortFunc(slots, func(a, b view.Slot) int { return b.Slot.Compare(a.Slot) })
	return slots[:min(len(slots), slotsShown)]
}

// cronForm names the definition of a form, if its viewer may change it.
func (d *dashboard) cronForm(r *http.Request) (canvas eventqueue.CanvasID, name string, err error) {
	if canvas, err = d.canvasOfForm(r, "/crons"); err != nil {
		return canvas, "", err
	}
	name, err = field(r, "name")
	return canvas, name, err
}

// cronsPath is the page of the definitions of a canvas.
func cronsPath(canvas eventqueue.CanvasID) string {
	return "/crons?" + url.Values{"canvas": {canvas.String()}}.Encode()
}

// cronChange changes a definition with what it is given.
type cronChange func(ctx context.Context, r *http.Request, definitions *cronchecker.Definitions, canvas eventqueue.CanvasID, name string) error

// changeCron changes a definition by a form, with its row in the audit log.
func (d *dashboard) changeCron(action, said string, change cronChange) formAction {
	return func(r *http.Request) (string, flash, error) {
		canvas, name, err := d.cronForm(r)
		if err != nil {
			return "", flash{}, err
		}
		path := cronsPath(canvas)
		err = d.Store.As(viewerOf(r).actor()).ChangeCron(r.Context(), action, canvas, name, func(tx eventqueue.DB) error {
			return change(r.Context(), r, cronchecker.NewDefinitionsIn(d.Store.Schema(), tx), canvas, name)
		})
		switch {
		case errors.Is(err, cronchecker.ErrNotFound):
			return path, refused("There is no such definition any more."), nil
		case errors.Is(err, cronchecker.ErrTaken):
			return path, refused("Nothing was changed: the canvas has a definition of this name. Edit that one."), nil
		case err != nil:
			return "", flash{}, err
		}
		return path, done(said), nil
	}
}

func (d *dashboard) switchCron(on bool) func(r *http.Request) (string, flash, error) {
	action, said := "disable_cron", "It is switched off: no further event is emitted for it."
	if on {
		action, said = "enable_cron", "It is switched on, from now on."
	}
	return d.changeCron(action, said, func(ctx context.Context, _ *http.Request, definitions *cronchecker.Definitions, canvas eventqueue.CanvasID, name string) error {
		return definitions.SetEnabled(ctx, canvas, name, on)
	})
}

// setCron adds a definition, or replaces the schedule of one that exists.
func setCron(replace bool) cronChange {
	return func(ctx context.Context, r *http.Request, definitions *cronchecker.Definitions, canvas eventqueue.CanvasID, name string) error {
		set := cronchecker.NewDefinition{Canvas: canvas, Name: name, Missed: cronchecker.Missed(r.PostFormValue("missed")),
			Skips: cronchecker.Skips{SkipIfPaused: r.PostFormValue("skip_if_paused") != "", SkipIfRunning: r.PostFormValue("skip_if_running") != ""}}
		var err error
		if set.Schedule, err = field(r, "schedule"); err != nil {
			return err
		}
		if set.TimeZone, err = field(r, "time_zone"); err != nil {
			return err
		}
		if err := set.Validate(); err != nil {
			return mistake{cronsPath(canvas), err}
		}
		if replace {
			if _, err := definitions.Next(ctx, canvas, name, 1); errors.Is(err, cronchecker.ErrNotFound) {
				return err
			}
		}
		_, err = definitions.Add(ctx, set, replace)
		return err
	}
}

func removeCron(ctx context.Context, _ *http.Request, definitions *cronchecker.Definitions, canvas eventqueue.CanvasID, name string) error {
	return definitions.Remove(ctx, canvas, name)
}

// runCron emits the event of a definition now, beside its slots, with its row in the audit log.
func (d *dashboard) runCron(r *http.Request) (string, flash, error) {
	canvas, name, err := d.cronForm(r)
	if err != nil {
		return "", flash{}, err
	}
	key, err := field(r, "key")
	if err != nil {
		return "", flash{}, err
	}
	var invalid *eventqueue.InvalidError
	emitted, err := cronchecker.RunNow(r.Context(), d.Queue, d.Store.Schema(), viewerOf(r).actor(), canvas, name, key)
	switch {
	case errors.Is(err, cronchecker.ErrNotFound):
		return "/crons", refused("There is no such definition any more."), nil
	case errors.As(err, &invalid):
		return "", flash{}, mistake{cronsPath(canvas), err}
	case err != nil:
		return "", flash{}, err
	}
	if !emitted.New {
		return cronsPath(canvas), done(fmt.Sprintf("It was emitted before, as event %d, and not again: this page emits another one now.", emitted.ID)), nil
	}
	return eventPath(emitted.ID), done("It was emitted."), nil
}
