package httpapi

import (
	"context"
	"errors"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"eventsv2/access"
	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/internal/view"
)

// CronInput names a cron definition in the query.
type CronInput struct {
	CanvasInput
	Name string `query:"name" required:"true" minLength:"1" maxLength:"255"`
}

// CronName names a cron definition.
type CronName struct {
	Canvas string `json:"canvas_id" format:"uuid"`
	Name   string `json:"name" minLength:"1" maxLength:"255" doc:"Of the definition and of its events, whose module is CRON."`
}

// NewCron is a cron definition to be set.
type NewCron struct {
	CronName
	Schedule string `json:"schedule" maxLength:"255" doc:"Such as every day, or five fields: minute, hour, day of month, month, day of week."`
	TimeZone string `json:"time_zone,omitempty" default:"UTC" maxLength:"255" doc:"IANA zone whose clock counts."`
	Missed   string `json:"missed,omitempty" enum:"latest,all,none" default:"latest" doc:"Which of the slots that passed while no checker ran are emitted late."`

	SkipIfPaused  bool `json:"skip_if_paused,omitempty" doc:"Skip slots that come while the handler is paused or blocked."`
	SkipIfRunning bool `json:"skip_if_running,omitempty" doc:"Skip slots that come while an earlier event of the definition waits or runs."`
}

func (a *api) addCrons() {
	get(a, "/crons", "list-crons", "The cron definitions of a canvas", func(ctx context.Context, in *CanvasInput) (*answer[view.Page[view.Cron]], error) {
		canvas, err := canvasFor(ctx, access.Read, in.Canvas)
		if err != nil {
			return nil, err
		}
		found, err := a.definitions().List(ctx, &canvas)
		if err != nil {
			return nil, a.failed("crons", err)
		}
		records, err := a.definitions().Records(ctx, view.CronIDs(found), 1)
		if err != nil {
			return nil, a.failed("crons", err)
		}
		return list(view.CronsOf(found, records)), nil
	})
	get(a, "/crons/next", "next-slots", "The next slots of a cron definition", func(ctx context.Context, in *struct {
		CronInput
		Limit int `query:"limit" minimum:"1" maximum:"1000" default:"5"`
	}) (*answer[view.Page[view.Slot]], error) {
		canvas, err := canvasFor(ctx, access.Read, in.Canvas)
		if err != nil {
			return nil, err
		}
		_, found, err := a.definitions().Preview(ctx, canvas, in.Name, time.Time{}, in.Limit)
		if err != nil {
			return nil, a.cronFailed(err)
		}
		return list(view.ListOf(found, view.SlotOf)), nil
	})
	change(a, access.Administer, "PUT /crons", "set-cron", "Add a cron definition, enabled, or replace that of its name", a.setCron)
	change(a, access.Administer, "DELETE /crons", "remove-cron", "Remove a cron definition", func(ctx context.Context, in *CronInput) (*answer[view.CronChange], error) {
		return a.changeCron(ctx, "remove_cron", in.Canvas, in.Name, false, func(ctx context.Context, d *cronchecker.Definitions, canvas eventqueue.CanvasID) error {
			return d.Remove(ctx, canvas, in.Name)
		})
	})
	change(a, access.Administer, "POST /crons/run", "run-cron", "Emit the event of a cron definition now, beside its slots", a.runCron, creates, repeats)
	for _, words := range []struct {
		verb    string
		enabled bool
	}{{"enable", true}, {"disable", false}} {
		change(a, access.Administer, "POST /crons/"+words.verb, words.verb+"-cron", "Switch a cron definition on or off, from now on", func(ctx context.Context, in *struct{ Body CronName }) (*answer[view.CronChange], error) {
			return a.changeCron(ctx, words.verb+"_cron", in.Body.Canvas, in.Body.Name, words.enabled, func(ctx context.Context, d *cronchecker.Definitions, canvas eventqueue.CanvasID) error {
				return d.SetEnabled(ctx, canvas, in.Body.Name, words.enabled)
			})
		})
	}
}

func (a *api) definitions() *cronchecker.Definitions {
	return cronchecker.NewDefinitionsIn(a.Store.Schema(), a.Store.Pool())
}

func (a *api) runCron(ctx context.Context, in *struct {
	Key  string `header:"Idempotency-Key" maxLength:"255" doc:"The unique key of the event, for a day after its end: repeating the request meanwhile emits nothing."`
	Body CronName
}) (*emission, error) {
	canvas, err := canvasFor(ctx, access.Administer, in.Body.Canvas)
	if err != nil {
		return nil, err
	}
	if in.Key != "" {
		if err := checkKey(in.Key); err != nil {
			return nil, err
		}
	}
	made, err := cronchecker.RunNow(ctx, a.Queue, a.Store.Schema(), callerOf(ctx).actor(), canvas, in.Body.Name, in.Key)
	if err != nil {
		return nil, a.cronFailed(err)
	}
	answer := emissionAnswer([]eventqueue.Emitted{made})
	if made.New {
		return answer, nil
	}
	return answer, a.refuseOther(ctx, made.ID, func(was eventqueue.Event) bool {
		return was.Module == cronchecker.Module && was.Name == in.Body.Name && was.Modifier == cronchecker.Modifier
	})
}

// cronFailed is the answer for an error of a cron definition.
func (a *api) cronFailed(err error) error {
	if errors.Is(err, cronchecker.ErrNotFound) {
		return huma.Error404NotFound("there is no such cron definition")
	}
	return a.failed("cron", err)
}

func (a *api) setCron(ctx context.Context, in *struct{ Body NewCron }) (*answer[view.Cron], error) {
	canvas, err := canvasFor(ctx, access.Administer, in.Body.Canvas)
	if err != nil {
		return nil, err
	}
	definition := cronchecker.NewDefinition{Canvas: canvas, Name: in.Body.Name, Schedule: in.Body.Schedule, TimeZone: in.Body.TimeZone, Missed: cronchecker.Missed(in.Body.Missed),
		Skips: cronchecker.Skips{SkipIfPaused: in.Body.SkipIfPaused, SkipIfRunning: in.Body.SkipIfRunning}}
	if err := definition.Validate(); err != nil {
		return nil, huma.Error422UnprocessableEntity(err.Error())
	}
	var set cronchecker.Definition
	err = a.Store.As(callerOf(ctx).actor()).ChangeCron(ctx, "set_cron", canvas, in.Body.Name, func(tx eventqueue.DB) (err error) {
		set, err = cronchecker.NewDefinitionsIn(a.Store.Schema(), tx).Add(ctx, definition, true)
		return err
	})
	if err != nil {
		return nil, a.cronFailed(err)
	}
	return &answer[view.Cron]{view.CronOf(set, nil)}, nil
}

func (a *api) changeCron(ctx context.Context, action, canvasText, name string, enabled bool,
	change func(ctx context.Context, d *cronchecker.Definitions, canvas eventqueue.CanvasID) error) (*answer[view.CronChange], error) {
	canvas, err := canvasFor(ctx, access.Administer, canvasText)
	if err != nil {
		return nil, err
	}
	err = a.Store.As(callerOf(ctx).actor()).ChangeCron(ctx, action, canvas, name, func(tx eventqueue.DB) error {
		return change(ctx, cronchecker.NewDefinitionsIn(a.Store.Schema(), tx), canvas)
	})
	if err != nil {
		return nil, a.cronFailed(err)
	}
	return &answer[view.CronChange]{view.CronChange{Canvas: canvas, Name: name, Enabled: enabled, Removed: action == "remove_cron"}}, nil
}
