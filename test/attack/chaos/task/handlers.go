package task

import (
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/webtarget"
)

// Module is that of all events of the chaos run but those that cron emits.
const Module = "CHAOS"

// MaxRetries is enough for what goes wrong on purpose and for several faults.
const MaxRetries = 8

// CronName is the name of the cron definition of the chaos run.
const CronName = "every_minute"

// Handlers lists the handlers that every worker has. Their waits are short.
func Handlers() (all []webtarget.Handler) {
	for _, h := range []struct {
		module, name string
		timeout      time.Duration
	}{
		{Module, "quick", 10 * time.Second},
		{Module, "busy", 10 * time.Second},
		{Module, "slow", 20 * time.Second}, // its runs take longer than a lock lasts: only heartbeats hold it
		{Module, "stubborn", time.Second},
		{"CRON", CronName, 10 * time.Second},
	} {
		all = append(all, webtarget.Handler{Key: eventqueue.HandlerKey{Module: h.module, Name: h.name, Modifier: "_"},
			Timeout: h.timeout, MaxRetries: MaxRetries, BackoffBase: 200 * time.Millisecond, BackoffMax: 2 * time.Second})
	}
	return all
}

// TimeoutOf is the timeout of a handler, by its name.
func TimeoutOf(name string) time.Duration {
	for _, h := range Handlers() {
		if h.Key.Name == name {
			return h.Timeout
		}
	}
	return time.Minute
}
