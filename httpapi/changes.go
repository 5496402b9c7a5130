package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"go.uber.org/zap"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/attributes"
	"eventsv2/internal/envelope"
	"eventsv2/internal/keymode"
	"eventsv2/internal/logkey"
	"eventsv2/internal/view"
)

// idempotencyTime is how long an Idempotency-Key stays taken after the end of its event, unless the request says something else: a
// sender that got no answer repeats its request minutes later, and the event may have ended within milliseconds.
const idempotencyTime = 24 * time.Hour

// newEvent is an event to be emitted.
type newEvent struct {
	Canvas       string            `json:"canvas_id" format:"uuid"`
	Module       string            `json:"module" minLength:"1" maxLength:"255"`
	Name         string            `json:"name" minLength:"1" maxLength:"255"`
	Modifier     string            `json:"modifier,omitempty" default:"_" maxLength:"255"`
	Value        json.RawMessage   `json:"value" doc:"Any JSON; the handler sees it byte for byte."`
	DelaySeconds view.Seconds      `json:"delay_seconds,omitempty" minimum:"0" maximum:"4000000000"`
	DelayUntil   time.Time         `json:"delay_until,omitzero"`
	Attributes   map[string]string `json:"attributes,omitempty" maxProperties:"16"`
	OrderingKey  string            `json:"ordering_key,omitempty" minLength:"1" maxLength:"255"`
	Priority     priorityOf        `json:"priority,omitempty" doc:"Which events go first while workers are behind. Absent: normal."`
	UniqueKey    string            `json:"unique_key,omitempty" minLength:"1" maxLength:"255"`
	UniqueMode   uniqueMode        `json:"unique_mode,omitempty" doc:"For how long the key stands for an event, and whether this one replaces what waits under it. Absent: until_end."`
	UniqueFor    *view.Seconds     `json:"unique_for_seconds,omitempty" minimum:"0" maximum:"31622400" doc:"For how long the key stays taken after the end of the event; with until_end. Absent: 0, or a day of an Idempotency-Key."`
	MaxWait      view.Seconds      `json:"max_wait_seconds,omitempty" minimum:"0" maximum:"31622400" doc:"For how long the event may be put off, with replace. Absent: without a bound."`
}

func (n newEvent) event(ctx context.Context) (e eventqueue.NewEvent, err error) {
	canvas, err := canvasFor(ctx, access.Emit, n.Canvas)
	if err != nil {
		return e, err
	}
	var uniqueFor view.Seconds
	if n.UniqueFor != nil {
		uniqueFor = *n.UniqueFor
	}
	return eventqueue.NewEvent{Canvas: canvas, Module: n.Module, Name: n.Name, Modifier: n.Modifier, Value: n.Value,
		Delay: n.DelaySeconds.Duration(), DelayUntil: n.DelayUntil, Attributes: n.Attributes, OrderingKey: n.OrderingKey, Priority: string(n.Priority),
		UniqueKey: n.UniqueKey, UniqueMode: string(n.UniqueMode), UniqueFor: uniqueFor.Duration(), MaxWait: n.MaxWait.Duration()}, nil
}

type emitted struct {
	IDs    []int64 `json:"ids" nullable:"false" doc:"In the order of the events. An event whose unique key is held has the id of its holder."`
	Repeat bool    `json:"repeat,omitempty" doc:"No event was added: all of it was emitted before, or has replaced what waits."`
}

// emission is the answer of an emit: 201, or 200 of a repeat.
type emission struct {
	Status int
	Body   emitted
}

// place is where a request has the events that it emits.
type place string

const (
	inBody place = "body"
	inList place = "body.events"
)

// refused is the answer for an event that cannot be accepted. It names the property, and of a list the event as well.
func (in place) refused(err *eventqueue.InvalidError, e eventqueue.NewEvent) error {
	property := err.Field
	if property == "unique_for" || property == "max_wait" || property == "delay_until" && e.DelayUntil.IsZero() {
		property = strings.TrimSuffix(property, "_until") + "_seconds"
	}
	detail, location := property+": "+err.Problem, string(in)
	if in == inList {
		detail, location = fmt.Sprintf("event %d: %s", err.Index, detail), fmt.Sprintf("%s[%d]", in, err.Index)
	}
	return huma.Error422UnprocessableEntity(detail, &huma.ErrorDetail{Message: err.Problem, Location: location + "." + property})
}

// checkKey refuses an Idempotency-Key that can be no unique key.
func checkKey(key string) error {
	if err := eventqueue.CheckName(key); err != nil {
		return huma.Error422UnprocessableEntity("Idempotency-Key: "+err.Error(), &huma.ErrorDetail{Message: err.Error(), Location: "header.Idempotency-Key"})
	}
	return nil
}

// emit emits events of one request, which has them in a place: all or none, with one row of the audit log, which names those that are
// new or were replaced. A repeat that changes nothing has no row.
func (a *api) emit(ctx context.Context, in place, events ...eventqueue.NewEvent) (*emission, error) {
	var all []eventqueue.Emitted
	err := a.Queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) (err error) {
		if all, err = tx.EmitUnique(ctx, events...); err != nil {
			return err
		}
		change, is := emissionOf(events, all)
		if !is {
			return nil
		}
		return audit.Write(ctx, a.Store.Schema().On(tx.DB), callerOf(ctx).actor(), change)
	})
	// The index that a middleware gives may be of no event.
	if invalid, is := errors.AsType[*eventqueue.InvalidError](err); is && invalid.Index >= 0 && invalid.Index < len(events) {
		return nil, in.refused(invalid, events[invalid.Index])
	}
	if err != nil {
		return nil, a.failed("emit", err)
	}
	return emissionAnswer(all), nil
}

// emissionAnswer is the answer of an emit.
func emissionAnswer(all []eventqueue.Emitted) *emission {
	body := emitted{IDs: make([]int64, 0, len(all)), Repeat: true}
	for _, e := range all {
		body.IDs = append(body.IDs, int64(e.ID))
		body.Repeat = body.Repeat && !e.New
	}
	if body.Repeat {
		return &emission{http.StatusOK, body}
	}
	return &emission{http.StatusCreated, body}
}

// emitOnce emits an event under the key of its request, whose repeats have to have the same content. Of a value that is
// encrypted that is not known.
func (a *api) emitOnce(ctx context.Context, e eventqueue.NewEvent) (*emission, error) {
	made, err := a.emit(ctx, inBody, e)
	if err != nil || !made.Body.Repeat {
		return made, err
	}
	return made, a.refuseOther(ctx, eventqueue.EventID(made.Body.IDs[0]), func(was eventqueue.Event) bool {
		return (eventqueue.HandlerKey{Module: e.Module, Name: e.Name, Modifier: e.Modifier}) == was.Handler() &&
			(bytes.Equal(e.Value, was.Value) || envelope.Is(was.Value)) && maps.Equal(sent(e.Attributes), sent(was.Attributes))
	})
}

// refuseOther refuses a request whose Idempotency-Key is that of an event which is not the same as what it would emit, as far as is known
// what the event was.
func (a *api) refuseOther(ctx context.Context, id eventqueue.EventID, same func(was eventqueue.Event) bool) error {
	first, err := a.reader.Show(ctx, id)
	if err != nil {
		return a.failed("emit", err)
	}
	var was eventqueue.Event
	switch {
	case first.Queued != nil:
		was = first.Queued.Event
	case first.Logged != nil:
		was = first.Logged.Event
	default: // it has ended without a trace
		return nil
	}
	if same(was) {
		return nil
	}
	// An operator may have changed it since, and then what it was is not known.
	if edits, err := a.audit.List(ctx, audit.Filter{Event: id, Action: "edit"}, math.MaxInt64, 1); err != nil || len(edits) > 0 {
		return err
	}
	return huma.Error422UnprocessableEntity(fmt.Sprintf("the Idempotency-Key is that of event %d, which has another handler, value or attributes: "+
		"repeat a request as it was, and give a new event a key of its own", id))
}

// sent are the attributes of an event that its sender gave it.
func sent(all map[string]string) map[string]string {
	all = maps.Clone(all)
	delete(all, attributes.Traceparent)
	return all
}

// emissionOf is the audit entry of the events that are new or were replaced, and reports whether there are any. It has their
// canvas if they are on one.
func emissionOf(events []eventqueue.NewEvent, all []eventqueue.Emitted) (change audit.Change, is bool) {
	var ids, replaced []eventqueue.EventID
	var canvas *eventqueue.CanvasID
	several := false
	for i, e := range all {
		switch {
		case e.New:
			ids = append(ids, e.ID)
		case events[i].UniqueMode != keymode.Replace || slices.Contains(replaced, e.ID):
			continue
		default:
			replaced = append(replaced, e.ID)
		}
		several = several || canvas != nil && *canvas != events[i].Canvas
		canvas = &events[i].Canvas
	}
	if several {
		canvas = nil
	}
	touched := slices.Concat(ids, replaced)
	slices.Sort(touched)
	target := map[string]any{"events": slices.Compact(touched)} // a later event of the request may have replaced a new one of it
	if len(replaced) > 0 {
		target["replaced"] = replaced
	}
	return audit.Change{Action: "emit", Canvas: canvas, Target: target}, len(touched) > 0
}

// toChange returns an event on whose canvas the caller has the verb operate.
func (a *api) toChange(ctx context.Context, id int64) (inspect.Shown, view.Event, error) {
	shown, e, err := a.shown(ctx, id)
	if err == nil {
		err = may(ctx, access.Operate, e.Canvas)
	}
	return shown, e, err
}

// changed is the result of a change of an event.
type changed struct {
	Result string `json:"result" doc:"What was done. ending, of a cancel: a worker runs the event and was asked to end the run; then the event is cancelled, unless its handler completes it."`
}

// result answers a change: 200 when it is made, 409 with the reason when the event refuses it.
func (a *api) result(r operate.Changed) (*answer[changed], error) {
	if r.Done() || r.Result == operate.ChangeEnding {
		return &answer[changed]{changed{string(r.Result)}}, nil
	}
	if r.Result == operate.ChangeRefused {
		a.Logger.Error("the database refuses to write an event", zap.Stringer(logkey.Event, r.ID), zap.Error(r.Err))
	}
	return nil, huma.Error409Conflict("nothing was changed: " + view.RefusalOf(r).String())
}

func (a *api) addChanges() {
	change(a, access.Emit, "POST /events", "emit-event", "Emit an event", func(ctx context.Context, in *struct {
		Key  string `header:"Idempotency-Key" maxLength:"255" doc:"The unique key of the event, for a day after its end unless unique_for_seconds says something else: repeating the request meanwhile emits nothing, and another event under it is refused while the first is in the queue or the history."`
		Body newEvent
	}) (*emission, error) {
		if in.Key != "" {
			if err := checkKey(in.Key); err != nil {
				return nil, err
			}
			if in.Body.UniqueKey != "" && in.Body.UniqueKey != in.Key {
				return nil, huma.Error422UnprocessableEntity("Idempotency-Key and unique_key differ: give one of them")
			}
			if in.Body.UniqueMode != "" && in.Body.UniqueMode != keymode.UntilEnd {
				return nil, huma.Error422UnprocessableEntity(fmt.Sprintf("Idempotency-Key goes with the unique_mode %s only, in which repeats change nothing: give the key as unique_key", keymode.UntilEnd))
			}
			in.Body.UniqueKey = in.Key
			if in.Body.UniqueFor == nil {
				in.Body.UniqueFor = new(view.Seconds(idempotencyTime.Seconds()))
			}
		}
		e, err := in.Body.event(ctx)
		if err != nil {
			return nil, err
		}
		if in.Key != "" {
			return a.emitOnce(ctx, e)
		}
		return a.emit(ctx, inBody, e)
	}, creates, repeats, takesValues)
	change(a, access.Emit, "POST /events/batch", "emit-events", "Emit events, all or none", func(ctx context.Context, in *struct {
		Body struct {
			Events []newEvent `json:"events" minItems:"1" maxItems:"1000" nullable:"false"`
		}
	}) (*emission, error) {
		events := make([]eventqueue.NewEvent, len(in.Body.Events))
		for i, n := range in.Body.Events {
			var err error
			if events[i], err = n.event(ctx); err != nil {
				return nil, err
			}
		}
		return a.emit(ctx, inList, events...)
	}, creates, repeats, takesValues)
	change(a, access.Operate, "POST /events/{id}/cancel", "cancel-event", "End an event: one that waits without a run, and the run of one that runs", func(ctx context.Context, in *struct {
		IDInput
		Body *struct {
			Reason string `json:"reason,omitempty" maxLength:"1024"`
		}
	}) (*answer[changed], error) {
		cancellation := operate.Cancellation{Actor: callerOf(ctx).Name}
		if in.Body != nil {
			cancellation.Reason = in.Body.Reason
		}
		return a.change(ctx, in.ID, func(c *operate.Changer, id eventqueue.EventID) ([]operate.Changed, error) {
			return c.Cancel(ctx, cancellation, id)
		})
	})
	change(a, access.Operate, "DELETE /events/{id}", "delete-event", "Delete an event that waits", func(ctx context.Context, in *IDInput) (*answer[changed], error) {
		return a.change(ctx, in.ID, func(c *operate.Changer, id eventqueue.EventID) ([]operate.Changed, error) { return c.Delete(ctx, id) })
	})
	change(a, access.Operate, "PATCH /events/{id}", "edit-event", "Edit an event that waits", a.edit, takesValues)
	change(a, access.Operate, "POST /events/{id}/run", "run-event", "Have an event that waits tried now", func(ctx context.Context, in *IDInput) (*answer[changed], error) {
		return a.change(ctx, in.ID, func(c *operate.Changer, id eventqueue.EventID) ([]operate.Changed, error) { return c.Requeue(ctx, id) })
	})
	change(a, access.Operate, "POST /events/{id}/retry", "retry-event", "Move a failed or cancelled event back into the queue", a.retry)
}

func (a *api) change(ctx context.Context, id int64, f func(c *operate.Changer, id eventqueue.EventID) ([]operate.Changed, error)) (*answer[changed], error) {
	if _, _, err := a.toChange(ctx, id); err != nil {
		return nil, err
	}
	return a.apply(ctx, id, f)
}

// apply is change for an event that the caller may change.
func (a *api) apply(ctx context.Context, id int64, f func(c *operate.Changer, id eventqueue.EventID) ([]operate.Changed, error)) (*answer[changed], error) {
	changer, err := operate.NewChanger(a.Store.As(callerOf(ctx).actor()), a.Queue)
	if err != nil {
		return nil, a.failed("change", err)
	}
	results, err := f(changer, eventqueue.EventID(id))
	if err != nil {
		return nil, a.failed("change", err)
	}
	return a.result(results[0])
}

func (a *api) edit(ctx context.Context, in *struct {
	IDInput
	Body struct {
		Value        json.RawMessage   `json:"value,omitempty"`
		Attributes   map[string]string `json:"attributes,omitempty" maxProperties:"16"`
		DelaySeconds *view.Seconds     `json:"delay_seconds,omitempty" minimum:"0" maximum:"4000000000"`
		Version      string            `json:"version,omitempty" minLength:"1" maxLength:"64" doc:"That of the event as you read it: 409 if its value or its attributes have changed since. Absent: whatever they are now."`
	}
}) (*answer[changed], error) {
	shown, e, err := a.toChange(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	edit := editBody{in.Body.Value, in.Body.Attributes, in.Body.DelaySeconds}.edit()
	if err := edit.Check(a.Queue.Limits()); err != nil {
		return nil, huma.Error422UnprocessableEntity(err.Error())
	}
	if in.Body.Version != "" && shown.Queued != nil {
		if e.Version != in.Body.Version {
			return a.result(operate.Changed{ID: e.ID, Result: operate.ChangeOutdated})
		}
		edit.Of = &operate.Content{Value: shown.Queued.Value, Attributes: shown.Queued.Attributes}
	}
	return a.apply(ctx, in.ID, func(c *operate.Changer, id eventqueue.EventID) ([]operate.Changed, error) {
		return c.Edit(ctx, edit, id)
	})
}

func (a *api) retry(ctx context.Context, in *struct {
	IDInput
	Body *struct {
		Version string `json:"version,omitempty" minLength:"1" maxLength:"64" doc:"That of the event as you read it: 409 if it has another value or other attributes now. Absent: whatever they are."`
	}
}) (*answer[changed], error) {
	shown, e, err := a.toChange(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	var of *operate.Content
	if in.Body != nil && in.Body.Version != "" && shown.Logged != nil {
		if e.Version != in.Body.Version {
			return a.result(operate.Changed{ID: e.ID, Result: operate.ChangeOutdated})
		}
		of = &operate.Content{Value: shown.Logged.Value, Attributes: shown.Logged.Attributes}
	}
	return a.apply(ctx, in.ID, func(c *operate.Changer, id eventqueue.EventID) ([]operate.Changed, error) {
		return c.RetryEdited(ctx, operate.Edit{Of: of}, id)
	})
}
