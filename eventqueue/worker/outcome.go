package worker

import (
	"strconv"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/internal/logkey"
)

// Outcome is the result of one try to run an event: the one vocabulary for logs, counters and
// tests.
type Outcome struct {
	Event   eventqueue.EventID
	Canvas  eventqueue.CanvasID
	Handler eventqueue.HandlerKey

	// Label is the last arrow followed and To where it led: Process when a run
	// begins, Queue when the notification goes back, End when it is dropped.
	Label machine.Label
	To    machine.State

	// Attempt and ClaimID are the fence when the event was claimed.
	Attempt int32
	ClaimID eventqueue.ClaimID
	// TakenOver reports whether the claim took over an expired lock.
	TakenOver bool
	// Delay is the wait before the next try, when there is one.
	Delay time.Duration
	// Err is the error of a run that failed.
	Err error
	// Duration is how long the handler ran.
	Duration time.Duration
	// Traceparent is the W3C trace context of the emitter, or empty.
	Traceparent string
}

// reporter reports outcomes to the log and the observer.
type reporter struct {
	part
	unknown *unknown
	tally   tally
}

// report logs an outcome and passes it to the observer.
func (r *reporter) report(out Outcome) {
	r.config.Observe(out)
	level := zap.DebugLevel
	message := "checked an event without running it"
	switch {
	case out.Label == machine.HandlerUnknown && r.unknown.shouldWarn(out.Handler):
		level, message = zap.WarnLevel, "this worker has no handler for the event; left for another worker"
	case out.Attempt != 0 && out.Label != machine.OverLimit: // which is no run
		level, message = r.ended(out.Label)
		r.tally.count(out.Label)
	}
	r.logOutcome(level, message, &out)
}

// ended returns how the end of a run is logged: what may need attention stands out, also
// among a million events that succeed.
func (r *reporter) ended(label machine.Label) (zapcore.Level, string) {
	switch label {
	case machine.RetryTooMany, machine.FailedForGood:
		return zap.ErrorLevel, "event run failed, and the event is FAILED"
	case machine.RetryAllowed:
		return zap.WarnLevel, "event run failed; it is tried again"
	case machine.Cancelled:
		return zap.InfoLevel, "event run ended, and the event is CANCELLED: an operator cancelled it"
	case machine.LockLost, machine.Exception:
		return zap.WarnLevel, "event run ended, but its end could not be written; the event may run again"
	default:
		if r.config.LogEvents {
			return zap.InfoLevel, "event run ended"
		}
		return zap.DebugLevel, "event run ended"
	}
}

func (r *reporter) logOutcome(level zapcore.Level, message string, out *Outcome) {
	entry := r.log.Check(level, message)
	if entry == nil {
		return
	}
	fields := []zap.Field{
		zap.Stringer(logkey.Event, out.Event),
		zap.Stringer(logkey.Canvas, out.Canvas),
		zap.Stringer(logkey.Handler, out.Handler),
		zap.String(logkey.Label, string(out.Label)),
	}
	if out.Delay != 0 {
		fields = append(fields, zap.Duration(logkey.Delay, out.Delay))
	}
	if out.Attempt != 0 {
		fields = append(fields, zap.Int32(logkey.Attempt, out.Attempt), zap.Duration(logkey.Duration, out.Duration))
	}
	if out.ClaimID != 0 { // a string: many readers of JSON retain 53 bits of a number only
		fields = append(fields, zap.String(logkey.Claim, strconv.FormatInt(int64(out.ClaimID), 10)))
	}
	if out.Traceparent != "" {
		fields = append(fields, zap.String(logkey.Traceparent, out.Traceparent))
	}
	if out.Err != nil {
		fields = append(fields, shownError(out.Err)...)
	}
	if level == zap.ErrorLevel {
		fields = append(fields, zap.String(logkey.Remedy, "fix the cause, then: eventctl retry "+out.Event.String()))
	}
	entry.Write(fields...)
}
