package view

import (
	"fmt"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/humantime"
)

// Refusal is an event that was not changed, and why.
type Refusal struct {
	ID     eventqueue.EventID `json:"id"`
	Reason string             `json:"reason"`
}

// RefusalOf says why an event was not changed, and what to do. The error of a database that refuses it is not part of it, since
// whoever is told may not be meant to read that.
func RefusalOf(r operate.Changed) Refusal { return Refusal{r.ID, refusalReason(r)} }

// String is the refusal as a sentence without its end.
func (r Refusal) String() string { return fmt.Sprintf("event %s %s", r.ID, r.Reason) }

func refusalReason(r operate.Changed) string {
	switch r.Result {
	case operate.ChangeRunning:
		return fmt.Sprintf("is running: a worker holds its lock, which is valid for %s more; wait for its end, or, if the worker is dead, until then",
			humantime.AgeAtLeast(r.LockRemaining))
	case operate.ChangeBusy:
		return "is being claimed, ended or changed at this moment: look at it again, and try again"
	case operate.ChangeCompleted:
		return "has completed: emit a new event to have it done again"
	case operate.ChangeFailed:
		return "has failed: a retry moves it back into the queue"
	case operate.ChangeCancelled:
		return "was cancelled: a retry moves it back into the queue"
	case operate.ChangeOutdated:
		return "has been changed since it was read: its value or its attributes are others; read it again"
	case operate.RetryQueued:
		return "is not failed, or already back in the queue"
	case operate.ChangeRefused:
		return "cannot be changed, because the database refuses"
	default:
		return "is neither in the queue nor in event_log"
	}
}
