package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// bulkFilter selects events by all of its fields that are set.
type bulkFilter struct {
	Canvas           string            `json:"canvas_id,omitempty" format:"uuid" doc:"Absent: all canvases, for tokens that are for all."`
	Module           string            `json:"module,omitempty" maxLength:"255"`
	Name             string            `json:"name,omitempty" maxLength:"255"`
	Modifier         string            `json:"modifier,omitempty" maxLength:"255"`
	State            string            `json:"state,omitempty" enum:"waiting,delayed,running,paused,blocked,expired,behind,failed,cancelled,completed" doc:"Of retry: failed, which is the default, or cancelled; of replay: completed, which is the default, failed or cancelled; of the others, one of those before."`
	Attributes       map[string]string `json:"attributes,omitempty" maxProperties:"16" doc:"Pairs that the events have to have."`
	Error            string            `json:"error,omitempty" maxLength:"8192" doc:"A part of the error of the last failed attempt."`
	OlderThanSeconds float64           `json:"older_than_seconds,omitempty" minimum:"0" maximum:"4000000000" doc:"Emitted longer ago; of retry and replay, ended longer ago."`
	NewerThanSeconds float64           `json:"newer_than_seconds,omitempty" minimum:"0" maximum:"4000000000"`
}

// filter is the filter, if the caller has a verb on its canvas, or everywhere if it has none.
func (f bulkFilter) filter(ctx context.Context, verb access.Verb) (operate.EventFilter, error) {
	filter := operate.EventFilter{Module: f.Module, Name: f.Name, Modifier: f.Modifier, State: operate.EventState(f.State), Attributes: f.Attributes, Error: f.Error,
		OlderThan: seconds(f.OlderThanSeconds), NewerThan: seconds(f.NewerThanSeconds)}
	if f.Canvas == "" {
		if !callerOf(ctx).MayEverywhere(verb) {
			return filter, huma.Error403Forbidden("your token lacks the verb " + string(verb) + " on all canvases: name one in filter.canvas_id")
		}
		return filter, nil
	}
	canvas, err := canvasFor(ctx, verb, f.Canvas)
	filter.Canvas = &canvas
	return filter, err
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func bulkFilterOf(f operate.EventFilter) bulkFilter {
	b := bulkFilter{Module: f.Module, Name: f.Name, Modifier: f.Modifier, State: string(f.State), Attributes: f.Attributes, Error: f.Error,
		OlderThanSeconds: f.OlderThan.Seconds(), NewerThanSeconds: f.NewerThan.Seconds()}
	if f.Canvas != nil {
		b.Canvas = f.Canvas.String()
	}
	return b
}

type bulkBody struct {
	Verb   string     `json:"verb" enum:"cancel,delete,run,edit,retry,replay" doc:"replay emits events that have ended again, as new events, and needs the verb emit, too."`
	Filter bulkFilter `json:"filter"`
	Reason string     `json:"reason,omitempty" maxLength:"1024" doc:"Of cancel."`
	Edit   *editBody  `json:"edit,omitempty" doc:"Of edit, and of retry: what changes of each event."`
	Rate   float64    `json:"rate,omitempty" minimum:"0" maximum:"10000" doc:"Of replay: how many events become due in a second, at most; absent: 100."`
}

type bulkOperation struct {
	ID        string     `json:"id" format:"uuid" doc:"Confirms the operation, for whoever has counted it, until expires_at."`
	Verb      string     `json:"verb" enum:"cancel,delete,run,edit,retry,replay"`
	Filter    bulkFilter `json:"filter"`
	Reason    string     `json:"reason,omitempty"`
	Rate      float64    `json:"rate,omitempty"`
	Actor     string     `json:"actor"`
	State     string     `json:"state" enum:"counted,running,done,stopped,failed"`
	Counted   int        `json:"counted" doc:"How many events the filter selected."`
	Changed   int        `json:"changed"`
	Running   int        `json:"running" doc:"Refused: a worker runs them."`
	Busy      int        `json:"busy" doc:"Refused: somebody else was writing them."`
	Refused   int        `json:"refused" doc:"Refused by the database."`
	CountedAt time.Time  `json:"counted_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty" doc:"Until when it can be confirmed."`
	StartedAt *time.Time `json:"started_at,omitempty"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
}

func bulkOperationOf(o operate.Operation) bulkOperation {
	b := bulkOperation{ID: o.ID.String(), Verb: string(o.Change.Verb), Filter: bulkFilterOf(o.Change.Filter), Reason: o.Change.Reason, Rate: o.Change.Rate, Actor: o.By.Name, State: string(o.State),
		Counted: o.Counted, Changed: o.Changed, Running: o.Running, Busy: o.Busy, Refused: o.Refused, CountedAt: o.CountedAt.UTC(),
		StartedAt: optionalTime(o.StartedAt), EndedAt: optionalTime(o.EndedAt)}
	if o.State == operate.OperationCounted {
		b.ExpiresAt = optionalTime(o.ExpiresAt)
	}
	return b
}

// optionalTime is a time in an answer; nil for the zero time.
func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// OperationInput names a bulk operation in the path.
type OperationInput struct {
	ID string `path:"id" format:"uuid" doc:"Id of the operation."`
}

func (a *api) addBulk() {
	change(a, access.Operate, "POST /bulk", "count-bulk", "Count the events of a change of many, which begins when it is confirmed", a.countBulk, creates, takesValues)
	change(a, access.Operate, "POST /bulk/{id}/confirm", "confirm-bulk", "Start an operation that was counted", func(ctx context.Context, in *OperationInput) (*answer[bulkOperation], error) {
		return a.changeBulk(ctx, in, func(id uuid.UUID) (operate.Operation, error) {
			return a.Bulk.Confirm(ctx, callerOf(ctx).actor(), callerOf(ctx).Key, id)
		})
	})
	change(a, access.Operate, "POST /bulk/{id}/stop", "stop-bulk", "Stop an operation; what it has done stays done", func(ctx context.Context, in *OperationInput) (*answer[bulkOperation], error) {
		return a.changeBulk(ctx, in, func(id uuid.UUID) (operate.Operation, error) { return a.Bulk.Stop(ctx, callerOf(ctx).actor(), id) })
	})
	change(a, access.Operate, "POST /bulk/{id}/resume", "resume-bulk", "Have an operation go on that was stopped, or has failed", func(ctx context.Context, in *OperationInput) (*answer[bulkOperation], error) {
		op, err := a.operation(ctx, in.ID)
		if err == nil && op.Change.Verb == operate.VerbReplay && !mayOn(ctx, access.Emit, op.Change.Filter.Canvas) {
			err = errForbidden(access.Emit)
		}
		if err != nil {
			return nil, err
		}
		return a.changeBulk(ctx, in, func(id uuid.UUID) (operate.Operation, error) { return a.Bulk.Resume(ctx, callerOf(ctx).actor(), id) })
	})
	get(a, "/bulk/{id}", "get-bulk", "An operation and its progress", func(ctx context.Context, in *OperationInput) (*answer[bulkOperation], error) {
		op, err := a.operation(ctx, in.ID)
		return &answer[bulkOperation]{bulkOperationOf(op)}, err
	})
	get(a, "/bulk", "list-bulk", "The newest operations", func(ctx context.Context, in *struct {
		Limit int `query:"limit" minimum:"1" maximum:"500" default:"100"`
	}) (*answer[page[bulkOperation]], error) {
		found, err := a.Bulk.List(ctx, callerOf(ctx).Canvases(access.Read), in.Limit)
		if err != nil {
			return nil, a.failed("bulk", err)
		}
		p := page[bulkOperation]{Items: make([]bulkOperation, 0, len(found))}
		for _, op := range found {
			p.Items = append(p.Items, bulkOperationOf(op))
		}
		return &answer[page[bulkOperation]]{p}, nil
	})
}

func (a *api) countBulk(ctx context.Context, in *struct{ Body bulkBody }) (*answer[bulkOperation], error) {
	filter, err := in.Body.Filter.filter(ctx, access.Operate)
	if err != nil {
		return nil, err
	}
	more := []access.Verb{access.Read} // a count tells what there is
	if in.Body.Verb == string(operate.VerbReplay) {
		more = append(more, access.Emit)
	}
	for _, verb := range more {
		if _, err := in.Body.Filter.filter(ctx, verb); err != nil {
			return nil, err
		}
	}
	change := operate.Change{Verb: operate.Verb(in.Body.Verb), Filter: filter, Reason: in.Body.Reason, Rate: in.Body.Rate}
	if in.Body.Edit != nil {
		change.Edit = in.Body.Edit.edit()
	}
	op, err := a.Bulk.Count(ctx, callerOf(ctx).actor(), callerOf(ctx).Key, change)
	var invalid *operate.InvalidError
	switch {
	case errors.As(err, &invalid):
		return nil, huma.Error422UnprocessableEntity(invalid.Error())
	case err != nil:
		return nil, a.failed("bulk", err)
	}
	return &answer[bulkOperation]{bulkOperationOf(op)}, nil
}

// errNoOperation is the answer for an operation that does not exist, or that the caller may not see.
func errNoOperation() error { return huma.Error404NotFound("there is no such operation") }

// operation returns an operation whose events the caller may read.
func (a *api) operation(ctx context.Context, text string) (op operate.Operation, err error) {
	id, err := uuid.Parse(text)
	if err != nil {
		return op, huma.Error422UnprocessableEntity("id: is not a uuid")
	}
	op, err = a.Bulk.Get(ctx, id)
	switch {
	case errors.Is(err, operate.ErrUnknownOperation):
		return op, errNoOperation()
	case err != nil:
		return op, a.failed("bulk", err)
	case !mayOn(ctx, access.Read, op.Change.Filter.Canvas):
		return operate.Operation{}, errNoOperation()
	}
	return op, nil
}

// mayOn reports whether the caller has a verb on a canvas; nil is all of them.
func mayOn(ctx context.Context, verb access.Verb, canvas *eventqueue.CanvasID) bool {
	if canvas == nil {
		return callerOf(ctx).MayEverywhere(verb)
	}
	return callerOf(ctx).May(verb, *canvas)
}

// changeBulk changes an operation that the caller may see and operate.
func (a *api) changeBulk(ctx context.Context, in *OperationInput, change func(id uuid.UUID) (operate.Operation, error)) (*answer[bulkOperation], error) {
	op, err := a.operation(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if !mayOn(ctx, access.Operate, op.Change.Filter.Canvas) {
		return nil, errForbidden(access.Operate)
	}
	op, err = change(op.ID)
	switch {
	case errors.Is(err, operate.ErrUnknownOperation):
		return nil, huma.Error403Forbidden("only who has counted the operation can confirm it: count again")
	case errors.Is(err, operate.ErrCountExpired):
		return nil, huma.Error409Conflict(operate.ErrCountExpired.Error())
	case err != nil:
		return nil, a.failed("bulk", err)
	}
	return &answer[bulkOperation]{bulkOperationOf(op)}, nil
}

// editBody is what changes of events.
type editBody struct {
	Value        json.RawMessage   `json:"value,omitempty"`
	Attributes   map[string]string `json:"attributes,omitempty" maxProperties:"16"`
	DelaySeconds *float64          `json:"delay_seconds,omitempty" minimum:"0" maximum:"4000000000"`
}

func (e editBody) edit() operate.Edit {
	edit := operate.Edit{Value: e.Value, Attributes: e.Attributes}
	if e.DelaySeconds != nil {
		edit.Delay = new(seconds(*e.DelaySeconds))
	}
	return edit
}
