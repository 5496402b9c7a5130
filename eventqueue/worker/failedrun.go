package worker

import (
	"time"

	"eventsv2/eventqueue"
)

// FailedRun is a failed attempt of an event, for [Config.OnError].
type FailedRun struct {
	// Event is the event; its Retries count the runs that failed before this one. Of a run that was lost with its worker
	// it has no Value if that is larger than [MaxClaimedValueBytes]. Do not change what it refers to.
	Event eventqueue.Event

	// Attempt is that of [eventqueue.Run]; of a run that was lost with its worker, that of the claim
	// before the one that has found it.
	Attempt int32

	// Last reports whether the event has ended: it is FAILED, as its retries are used up or the error is Permanent, or was cancelled.
	// Otherwise it is tried again after RetryIn.
	Last    bool
	RetryIn time.Duration

	// Err is the error of the handler. Stack is that of its panic, and nil if it has not panicked.
	Err   error
	Stack []byte

	// Duration is how long the handler ran; 0 for a run that was lost.
	Duration time.Duration
}
