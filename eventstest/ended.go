package eventstest

import (
	"fmt"
	"strings"

	"eventsv2/eventqueue"
)

// State is whether an event waits, runs, or how it has ended.
type State string

// The states of events.
const (
	Waiting   State = "waiting" // due
	Delayed   State = "delayed" // by its emit, a retry, a snooze or a limit
	Running   State = "running" // or begun with Begin
	Expired   State = "expired" // begun with Begin, longer ago than the lock timeout: due again
	Paused    State = "paused"
	Blocked   State = "blocked"
	Behind    State = "behind" // waits for others of its ordering key, or for a limit
	Completed State = "completed"
	Failed    State = "failed"
	Cancelled State = "cancelled"

	// Gone is the state of an event that was deleted, or never was.
	Gone State = "gone"
)

// State returns the state of an event.
func (q *Queue) State(id eventqueue.EventID) State {
	q.t.Helper()
	shown, err := q.reader.Show(q.t.Context(), id)
	q.must("look at an event", err)
	switch {
	case shown.Queued != nil:
		return State(shown.Queued.State)
	case shown.Logged != nil:
		return State(strings.ToLower(string(shown.Logged.Status)))
	default:
		return Gone
	}
}

// RequireState fails the test unless an event is in a state.
func (q *Queue) RequireState(id eventqueue.EventID, want State) {
	q.t.Helper()
	if got := q.State(id); got != want {
		q.t.Fatalf("eventstest: event %s is %s, want %s\n%s", id, got, want, q.history(id))
	}
}

// Attempts returns the runs of an event in Work, Drain and RunCron, in their order.
func (q *Queue) Attempts(id eventqueue.EventID) (attempts []Attempt) {
	for _, a := range q.attempts {
		if a.Event == id {
			attempts = append(attempts, a)
		}
	}
	return attempts
}

// RequireAttempts fails the test unless an event has run so often, in Work, Drain and RunCron.
func (q *Queue) RequireAttempts(id eventqueue.EventID, want int) {
	q.t.Helper()
	if got := len(q.Attempts(id)); got != want {
		q.t.Fatalf("eventstest: event %s has had %s, want %d\n%s", id, counted(got), want, q.history(id))
	}
}

func counted(attempts int) string {
	if attempts == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", attempts)
}

// RequireError fails the test unless the last run of an event has failed with an error whose text contains text.
func (q *Queue) RequireError(id eventqueue.EventID, text string) {
	q.t.Helper()
	attempts := q.Attempts(id)
	if len(attempts) == 0 {
		q.t.Fatalf("eventstest: event %s has not run, want an error with %q\n%s", id, text, q.history(id))
	}
	switch err := attempts[len(attempts)-1].Err; {
	case err == nil:
		q.t.Fatalf("eventstest: the last run of event %s has no error, want one with %q\n%s", id, text, q.history(id))
	case !strings.Contains(err.Error(), text):
		q.t.Fatalf("eventstest: the last run of event %s failed with %q, want an error with %q\n%s", id, err, text, q.history(id))
	}
}

// history says what has become of an event.
func (q *Queue) history(id eventqueue.EventID) string {
	q.t.Helper()
	var lines []string
	for i, a := range q.Attempts(id) {
		line := fmt.Sprintf("\trun %d by %s: %s", i+1, a.Handler, a.Label)
		if a.Err != nil {
			line += ": " + shortened(a.Err.Error())
		}
		if a.Delay > 0 {
			line += fmt.Sprintf("; again in %s", a.Delay)
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		lines = []string{"\tit has not run"}
	}
	if state := q.State(id); state == Gone {
		lines = append(lines, "\tthere is no such event")
	} else if state != Completed && state != Failed {
		explained, err := q.reader.Explain(q.t.Context(), id)
		q.must("explain an event", err)
		if queued := explained.Shown.Queued; queued != nil {
			lines = append(lines, "\t"+q.whyNotOf(queued, ""))
		}
	}
	return strings.Join(lines, "\n")
}
