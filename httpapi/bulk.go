package httpapi

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/view"
)

// filterFor is a filter, if the caller has a verb on its canvas, or everywhere if it has none.
func filterFor(ctx context.Context, verb access.Verb, f view.EventFilter) (operate.EventFilter, error) {
	switch {
	case f.Canvas != nil:
		return f.Filter(), may(ctx, verb, *f.Canvas)
	case !callerOf(ctx).MayEverywhere(verb):
		return f.Filter(), huma.Error403Forbidden("your token lacks the verb " + string(verb) + " on all canvases: name one in filter.canvas_id")
	default:
		return f.Filter(), nil
	}
}

type bulkBody struct {
	Verb   string           `json:"verb" enum:"cancel,delete,run,edit,retry,delete_ended,replay" doc:"replay emits events that have ended again, as new events, and needs the verb emit, too."`
	Filter view.EventFilter `json:"filter"`
	Reason string           `json:"reason,omitempty" maxLength:"1024" doc:"Of cancel."`
	Edit   *editBody        `json:"edit,omitempty" doc:"Of edit, and of retry: what changes of each event."`
	Rate   float64          `json:"rate,omitempty" minimum:"0" maximum:"10000" doc:"Of replay: how many events become due in a second, at most; absent: 100."`
}

// OperationInput names a bulk operation in the path.
type OperationInput struct {
	ID string `path:"id" format:"uuid" doc:"Id of the operation."`
}

func (a *api) addBulk() {
	change(a, access.Operate, "POST /bulk", "count-bulk", "Count the events of a change of many, which begins when it is confirmed", a.countBulk, creates, takesValues)
	change(a, access.Operate, "POST /bulk/{id}/confirm", "confirm-bulk", "Start an operation that was counted", func(ctx context.Context, in *OperationInput) (*answer[view.Operation], error) {
		return a.changeBulk(ctx, in, func(id uuid.UUID) (operate.Operation, error) {
			return a.Bulk.Confirm(ctx, callerOf(ctx).actor(), callerOf(ctx).Key, id)
		})
	})
	change(a, access.Operate, "POST /bulk/{id}/stop", "stop-bulk", "Stop an operation; what it has done stays done", func(ctx context.Context, in *OperationInput) (*answer[view.Operation], error) {
		return a.changeBulk(ctx, in, func(id uuid.UUID) (operate.Operation, error) { return a.Bulk.Stop(ctx, callerOf(ctx).actor(), id) })
	})
	change(a, access.Operate, "POST /bulk/{id}/resume", "resume-bulk", "Have an operation go on that was stopped, or has failed", func(ctx context.Context, in *OperationInput) (*answer[view.Operation], error) {
		op, err := a.operation(ctx, in.ID)
		if err == nil && op.Change.Verb == operate.VerbReplay && !mayOn(ctx, access.Emit, op.Change.Filter.Canvas) {
			err = errForbidden(access.Emit)
		}
		if err != nil {
			return nil, err
		}
		return a.changeBulk(ctx, in, func(id uuid.UUID) (operate.Operation, error) { return a.Bulk.Resume(ctx, callerOf(ctx).actor(), id) })
	})
	get(a, "/bulk/{id}", "get-bulk", "An operation and its progress", func(ctx context.Context, in *OperationInput) (*answer[view.Operation], error) {
		op, err := a.operation(ctx, in.ID)
		return &answer[view.Operation]{view.OperationOf(op)}, err
	})
	get(a, "/bulk", "list-bulk", "The newest operations", func(ctx context.Context, in *struct {
		Limit int `query:"limit" minimum:"1" maximum:"500" default:"100"`
	}) (*answer[view.Page[view.Operation]], error) {
		found, err := a.Bulk.List(ctx, callerOf(ctx).Canvases(access.Read), in.Limit)
		if err != nil {
			return nil, a.failed("bulk", err)
		}
		return list(view.ListOf(found, view.OperationOf)), nil
	})
}

func (a *api) countBulk(ctx context.Context, in *struct{ Body bulkBody }) (*answer[view.Operation], error) {
	filter, err := filterFor(ctx, access.Operate, in.Body.Filter)
	if err != nil {
		return nil, err
	}
	more := []access.Verb{access.Read} // a count tells what there is
	if in.Body.Verb == string(operate.VerbReplay) {
		more = append(more, access.Emit)
	}
	for _, verb := range more {
		if _, err := filterFor(ctx, verb, in.Body.Filter); err != nil {
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
	return &answer[view.Operation]{view.OperationOf(op)}, nil
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
func (a *api) changeBulk(ctx context.Context, in *OperationInput, change func(id uuid.UUID) (operate.Operation, error)) (*answer[view.Operation], error) {
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
	return &answer[view.Operation]{view.OperationOf(op)}, nil
}

// editBody is an edit of events.
type editBody struct {
	Value        json.RawMessage   `json:"value,omitempty"`
	Attributes   map[string]string `json:"attributes,omitempty" maxProperties:"16"`
	DelaySeconds *view.Seconds     `json:"delay_seconds,omitempty" minimum:"0" maximum:"4000000000"`
}

func (e editBody) edit() operate.Edit {
	edit := operate.Edit{Value: e.Value, Attributes: e.Attributes}
	if e.DelaySeconds != nil {
		edit.Delay = new(e.DelaySeconds.Duration())
	}
	return edit
}
