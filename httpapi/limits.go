package httpapi

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/view"
)

// CanvasInput names a canvas in the query.
type CanvasInput struct {
	Canvas string `query:"canvas_id" required:"true" format:"uuid"`
}

// ConcurrencyTargetInput is view.ConcurrencyTarget in the query.
type ConcurrencyTargetInput struct {
	CanvasInput
	Module      string `query:"module" minLength:"1" maxLength:"255"`
	Name        string `query:"name" minLength:"1" maxLength:"255"`
	OrderingKey string `query:"ordering_key" minLength:"1" maxLength:"255" doc:"One ordering key."`
	EveryKey    bool   `query:"every_key" doc:"Each ordering key that has no limit of its own."`
}

func (a *api) addLimits() {
	get(a, "/limits/concurrency", "list-concurrency-limits", "How many events may run at once on a canvas", a.listConcurrencyLimits)
	change(a, access.Administer, "PUT /limits/concurrency", "set-concurrency-limit", "Set how many events may run at once", func(ctx context.Context, in *struct{ Body view.ConcurrencyLimit }) (*answer[view.ConcurrencyLimitChange], error) {
		limit := in.Body.Limit()
		limits, err := a.concurrencyLimits(ctx, limit)
		if err != nil {
			return nil, err
		}
		limit.Max = in.Body.MaxRunning
		if err := limits.Set(ctx, limit); err != nil {
			return nil, a.failed("limit", err)
		}
		return &answer[view.ConcurrencyLimitChange]{view.ConcurrencyLimitChangeOf(limit, true)}, nil
	})
	change(a, access.Administer, "DELETE /limits/concurrency", "remove-concurrency-limit", "Remove a concurrency limit", func(ctx context.Context, in *ConcurrencyTargetInput) (*answer[view.ConcurrencyLimitChange], error) {
		canvas, err := canvasFor(ctx, access.Administer, in.Canvas)
		if err != nil {
			return nil, err
		}
		limit := operate.ConcurrencyLimit{Canvas: canvas, Module: in.Module, Name: in.Name, Key: in.OrderingKey, EveryKey: in.EveryKey}
		limits, err := a.concurrencyLimits(ctx, limit)
		if err != nil {
			return nil, err
		}
		removed, err := limits.Remove(ctx, limit)
		if err != nil {
			return nil, a.failed("limit", err)
		}
		return &answer[view.ConcurrencyLimitChange]{view.ConcurrencyLimitChangeOf(limit, removed)}, nil
	})
	get(a, "/limits/rate", "list-rate-limits", "How many events may begin per minute and day on a canvas, and how many have", a.listRateLimits)
	change(a, access.Administer, "PUT /limits/rate", "set-rate-limit", "Set how many events may begin", func(ctx context.Context, in *struct{ Body view.RateLimit }) (*answer[view.RateLimitChange], error) {
		limit := in.Body.Limit()
		limits, err := a.rateLimits(ctx, limit.Scope)
		if err != nil {
			return nil, err
		}
		if err := limit.Validate(); err != nil {
			return nil, huma.Error422UnprocessableEntity(err.Error())
		}
		notified, err := limits.Set(ctx, limit)
		if err != nil {
			return nil, a.failed("limit", err)
		}
		return &answer[view.RateLimitChange]{view.RateLimitChange{RateLimit: view.RateLimitOf(limit), Changed: true, Notified: notified}}, nil
	})
	change(a, access.Administer, "DELETE /limits/rate", "remove-rate-limit", "Remove a rate limit", func(ctx context.Context, in *struct {
		CanvasInput
		Module string `query:"module" minLength:"1" maxLength:"255"`
		Name   string `query:"name" minLength:"1" maxLength:"255"`
	}) (*answer[view.RateLimitChange], error) {
		canvas, err := canvasFor(ctx, access.Administer, in.Canvas)
		if err != nil {
			return nil, err
		}
		scope := eventqueue.Scope{Canvas: canvas, Module: in.Module, Name: in.Name}
		limits, err := a.rateLimits(ctx, scope)
		if err != nil {
			return nil, err
		}
		removed, notified, err := limits.Remove(ctx, scope)
		if err != nil {
			return nil, a.failed("limit", err)
		}
		return &answer[view.RateLimitChange]{view.RateLimitChange{RateLimit: view.RateLimitOf(operate.RateLimit{Scope: scope}), Changed: removed, Notified: notified}}, nil
	})
}

// concurrencyLimits returns what changes concurrency limits as the caller, if they may change this one.
func (a *api) concurrencyLimits(ctx context.Context, limit operate.ConcurrencyLimit) (*operate.ConcurrencyLimits, error) {
	if err := may(ctx, access.Administer, limit.Canvas); err != nil {
		return nil, err
	}
	if err := limit.Validate(); err != nil {
		return nil, huma.Error422UnprocessableEntity(err.Error())
	}
	limits, err := operate.NewConcurrencyLimits(a.Store.As(callerOf(ctx).actor()), a.Queue)
	if err != nil {
		return nil, a.failed("limit", err)
	}
	return limits, nil
}

// rateLimits is concurrencyLimits for a rate limit.
func (a *api) rateLimits(ctx context.Context, scope eventqueue.Scope) (*operate.RateLimits, error) {
	if err := may(ctx, access.Administer, scope.Canvas); err != nil {
		return nil, err
	}
	if err := scope.ValidateRate(); err != nil {
		return nil, huma.Error422UnprocessableEntity(err.Error())
	}
	limits, err := operate.NewRateLimits(a.Store.As(callerOf(ctx).actor()), a.Queue)
	if err != nil {
		return nil, a.failed("limit", err)
	}
	return limits, nil
}

func (a *api) listConcurrencyLimits(ctx context.Context, in *CanvasInput) (*answer[view.Page[view.ConcurrencyLimit]], error) {
	canvas, err := canvasFor(ctx, access.Read, in.Canvas)
	if err != nil {
		return nil, err
	}
	found, err := a.Store.ConcurrencyLimits(ctx, canvas)
	if err != nil {
		return nil, a.failed("limits", err)
	}
	return list(view.ListOf(found, view.ConcurrencyLimitOf)), nil
}

func (a *api) listRateLimits(ctx context.Context, in *CanvasInput) (*answer[view.Page[view.RateStatus]], error) {
	canvas, err := canvasFor(ctx, access.Read, in.Canvas)
	if err != nil {
		return nil, err
	}
	found, err := a.Store.RateLimits(ctx, &canvas)
	if err != nil {
		return nil, a.failed("limits", err)
	}
	return list(view.ListOf(found, view.RateStatusOf)), nil
}
