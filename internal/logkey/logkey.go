// Package logkey has the keys of log fields that several packages use, so that a field has
// one meaning in all lines.
package logkey

// Keys of log fields.
const (
	Event    = "event_id"
	Canvas   = "canvas_id"
	Handler  = "handler"
	Label    = "label"
	Claim    = "claim_id"
	Attempt  = "attempt"
	Retries  = "retries"
	Count    = "count"
	Delay    = "delay"
	Duration = "duration"
	Stack    = "stack"
	Wait     = "retry_in"
	Reason   = "reason"
	Remedy   = "remedy" // what to do

	LockTimeout = "lock_timeout"
	ClaimTakes  = "claim_takes_at_most"

	// Traceparent is a W3C trace context, of which the programs' JSON makes Google's fields.
	Traceparent = "traceparent"

	MaxEvents = "max_events"
	TTL       = "ttl"
)
