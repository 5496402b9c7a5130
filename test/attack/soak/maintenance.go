package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/backoff"
	"eventsv2/test/command"
)

// maintenance is what operators do all the time: pause a handler and lift that, and
// delete old cron records.
type maintenance struct {
	rules    *operate.Rules
	pool     *pgxpool.Pool
	canvases []eventqueue.CanvasID
	every    time.Duration // between two faults
	progress *command.Reporter
}

// The handler is paused for three of four intervals between faults.
const (
	pausedFor = 3
	freeFor   = 1
)

// callTimeout bounds one call of an operator.
const callTimeout = 15 * time.Second

// run does this until ctx ends. What fails in an outage is tried again.
func (c *maintenance) run(ctx context.Context) {
	for ctx.Err() == nil {
		c.again(ctx, "pause", c.hold)
		backoff.Sleep(ctx, pausedFor*c.every)
		c.again(ctx, "lift", c.lift)
		backoff.Sleep(ctx, freeFor*c.every)
	}
}

// again tries until it has worked or ctx has ended.
func (c *maintenance) again(ctx context.Context, what string, do func(context.Context) error) {
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, callTimeout)
		err := do(limited)
		cancel()
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			c.progress.Report("%s: %v (again in a second)", what, err)
		}
		backoff.Sleep(ctx, time.Second)
	}
}

func (c *maintenance) hold(ctx context.Context) (err error) {
	for _, canvas := range c.canvases {
		_, failed := c.rules.Add(ctx, operate.PauseRule, eventqueue.Scope{Canvas: canvas, Module: module, Name: handlerHeld})
		err = errors.Join(err, failed)
	}
	return err
}

func (c *maintenance) lift(ctx context.Context) (err error) {
	for _, canvas := range c.canvases {
		_, _, failed := c.rules.Lift(ctx, operate.PauseRule, eventqueue.Scope{Canvas: canvas, Module: module, Name: handlerHeld})
		err = errors.Join(err, failed)
	}
	return err
}
