package eventctl

import (
	"fmt"
	"strings"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/printing"
)

// refusal is an event that was refused, and not changed.
type refusal struct {
	ID     eventqueue.EventID `json:"id"`
	Reason string             `json:"reason"`
}

// refusedError names the events that were refused; nil when there are none.
func refusedError(what string, refused []refusal) error {
	if len(refused) == 0 {
		return nil
	}
	lines := make([]string, len(refused))
	for i, r := range refused {
		lines[i] = fmt.Sprintf("event %s %s", r.ID, r.Reason)
	}
	return notFound("%s: %s", what, strings.Join(lines, "; "))
}

// refusalOf says why an event was not changed, and what to do.
func refusalOf(r operate.Changed) refusal { return refusal{r.ID, refusalReason(r)} }

func refusalReason(r operate.Changed) string {
	switch r.Result {
	case operate.ChangeRunning:
		return fmt.Sprintf("is running: a worker holds its lock, which is valid for %s more; wait for its end, or, if the worker is dead, until then",
			printing.AgeAtLeast(r.LockRemaining))
	case operate.ChangeBusy:
		return "is being claimed, ended or changed at this moment: look at it with eventctl show, and try again"
	case operate.ChangeCompleted:
		return "has completed: emit a new event to have it done again"
	case operate.ChangeFailed:
		return fmt.Sprintf("has failed: eventctl retry %s moves it back into the queue", r.ID)
	case operate.ChangeCancelled:
		return fmt.Sprintf("was cancelled: eventctl retry %s moves it back into the queue", r.ID)
	case operate.ChangeOutdated:
		return "has been changed since it was read"
	case operate.RetryQueued:
		return "is not failed, or already back in the queue"
	case operate.ChangeRefused:
		return "cannot be changed, because the database refuses: " + r.Err.Error()
	default:
		return "is neither in the queue nor in event_log"
	}
}
