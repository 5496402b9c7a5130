package httpapi

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
)

// CanvasInput names a canvas in the query.
type CanvasInput struct {
	Canvas string `query:"canvas_id" required:"true" format:"uuid"`
}

// concurrencyTarget is what a concurrency limit is for: of module with name, ordering_key and every_key one, or none for the canvas.
type concurrencyTarget struct {
	Canvas      string `json:"canvas_id" query:"canvas_id" required:"true" format:"uuid"`
	Module      string `json:"module,omitempty" query:"module" maxLength:"255"`
	Name        string `json:"name,omitempty" query:"name" maxLength:"255"`
	OrderingKey string `json:"ordering_key,omitempty" query:"ordering_key" maxLength:"255" doc:"One ordering key."`
	EveryKey    bool   `json:"every_key,omitempty" query:"every_key" doc:"Each ordering key that has no limit of its own."`
}

// ConcurrencyTargetInput is concurrencyTarget in the query.
type ConcurrencyTargetInput concurrencyTarget

type concurrencyLimit struct {
	Canvas      string `json:"canvas_id" format:"uuid"`
	Module      string `json:"module,omitempty" maxLength:"255"`
	Name        string `json:"name,omitempty" maxLength:"255"`
	OrderingKey string `json:"ordering_key,omitempty" maxLength:"255" doc:"One ordering key."`
	EveryKey    bool   `json:"every_key,omitempty" doc:"Each ordering key that has no limit of its own."`
	Max         int    `json:"max" minimum:"1" maximum:"2147483647" doc:"How many events may run at once."`
}

// RateLimitBody is a rate limit.
type RateLimitBody struct {
	Canvas    string `json:"canvas_id" format:"uuid"`
	Module    string `json:"module,omitempty" maxLength:"255" doc:"Absent, with name: the whole canvas."`
	Name      string `json:"name,omitempty" maxLength:"255"`
	PerMinute int    `json:"per_minute,omitempty" minimum:"0" doc:"0 is no such limit."`
	PerDay    int    `json:"per_day,omitempty" minimum:"0"`
	Mode      string `json:"mode,omitempty" enum:"exact,approximate" default:"exact"`
}

type rateStatus struct {
	RateLimitBody
	MinuteUsed int64 `json:"minute_used"`
	DayUsed    int64 `json:"day_used"`
	Waiting    int64 `json:"waiting" doc:"About how many events wait for a later minute or day."`
}

// limitChanged is what a change of a limit has come to.
type limitChanged struct {
	Removed  bool `json:"removed,omitempty" doc:"There was one."`
	Notified int  `json:"notified,omitempty" doc:"Events that a rate limit had put off, and that are tried now."`
}

func (a *api) addLimits() {
	get(a, "/limits/concurrency", "list-concurrency-limits", "How many events may run at once on a canvas", a.listConcurrencyLimits)
	change(a, access.Administer, "PUT /limits/concurrency", "set-concurrency-limit", "Set how many events may run at once", func(ctx context.Context, in *struct{ Body concurrencyLimit }) (*answer[limitChanged], error) {
		b := in.Body
		limits, limit, err := a.concurrencyLimits(ctx, ConcurrencyTargetInput{b.Canvas, b.Module, b.Name, b.OrderingKey, b.EveryKey})
		if err != nil {
			return nil, err
		}
		limit.Max = b.Max
		if err := limits.Set(ctx, limit); err != nil {
			return nil, a.failed("limit", err)
		}
		return &answer[limitChanged]{}, nil
	})
	change(a, access.Administer, "DELETE /limits/concurrency", "remove-concurrency-limit", "Remove a concurrency limit", func(ctx context.Context, in *ConcurrencyTargetInput) (*answer[limitChanged], error) {
		limits, limit, err := a.concurrencyLimits(ctx, *in)
		if err != nil {
			return nil, err
		}
		removed, err := limits.Remove(ctx, limit)
		if err != nil {
			return nil, a.failed("limit", err)
		}
		return &answer[limitChanged]{limitChanged{Removed: removed}}, nil
	})
	get(a, "/limits/rate", "list-rate-limits", "How many events may begin per minute and day on a canvas, and how many have", a.listRateLimits)
	change(a, access.Administer, "PUT /limits/rate", "set-rate-limit", "Set how many events may begin", func(ctx context.Context, in *struct{ Body RateLimitBody }) (*answer[limitChanged], error) {
		b := in.Body
		limits, scope, err := a.rateLimits(ctx, b.Canvas, b.Module, b.Name)
		if err != nil {
			return nil, err
		}
		limit := operate.RateLimit{Scope: scope, PerMinute: b.PerMinute, PerDay: b.PerDay, Mode: ratelimit.Mode(b.Mode)}
		if err := limit.Validate(); err != nil {
			return nil, huma.Error422UnprocessableEntity(err.Error())
		}
		notified, err := limits.Set(ctx, limit)
		if err != nil {
			return nil, a.failed("limit", err)
		}
		return &answer[limitChanged]{limitChanged{Notified: notified}}, nil
	})
	change(a, access.Administer, "DELETE /limits/rate", "remove-rate-limit", "Remove a rate limit", func(ctx context.Context, in *struct {
		CanvasInput
		Module string `query:"module" maxLength:"255"`
		Name   string `query:"name" maxLength:"255"`
	}) (*answer[limitChanged], error) {
		limits, scope, err := a.rateLimits(ctx, in.Canvas, in.Module, in.Name)
		if err != nil {
			return nil, err
		}
		removed, notified, err := limits.Remove(ctx, scope)
		if err != nil {
			return nil, a.failed("limit", err)
		}
		return &answer[limitChanged]{limitChanged{removed, notified}}, nil
	})
}

// concurrencyLimits returns what changes concurrency limits as the caller, and the limit without its Max.
func (a *api) concurrencyLimits(ctx context.Context, t ConcurrencyTargetInput) (*operate.ConcurrencyLimits, operate.ConcurrencyLimit, error) {
	canvas, err := canvasFor(ctx, access.Administer, t.Canvas)
	limit := operate.ConcurrencyLimit{Canvas: canvas, Module: t.Module, Name: t.Name, Key: t.OrderingKey, EveryKey: t.EveryKey}
	if err != nil {
		return nil, limit, err
	}
	if err := limit.Validate(); err != nil {
		return nil, limit, huma.Error422UnprocessableEntity(err.Error())
	}
	limits, err := operate.NewConcurrencyLimits(a.Store.As(callerOf(ctx).actor()), a.Queue)
	if err != nil {
		return nil, limit, a.failed("limit", err)
	}
	return limits, limit, nil
}

// rateLimits is concurrencyLimits for a rate limit.
func (a *api) rateLimits(ctx context.Context, canvasText, module, name string) (*operate.RateLimits, eventqueue.Scope, error) {
	canvas, err := canvasFor(ctx, access.Administer, canvasText)
	scope := eventqueue.Scope{Canvas: canvas, Module: module, Name: name}
	if err != nil {
		return nil, scope, err
	}
	if err := scope.ValidateRate(); err != nil {
		return nil, scope, huma.Error422UnprocessableEntity(err.Error())
	}
	limits, err := operate.NewRateLimits(a.Store.As(callerOf(ctx).actor()), a.Queue)
	if err != nil {
		return nil, scope, a.failed("limit", err)
	}
	return limits, scope, nil
}

func (a *api) listConcurrencyLimits(ctx context.Context, in *CanvasInput) (*answer[page[concurrencyLimit]], error) {
	canvas, err := canvasFor(ctx, access.Read, in.Canvas)
	if err != nil {
		return nil, err
	}
	found, err := a.Store.ConcurrencyLimits(ctx, canvas)
	if err != nil {
		return nil, a.failed("limits", err)
	}
	return pageOfAll(found, func(l operate.ConcurrencyLimit) concurrencyLimit {
		return concurrencyLimit{l.Canvas.String(), l.Module, l.Name, l.Key, l.EveryKey, l.Max}
	}), nil
}

func (a *api) listRateLimits(ctx context.Context, in *CanvasInput) (*answer[page[rateStatus]], error) {
	canvas, err := canvasFor(ctx, access.Read, in.Canvas)
	if err != nil {
		return nil, err
	}
	found, err := a.Store.RateLimits(ctx, &canvas)
	if err != nil {
		return nil, a.failed("limits", err)
	}
	return pageOfAll(found, func(l operate.RateStatus) rateStatus {
		return rateStatus{RateLimitBody{l.Canvas.String(), l.Module, l.Name, l.PerMinute, l.PerDay, string(l.Mode)}, l.MinuteUsed, l.DayUsed, l.Waiting}
	}), nil
}

// pageOfAll is a list that has one page.
func pageOfAll[F, T any](found []F, itemOf func(F) T) *answer[page[T]] {
	p := page[T]{Items: make([]T, 0, len(found))}
	for _, f := range found {
		p.Items = append(p.Items, itemOf(f))
	}
	return &answer[page[T]]{p}
}
