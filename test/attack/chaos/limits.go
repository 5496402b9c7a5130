package main

import (
	"context"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/test/attack/chaos/check"
	"eventsv2/test/attack/chaos/emit"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/oracle"
)

// The rate limits: one of each mode for a handler, on a canvas of its own, so low that
// at the usual rate most events have to wait.
const (
	ratedHandler   = "busy"
	ratedPerMinute = 120 // of a steady run: steadilyRated
)

// steadilyRated is how many minutes' worth of a second's events a rate limit of a steady run lets
// through in a minute: half more than what comes, so that what waits for it does not grow.
const steadilyRated = 3

// limitRates sets the rate limits of the run, before anything is emitted.
func (s *stage) limitRates(ctx context.Context) error {
	for canvas, mode := range map[int]ratelimit.Mode{emit.ExactCanvas: ratelimit.Exact, emit.ApproximateCanvas: ratelimit.Approximate} {
		perMinute := ratedPerMinute
		if s.opts.steady {
			perMinute = steadilyRated * s.opts.rate
		}
		limit := operate.RateLimit{PerMinute: perMinute, Mode: mode,
			Scope: eventqueue.Scope{Canvas: s.canvases[canvas], Module: task.Module, Name: ratedHandler}}
		if _, err := s.rateLimits.Set(ctx, limit); err != nil {
			return err
		}
		s.rates = append(s.rates, oracle.RateChange{At: time.Now(), Limit: limit})
	}
	return nil
}

// unlimitRates removes them at the end of the load, so that what they have put off does
// not have to wait for its window. It may be repeated. What was claimed within the last
// locks before it may begin without a grant: the limit may be gone before its worker asks.
func (s *stage) unlimitRates(ctx context.Context) error {
	if len(s.rates) == 2 {
		for _, set := range s.rates[:2] {
			removed := oracle.RateChange{At: time.Now().Add(-2 * check.LockTimeout), Limit: operate.RateLimit{Scope: set.Limit.Scope}}
			s.rates = append(s.rates, removed)
		}
	}
	for _, set := range s.rates[:2] {
		if _, _, err := s.rateLimits.Remove(ctx, set.Limit.Scope); err != nil {
			return err
		}
	}
	return nil
}

// The concurrency limit of the run.
const (
	limitedHandler = "busy"
	limitedMax     = 2
)

// limitHandler sets the concurrency limit of the run, before anything is emitted.
func (s *stage) limitHandler(ctx context.Context, limits *operate.ConcurrencyLimits) error {
	limit := operate.ConcurrencyLimit{Canvas: s.canvases[emit.LimitedCanvas], Module: task.Module, Name: limitedHandler, Max: limitedMax}
	if err := limits.Set(ctx, limit); err != nil {
		return err
	}
	s.limits = append(s.limits, oracle.LimitChange{At: time.Now(), Limit: limit})
	return nil
}
