package httpapi

import (
	"context"
	"errors"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/view"
)

// answer is the body of an answer.
type answer[T any] struct{ Body T }

// IDInput names an event in the path. (Fields that operations share are found only in exported types.)
type IDInput struct {
	ID int64 `path:"id" minimum:"1" doc:"Id of the event."`
}

// PageInput is common to lists by canvas and handler.
type PageInput struct {
	Canvas     string   `query:"canvas_id" required:"true" format:"uuid" doc:"Canvas."`
	Module     string   `query:"module" minLength:"1" maxLength:"255"`
	Name       string   `query:"name" minLength:"1" maxLength:"255"`
	Attributes []string `query:"attribute,explode" maxItems:"16" doc:"Only events that have it: key=value. May be repeated."`
	After      int64    `query:"after" minimum:"0" doc:"Only what comes after this id: next of the last answer."`
	Limit      int      `query:"limit" minimum:"1" maximum:"500" default:"100"`
}

// filter returns the filter of a page, if the caller may read its canvas.
func (p *PageInput) filter(ctx context.Context) (f inspect.Filter, err error) {
	canvas, err := canvasFor(ctx, access.Read, p.Canvas)
	if err != nil {
		return f, err
	}
	attributes, err := attributesOf(p.Attributes)
	return inspect.Filter{Canvas: &canvas, Module: p.Module, Name: p.Name, Attributes: attributes}, err
}

// canvasFor returns a canvas on which the caller has a verb. It does not reveal which canvases exist.
func canvasFor(ctx context.Context, verb access.Verb, text string) (eventqueue.CanvasID, error) {
	canvas, err := eventqueue.ParseCanvasID(text)
	if err != nil {
		return canvas, huma.Error422UnprocessableEntity(err.Error())
	}
	return canvas, may(ctx, verb, canvas)
}

// may refuses a canvas on which the caller has not a verb.
func may(ctx context.Context, verb access.Verb, canvas eventqueue.CanvasID) error {
	if canvas == (eventqueue.CanvasID{}) {
		return huma.Error422UnprocessableEntity("canvas_id: the zero uuid names no canvas")
	}
	if !callerOf(ctx).May(verb, canvas) {
		return errForbidden(verb)
	}
	return nil
}

// list is the answer of an operation that lists.
func list[T any](p view.Page[T]) *answer[view.Page[T]] { return &answer[view.Page[T]]{p} }

// shown returns an event that the caller may read. Without the right, the value is left out.
func (a *api) shown(ctx context.Context, id int64) (inspect.Shown, view.Event, error) {
	shown, err := a.reader.Show(ctx, eventqueue.EventID(id))
	if err != nil {
		return shown, view.Event{}, a.failed("show", err)
	}
	e := view.FoundEvent(shown.Queued, shown.Logged)
	if e == nil || !callerOf(ctx).May(access.Read, e.Canvas) {
		return inspect.Shown{}, view.Event{}, errNoEvent()
	}
	content := operate.Content{Value: e.Value, Attributes: e.Attributes}
	switch {
	case !callerOf(ctx).May(access.ReadValues, e.Canvas):
		e.Value, e.Result, content.Value = nil, nil, nil
		e.RunLog = ""
	case e.Encrypted() != "" && shown.Queued != nil:
		content.Value = shown.Queued.Value
	case e.Encrypted() != "":
		content.Value = shown.Logged.Value
	}
	if shown.Queued != nil || e.CanRetry() {
		e.Version = content.Version()
	}
	return shown, *e, nil
}

func (a *api) addReads() {
	get(a, "/events/{id}", "get-event", "An event, in the queue or in the history", func(ctx context.Context, in *IDInput) (*answer[view.Event], error) {
		_, e, err := a.shown(ctx, in.ID)
		return &answer[view.Event]{e}, err
	})
	get(a, "/events/{id}/attempts", "list-attempts", "The newest failed attempts of an event, and the run that completed it", func(ctx context.Context, in *IDInput) (*answer[view.Page[view.Attempt]], error) {
		shown, e, err := a.shown(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		attempts := view.AttemptsOf(shown)
		if !callerOf(ctx).May(access.ReadValues, e.Canvas) {
			attempts.Items = view.WithoutLogs(attempts.Items)
		}
		return list(attempts), nil
	})
	get(a, "/events/{id}/explain", "explain-event", "Why an event does not run now", a.explain)
	get(a, "/events", "list-events", "Events that have not ended, by id", func(ctx context.Context, in *struct {
		PageInput
		State    queuedState `query:"state"`
		Priority priorityOf  `query:"priority" doc:"Only events of this priority."`
	}) (*answer[view.Page[view.Event]], error) {
		filter, err := in.filter(ctx)
		if err != nil {
			return nil, err
		}
		filter.Priority = string(in.Priority)
		found, next, err := a.reader.List(ctx, filter, inspect.State(in.State), false, eventqueue.EventID(in.After), in.Limit)
		if err != nil {
			return nil, a.failed("list", err)
		}
		return list(view.PageOf(found, next, view.EventOf)), nil
	})
	get(a, "/history", "list-history", "Events that have ended, the newest first: failed and cancelled ones by their end, others by id", a.history)
	get(a, "/history/groups", "list-failure-groups", "Failed events by handler and error, the largest groups first", func(ctx context.Context, in *struct {
		HistoryFilter
		Limit int `query:"limit" minimum:"1" maximum:"500" default:"100"`
	}) (*answer[view.FailureGroups], error) {
		filter, err := in.logFilter(ctx)
		if err != nil {
			return nil, err
		}
		found, err := a.reader.FailureGroups(ctx, filter, in.Limit)
		if err != nil {
			return nil, a.failed("groups", err)
		}
		return &answer[view.FailureGroups]{view.FailureGroupsOf(found)}, nil
	})
	get(a, "/audit", "list-audit", "Who has changed what, the newest first", a.listAudit)
}

// HistoryFilter selects events that have ended.
type HistoryFilter struct {
	Canvas     string       `query:"canvas_id" required:"true" format:"uuid" doc:"Canvas."`
	Module     string       `query:"module" minLength:"1" maxLength:"255"`
	Name       string       `query:"name" minLength:"1" maxLength:"255"`
	Attributes []string     `query:"attribute,explode" maxItems:"16" doc:"Only events that have it: key=value. May be repeated."`
	Error      string       `query:"error" minLength:"1" maxLength:"8192" doc:"Only failed events with this part in their errors."`
	ErrorGroup string       `query:"error_group" minLength:"1" maxLength:"240" doc:"Only failed events of this group, as GET /v1/history/groups has it."`
	OlderThan  view.Seconds `query:"older_than_seconds" minimum:"0" maximum:"4000000000" doc:"Only events that ended longer ago."`
	NewerThan  view.Seconds `query:"newer_than_seconds" exclusiveMinimum:"0" maximum:"4000000000" doc:"Only events that ended less long ago."`
}

// logFilter is the filter, if the caller may read its canvas.
func (h *HistoryFilter) logFilter(ctx context.Context) (inspect.LogFilter, error) {
	page := PageInput{Canvas: h.Canvas, Module: h.Module, Name: h.Name, Attributes: h.Attributes}
	filter, err := page.filter(ctx)
	return inspect.LogFilter{Filter: filter, Error: h.Error, ErrorGroup: h.ErrorGroup, OlderThan: h.OlderThan.Duration(), NewerThan: h.NewerThan.Duration()}, err
}

func (a *api) history(ctx context.Context, in *struct {
	HistoryFilter
	State string `query:"state" enum:"completed,failed,cancelled"`
	After string `query:"after" minLength:"1" maxLength:"64" doc:"next of the page before."`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"100"`
}) (*answer[view.HistoryPage], error) {
	filter, err := in.logFilter(ctx)
	if err != nil {
		return nil, err
	}
	filter.Status = inspect.LogStatus(strings.ToUpper(in.State))
	after, err := inspect.ParseLogPlace(in.After)
	if err != nil {
		return nil, errNoPlace()
	}
	found, next, err := a.reader.Log(ctx, filter, true, after, in.Limit)
	switch {
	case errors.Is(err, inspect.ErrNoLogPlace):
		return nil, errNoPlace()
	case err != nil:
		return nil, a.failed("history", err)
	}
	return &answer[view.HistoryPage]{view.HistoryPageOf(found, next)}, nil
}

// errNoPlace is the answer for an after that this list has not given.
func errNoPlace() error {
	return huma.Error422UnprocessableEntity("after: it is next of the page before, and of the same request")
}

func (a *api) explain(ctx context.Context, in *IDInput) (*answer[view.Explanation], error) {
	if _, _, err := a.shown(ctx, in.ID); err != nil {
		return nil, err
	}
	explanation, err := a.reader.Explain(ctx, eventqueue.EventID(in.ID))
	if err != nil {
		return nil, a.failed("explain", err)
	}
	return &answer[view.Explanation]{view.ExplanationOf(explanation)}, nil
}

func (a *api) listAudit(ctx context.Context, in *struct {
	Event  int64  `query:"event" minimum:"1" doc:"Only the changes of this event."`
	Actor  string `query:"actor" minLength:"1" maxLength:"255"`
	Key    string `query:"actor_key" minLength:"1" maxLength:"255"`
	Before int64  `query:"before" minimum:"1" doc:"Only entries with lower ids: next of the last answer."`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"100"`
}) (*answer[view.Page[view.AuditRow]], error) {
	who := callerOf(ctx)
	filter := audit.Filter{Canvases: who.Canvases(access.Read), Actor: in.Actor, ActorKey: in.Key, Event: eventqueue.EventID(in.Event)}
	found, err := a.audit.List(ctx, filter, in.Before, in.Limit)
	if err != nil {
		return nil, a.failed("audit", err)
	}
	rowOf := func(e audit.Entry) view.AuditRow {
		return view.AuditRowOf(e, mayOn(ctx, access.ReadValues, e.Canvas))
	}
	return list(view.FullPageOf(found, in.Limit, rowOf, func(r view.AuditRow) int64 { return r.ID })), nil
}
