package main

import (
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/attack/chaos/check"
	"eventsv2/test/attack/chaos/emit"
	"eventsv2/test/attack/chaos/growth"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/attack/harness"
	"eventsv2/test/oracle"
	"eventsv2/test/pubsubproxy"
)

// stage is everything that a run needs, set up.
type stage struct {
	harness.Deployment

	opts     options
	canvases []eventqueue.CanvasID
	control  *pgxpool.Pool // direct, for what is no part of the queue

	proxies                *harness.Proxies
	postgresOf, notifierOf map[string]*harness.Proxy
	proxyOf                map[string]*pubsubproxy.Server
	faults                 *check.Faults
	attacks                *tally
	fleet                  *fleet
	emitters               *emit.Emitters
	storms                 *storms
	operator               *operator
	others                 others
	cron                   check.CronEvidence
	limits                 []oracle.LimitChange
	rateLimits             *operate.RateLimits
	rates                  []oracle.RateChange
	sampler                *growth.Sampler // of a steady run
}

// scopes are what may be paused and blocked.
func (s *stage) scopes() []eventqueue.Scope {
	var all []eventqueue.Scope
	keys := append(task.Links(), task.Dispatch())
	for _, h := range task.Handlers() {
		if h.Key.Module == task.Module {
			keys = append(keys, h.Key)
		}
	}
	for _, canvas := range s.canvases[:emit.CanvasCount] {
		for _, key := range keys {
			all = append(all, eventqueue.Scope{Canvas: canvas, Module: key.Module, Name: key.Name})
		}
	}
	return all
}

// untouchable is the canvas of the rows by hand that nobody can run: what an operator, or time, does
// to others would free them.
func (s *stage) untouchable() [16]byte { return s.canvases[emit.CanvasCount] }
