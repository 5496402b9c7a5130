package service

import (
	"context"
	"net/http"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
)

// What the tests of this package look at from outside.
var (
	SourcesOf   = webhookSources
	NewWebhooks = newWebhooks
	ServeWhile  = serveWhile
)

// NotifierOf is the notifier that Open makes for a Config.
func NotifierOf(c Config) NotifierKind {
	c.withNotifier()
	return c.Notifier
}

// RunTogether runs parts of which the first ends the others when it is done.
func RunTogether(ctx context.Context, log *zap.Logger, first, other func(context.Context) error) error {
	return runTogether(ctx, log, []part{{name: "first", run: first, ends: true}, {name: "other", run: other}})
}

// HealthHandler is the handler that Health makes of a readiness.
func HealthHandler(ready func(context.Context) error, webhooks http.Handler, log *zap.Logger) http.Handler {
	return healthHandler(checks{alive: func() error { return nil }, ready: (&answers{ready: ready}).ask}, webhooks, log)
}

// LifeHandler is the handler that Health makes of the state of the loops.
func LifeHandler(alive func() error, log *zap.Logger) http.Handler {
	return healthHandler(checks{alive: alive}, nil, log)
}

// AliveNeeds is how parts name their loops.
func (s *Service) AliveNeeds(stalled func() error) { s.aliveNeeds(stalled) }

// Reached is the question of /readyz between two of its checks.
func (s *Service) Reached(ctx context.Context) error { return s.peersAsked.reached(ctx) }

// AwaitResources is the first step of Run.
func (s *Service) AwaitResources(ctx context.Context) error { return s.await(ctx) }

// MayPass reports whether a failed Check may pass later.
func (s *Service) MayPass(err error) bool { return s.mayPass(err) }

// CheckRelayAfter has a worker look for a relay so long after its start.
func (s *Service) CheckRelayAfter(d time.Duration) { s.relayCheck = d }

// Receiver is where a worker of the Service pulls.
func (s *Service) Receiver() eventqueue.Receiver { return s.receiver }

// Explain is called by the relay of the Service about a due event that does not run.
func (s *Service) Explain(ctx context.Context, id eventqueue.EventID) (maintenance.Explanation, error) {
	return s.explain(ctx, id)
}

// RunnableHandler answers how many events could run.
func RunnableHandler(count func(ctx context.Context, most int) (int, error), log *zap.Logger) http.Handler {
	return healthHandler(checks{runnable: &runnable{count: count, log: log}}, nil, log)
}

// NewSlogLogger is newSlogLogger for tests.
var NewSlogLogger = newSlogLogger
