package httpapi

import (
	"context"
	"encoding/json"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
)

// answer is the body of an answer.
type answer[T any] struct{ Body T }

// IDInput names an event in the path. (Fields that operations share are found only in exported types.)
type IDInput struct {
	ID int64 `path:"id" minimum:"1" doc:"Id of the event."`
}

// PageInput is what lists by canvas and handler have in common.
type PageInput struct {
	Canvas     string   `query:"canvas_id" required:"true" format:"uuid" doc:"Canvas."`
	Module     string   `query:"module" maxLength:"255"`
	Name       string   `query:"name" maxLength:"255"`
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

// canvasFor returns a canvas on which the caller has a verb. Which canvases there are, nobody learns.
func canvasFor(ctx context.Context, verb access.Verb, text string) (eventqueue.CanvasID, error) {
	canvas, err := eventqueue.ParseCanvasID(text)
	if err != nil {
		return canvas, huma.Error422UnprocessableEntity(err.Error())
	}
	if canvas == (eventqueue.CanvasID{}) {
		return canvas, huma.Error422UnprocessableEntity("canvas_id: the zero uuid names no canvas")
	}
	if !callerOf(ctx).May(verb, canvas) {
		return canvas, errForbidden(verb)
	}
	return canvas, nil
}

// page is a part of a list.
type page[T any] struct {
	Items []T   `json:"items" nullable:"false"`
	Next  int64 `json:"next,omitempty" doc:"Of further items: after of the next request. Absent at the end."`
}

// event is an event in the queue or in the history.
type event struct {
	ID          int64             `json:"id"`
	Canvas      string            `json:"canvas_id" format:"uuid"`
	Module      string            `json:"module"`
	Name        string            `json:"name"`
	Modifier    string            `json:"modifier"`
	State       string            `json:"state" doc:"waiting, delayed, running, paused, blocked, expired or behind; completed, failed or cancelled of one that has ended."`
	Value       json.RawMessage   `json:"value,omitempty" doc:"Only of one event, for readers of values."`
	ValueBytes  int               `json:"value_bytes"`
	Attributes  map[string]string `json:"attributes,omitempty"`
	ParentID    int64             `json:"parent_id,omitempty"`
	Original    int64             `json:"replayed_from,omitempty" doc:"The event that it repeats, if it was emitted again from the history."`
	OrderingKey string            `json:"ordering_key,omitempty"`
	Retries     int               `json:"retries"`
	Attempts    int32             `json:"attempts"`
	DelayUntil  *time.Time        `json:"delay_until,omitempty"`
	EnqueuedAt  time.Time         `json:"enqueued_at"`
	EndedAt     *time.Time        `json:"ended_at,omitempty"`
	LastError   string            `json:"last_error,omitempty"`
	Version     string            `json:"version,omitempty" doc:"Only of one event that has not completed: another one when its value or its attributes have changed. Without the right to read values, of its attributes."`
}

func eventOf(e eventqueue.Event) event {
	return event{ID: int64(e.ID), Canvas: e.Canvas.String(), Module: e.Module, Name: e.Name, Modifier: e.Modifier, Value: e.Value, Attributes: e.Attributes,
		ParentID: int64(e.ParentID), Original: int64(operate.OriginalOf(e.Attributes)), Retries: e.Retries, EnqueuedAt: e.EnqueuedAt.UTC()}
}

func queuedOf(q inspect.QueuedEvent) event {
	e := eventOf(q.Event)
	e.State, e.ValueBytes, e.OrderingKey, e.Attempts, e.LastError = string(q.State), q.ValueBytes, q.OrderingKey, q.Attempts, q.LastError
	e.DelayUntil = new(q.DelayUntil.UTC())
	return e
}

func loggedOf(l inspect.LogEntry) event {
	e := eventOf(l.Event)
	e.State, e.ValueBytes, e.Attempts, e.LastError = stateOf(l.Status), l.ValueBytes, l.Attempts, l.LastError
	e.EndedAt = new(l.EndedAt.UTC())
	return e
}

func stateOf(status inspect.LogStatus) string {
	switch status {
	case inspect.LogCompleted:
		return "completed"
	case inspect.LogFailed:
		return "failed"
	default:
		return "cancelled"
	}
}

func pageOf[F any](found []F, next eventqueue.EventID, itemOf func(F) event) *answer[page[event]] {
	p := page[event]{Items: make([]event, 0, len(found)), Next: int64(next)}
	for _, f := range found {
		p.Items = append(p.Items, itemOf(f))
	}
	return &answer[page[event]]{p}
}

// shown returns an event that the caller may read. Without the right, the value is left out.
func (a *api) shown(ctx context.Context, id int64) (inspect.Shown, event, error) {
	shown, err := a.reader.Show(ctx, eventqueue.EventID(id))
	if err != nil {
		return shown, event{}, a.failed("show", err)
	}
	var e event
	var canvas eventqueue.CanvasID
	switch {
	case shown.Queued != nil:
		e, canvas = queuedOf(*shown.Queued), shown.Queued.Canvas
	case shown.Logged != nil:
		e, canvas = loggedOf(*shown.Logged), shown.Logged.Canvas
	default:
		return shown, e, errNoEvent()
	}
	if !callerOf(ctx).May(access.Read, canvas) {
		return inspect.Shown{}, event{}, errNoEvent()
	}
	if !callerOf(ctx).May(access.ReadValues, canvas) {
		e.Value = nil
	}
	if shown.Queued != nil || shown.Logged.Status != inspect.LogCompleted {
		e.Version = operate.Content{Value: e.Value, Attributes: e.Attributes}.Version()
	}
	return shown, e, nil
}

type attempt struct {
	Attempt    int32     `json:"attempt"`
	StartedAt  time.Time `json:"started_at"`
	DurationMS int64     `json:"duration_ms"`
	Worker     int64     `json:"worker,omitempty"`
	Error      string    `json:"error"`
}

type reason struct {
	Label  string `json:"label" doc:"The arrow of the state machine, or Cancelled."`
	Why    string `json:"why"`
	Remedy string `json:"remedy,omitempty"`
}

type auditEntry struct {
	ID     int64           `json:"id"`
	At     time.Time       `json:"at"`
	Actor  string          `json:"actor"`
	Key    string          `json:"actor_key,omitempty" doc:"Tells apart actors of one name: token: and the id of the token, or oidc: with the issuer and the subject."`
	Source string          `json:"source"`
	Via    string          `json:"via"`
	Action string          `json:"action"`
	Canvas string          `json:"canvas_id,omitempty"`
	Target json.RawMessage `json:"target"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

func (a *api) addReads() {
	get(a, "/events/{id}", "get-event", "An event, in the queue or in the history", func(ctx context.Context, in *IDInput) (*answer[event], error) {
		_, e, err := a.shown(ctx, in.ID)
		return &answer[event]{e}, err
	})
	get(a, "/events/{id}/attempts", "list-attempts", "The newest failed attempts of an event", func(ctx context.Context, in *IDInput) (*answer[page[attempt]], error) {
		shown, _, err := a.shown(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		p := page[attempt]{Items: []attempt{}}
		for _, t := range shown.Attempts {
			p.Items = append(p.Items, attempt{t.Attempt, t.StartedAt.UTC(), t.Duration.Milliseconds(), int64(t.Worker), t.Error})
		}
		return &answer[page[attempt]]{p}, nil
	})
	get(a, "/events/{id}/explain", "explain-event", "Why an event does not run now", a.explain)
	get(a, "/events", "list-events", "Events that have not ended, by id", func(ctx context.Context, in *struct {
		PageInput
		State string `query:"state" enum:"waiting,delayed,running,paused,blocked,expired,behind"`
	}) (*answer[page[event]], error) {
		filter, err := in.filter(ctx)
		if err != nil {
			return nil, err
		}
		found, next, err := a.reader.List(ctx, filter, inspect.State(in.State), eventqueue.EventID(in.After), in.Limit)
		if err != nil {
			return nil, a.failed("list", err)
		}
		return pageOf(found, next, queuedOf), nil
	})
	get(a, "/history", "list-history", "Events that have ended, the newest first", func(ctx context.Context, in *struct {
		PageInput
		Status string `query:"status" enum:"COMPLETED,FAILED,CANCELLED"`
	}) (*answer[page[event]], error) {
		filter, err := in.filter(ctx)
		if err != nil {
			return nil, err
		}
		found, next, err := a.reader.Log(ctx, filter, inspect.LogStatus(in.Status), true, eventqueue.EventID(in.After), in.Limit)
		if err != nil {
			return nil, a.failed("history", err)
		}
		return pageOf(found, next, loggedOf), nil
	})
	get(a, "/audit", "list-audit", "Who has changed what, the newest first", a.listAudit)
}

func (a *api) explain(ctx context.Context, in *IDInput) (*answer[page[reason]], error) {
	if _, _, err := a.shown(ctx, in.ID); err != nil {
		return nil, err
	}
	explanation, err := a.reader.Explain(ctx, eventqueue.EventID(in.ID))
	if err != nil {
		return nil, a.failed("explain", err)
	}
	p := page[reason]{Items: []reason{}}
	for _, r := range explanation.Reasons {
		p.Items = append(p.Items, reason{string(r.Label), r.Why, r.Remedy})
	}
	return &answer[page[reason]]{p}, nil
}

func (a *api) listAudit(ctx context.Context, in *struct {
	Event  int64  `query:"event" minimum:"0" doc:"Only the changes of this event."`
	Actor  string `query:"actor" maxLength:"255"`
	Key    string `query:"actor_key" maxLength:"255"`
	Before int64  `query:"before" minimum:"0" doc:"Only entries with lower ids: next of the last answer."`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"100"`
}) (*answer[page[auditEntry]], error) {
	who := callerOf(ctx)
	filter := audit.Filter{Canvases: who.Canvases(access.Read), Actor: in.Actor, ActorKey: in.Key, Event: eventqueue.EventID(in.Event)}
	found, err := a.audit.List(ctx, filter, in.Before, in.Limit)
	if err != nil {
		return nil, a.failed("audit", err)
	}
	p := page[auditEntry]{Items: make([]auditEntry, 0, len(found))}
	for _, e := range found {
		canvas, mayRead := "", who.MayEverywhere(access.ReadValues)
		if e.Canvas != nil {
			canvas, mayRead = e.Canvas.String(), who.May(access.ReadValues, *e.Canvas)
		}
		if !mayRead {
			e = e.WithoutValues()
		}
		p.Items = append(p.Items, auditEntry{e.ID, e.At.UTC(), e.Name, e.Key, e.Source, e.Via, e.Action, canvas, e.Target, e.Before, e.After})
	}
	if len(found) == in.Limit {
		p.Next = found[in.Limit-1].ID
	}
	return &answer[page[auditEntry]]{p}, nil
}
