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
	// TakenOver says that the claim took over an expired lock.
	TakenOver bool
	// Delay is the wait before the next try, when there is one.
	Delay time.Duration
	// Err is the error of a run that failed.
	Err error
	// Duration is how long the handler ran.
	Duration time.Duration
}

// reporter reports outcomes to the log and the observer.
type reporter struct {
	part
	unknown *unknown
}

// report logs an outcome and passes it to the observer.
func (w *reporter) report(out Outcome) {
	w.config.Observe(out)
	level := zap.DebugLevel
	message := "checked an event without running it"
	switch {
	case out.Label == machine.HandlerUnknown && w.unknown.shouldWarn(out.Handler):
		level, message = zap.WarnLevel, "this worker has no handler for the event; left for another worker"
	case out.Attempt != 0 && out.Label != machine.OverLimit: // which is no run
		level, message = zap.InfoLevel, "event run ended"
	}
	w.logOutcome(level, message, &out)
}

func (w *reporter) logOutcome(level zapcore.Level, message string, out *Outcome) {
	entry := w.log.Check(level, message)
	if entry == nil {
		return
	}
	fields := []zap.Field{
		zap.Stringer(logkey.Event, out.Event),
		zap.Stringer(logkey.Canvas, out.Canvas),
		zap.Stringer(logkey.Handler, out.Handler),
		zap.String(logkey.Label, string(out.Label)),
		zap.Duration(logkey.Delay, out.Delay),
	}
	if out.Attempt != 0 {
		fields = append(fields, zap.Int32(logkey.Attempt, out.Attempt), zap.Duration(logkey.Duration, out.Duration))
	}
	if out.ClaimID != 0 { // a string: many readers of JSON retain 53 bits of a number only
		fields = append(fields, zap.String(logkey.Claim, strconv.FormatInt(int64(out.ClaimID), 10)))
	}
	if out.Err != nil {
		fields = append(fields, zap.Error(out.Err))
	}
	entry.Write(fields...)
}
