package view

import (
	"fmt"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
)

// Explanation is why an event does not run now.
type Explanation struct {
	ID       eventqueue.EventID `json:"id"`
	AsOf     time.Time          `json:"as_of"`
	Items    []Reason           `json:"items" nullable:"false" doc:"The first decides; those after it would keep the event once it is gone."`
	Original eventqueue.EventID `json:"replayed_from,omitempty" doc:"The event that it repeats, if it was emitted again from the history."`
}

// Reason is one thing that keeps an event from running, or that it does run or has ended.
type Reason struct {
	Label  machine.Label `json:"label" doc:"The arrow of the state machine, or Cancelled."`
	Why    string        `json:"why"`
	Remedy string        `json:"remedy,omitempty" doc:"What would change that."`
}

// ExplanationOf is why an event does not run.
func ExplanationOf(e inspect.Explanation) Explanation {
	return Explanation{e.ID, e.AsOf.UTC(), All(e.Reasons, func(r inspect.Reason) Reason { return Reason(r) }), operate.OriginalOf(e.Shown.Attributes())}
}

// Attempt is a run of an event that has ended.
type Attempt struct {
	Attempt   int32                   `json:"attempt" doc:"Number of the claim."`
	StartedAt time.Time               `json:"started_at"`
	Duration  Seconds                 `json:"duration_seconds"`
	Worker    eventqueue.WorkerNumber `json:"worker,omitempty"`
	Outcome   string                  `json:"outcome" enum:"failed,completed"`
	Error     string                  `json:"error,omitempty"`
	Stack     string                  `json:"stack,omitempty" doc:"Of a handler that panicked: the beginning, of 8 KiB or less."`
	RunLog    string                  `json:"run_log,omitempty" doc:"For readers of values: the last lines that were logged with the context of the run, if the program attaches them."`

	known *Process
}

// AttemptsOf are the failed attempts of an event that are known, the oldest first, and the run that has completed it.
func AttemptsOf(shown inspect.Shown) Page[Attempt] {
	return ListOf(shown.Attempts, func(a inspect.Attempt) Attempt {
		attempt := Attempt{a.Attempt, a.StartedAt.UTC(), Seconds(a.Duration.Seconds()), a.Worker, "failed", a.Error, a.Stack, a.RunLog, nil}
		if a.Completed {
			attempt.Outcome = "completed"
		}
		if w, known := shown.Workers[a.Worker]; known {
			attempt.known = new(processOf(w))
		}
		return attempt
	})
}

// WithoutLogs are attempts as those see them who may not read values.
func WithoutLogs(attempts []Attempt) []Attempt {
	return All(attempts, func(a Attempt) Attempt {
		a.RunLog = ""
		return a
	})
}

// LogApart is the log of the run that ended an event, if it is not that of the last attempt that is known.
func LogApart(log string, attempts []Attempt) string {
	if n := len(attempts); n > 0 && attempts[n-1].RunLog == log {
		return ""
	}
	return log
}

// RunBy names the worker of an attempt, by its number if it ended long ago; "" if it is not known.
func (a Attempt) RunBy() string {
	switch {
	case a.known != nil:
		return a.known.Place()
	case a.Worker == 0:
		return ""
	default:
		return fmt.Sprintf("#%d", a.Worker)
	}
}

// StuckEvent is an event that makes no progress.
type StuckEvent struct {
	Event
	Reasons []inspect.StuckReason `json:"reasons"`
	Since   time.Time             `json:"stuck_since" doc:"When the first reason began."`
}

// StuckEventOf is an event that makes no progress.
func StuckEventOf(e inspect.StuckEvent) StuckEvent {
	return StuckEvent{EventOf(e.QueuedEvent), e.Reasons, e.Since.UTC()}
}

// Why lists the reasons.
func (e StuckEvent) Why() string {
	return strings.Join(All(e.Reasons, func(r inspect.StuckReason) string { return string(r) }), ", ")
}
