package main

import (
	"strconv"
	"time"

	"eventsv2/test/attack/chaos/check"
)

// The settings of the run, beside lockTimeout: everything is short, so that much happens.
const (
	relayInterval  = 2 * time.Second
	relayLostAfter = 3 * time.Second
)

// environment is what all programs get beside their own connections.
func environment() map[string]string {
	return map[string]string{
		"LOCK_TIMEOUT":        check.LockTimeout.String(),
		"WORKER_CONCURRENCY":  "60",
		"WORKER_CLAIM_BATCH":  strconv.Itoa(check.ClaimBatch),
		"WORKER_GRACE_PERIOD": "2s",
		"RETAIN_HISTORY":      "true",
		"RELAY_INTERVAL":      relayInterval.String(),
		"RELAY_LOST_AFTER":    relayLostAfter.String(),
		"PORT":                "0",
		"LOG_LEVEL":           "info",
		"LOG_EVENTS":          "all",
	}
}
