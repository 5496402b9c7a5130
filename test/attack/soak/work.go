package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/test/webtarget"
)

// The handlers of the soak, by their names.
const (
	module   = "SOAK"
	modifier = "_"

	handlerPlain   = "plain"
	handlerDelayed = "delayed" // due in one to five seconds
	handlerFlaky   = "flaky"   // fails the first time
	handlerSlow    = "slow"    // runs for longer than a lock lasts without a heartbeat
	handlerHeld    = "held"    // paused most of the time
	cronName       = "tick"    // emitted by the cron checker
)

// slowRun is longer than lockTimeout, so that heartbeats have to hold the lock.
const slowRun = lockTimeout + 2*time.Second

// handlers are those that workers have to know. A worker that is killed costs its events an
// attempt, so the retries are many: no event may end as FAILED.
func handlers() []webtarget.Handler {
	keys := []eventqueue.HandlerKey{{Module: cronchecker.Module, Name: cronName, Modifier: cronchecker.Modifier}}
	for _, name := range []string{handlerPlain, handlerDelayed, handlerFlaky, handlerSlow, handlerHeld} {
		keys = append(keys, eventqueue.HandlerKey{Module: module, Name: name, Modifier: modifier})
	}
	all := make([]webtarget.Handler, len(keys))
	for i, key := range keys {
		all[i] = webtarget.Handler{Key: key, Timeout: 30 * time.Second, MaxRetries: 100, BackoffBase: 500 * time.Millisecond, BackoffMax: 5 * time.Second}
	}
	return all
}

// errOnPurpose is the failure of an event that is to fail once.
var errOnPurpose = errors.New("fails the first time, on purpose")

// perform is the work of an event of the given handler.
func perform(ctx context.Context, name string, retries int) error {
	switch {
	case name == handlerFlaky && retries == 0:
		return errOnPurpose
	case name == handlerSlow:
		if !backoff.Sleep(ctx, slowRun) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// payload is the value of an event of the soak.
type payload struct {
	Serial  int64  `json:"serial"`
	Padding string `json:"padding"`
}

// valueOf is the value of the event with a serial number: everybody knows
// what it has to be, byte for byte (I8).
func valueOf(serial int64) []byte {
	text, err := json.Marshal(payload{serial, strings.Repeat("ö7", int(serial%150))})
	if err != nil {
		panic(err) // a number and a string always have a JSON text
	}
	return text
}

// serialOf reads a value and refuses one that nobody emitted.
func serialOf(value []byte) (int64, error) {
	var p payload
	if err := json.Unmarshal(value, &p); err != nil {
		return 0, fmt.Errorf("the value %q is not ours: %w", value, err)
	}
	if p.Serial < 0 || string(valueOf(p.Serial)) != string(value) {
		return 0, fmt.Errorf("the value %q is not what was emitted", value)
	}
	return p.Serial, nil
}
