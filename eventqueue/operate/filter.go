package operate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"eventsv2/eventqueue"
)

// EventState is whether an event may run, or why not, at one moment of the database's clock, or how it
// ended. An event that a worker runs is StateRunning, even if a rule or a delay applies as well. For
// any other event of the queue the first of rule, delay and lock that applies decides.
type EventState string

// The states of an event that has not ended, beside those of the kinds of rules, and the states of one that has.
const (
	StateWaiting   EventState = "waiting"   // due and free: a worker may claim it
	StateDelayed   EventState = "delayed"   // not due yet
	StateRunning   EventState = "running"   // its lock is held
	StateExpired   EventState = "expired"   // its lock ran out: the next claim takes it over
	StateBehind    EventState = "behind"    // due and free, but others of its ordering group are before it
	StateFailed    EventState = "failed"    // it is in event_log, as FAILED
	StateCancelled EventState = "cancelled" // it is in event_log, as CANCELLED
	StateCompleted EventState = "completed" // it is in event_log, as COMPLETED: only if the history is retained
)

// QueuedStates lists the states of events that have not ended, in the order in which they are shown.
func QueuedStates() []EventState {
	states := []EventState{StateWaiting, StateDelayed, StateRunning}
	for _, kind := range ruleKinds {
		states = append(states, kind.State)
	}
	return append(states, StateExpired, StateBehind)
}

// LoggedStates lists the states of events that can be retried.
func LoggedStates() []EventState { return []EventState{StateFailed, StateCancelled} }

// EndedStates lists the states of events that can be replayed: of all that are in event_log.
func EndedStates() []EventState { return append(LoggedStates(), StateCompleted) }

// EventFilter selects events of the queue, or of event_log, by all of its fields that are set. One has
// to be.
type EventFilter struct {
	Canvas                 *eventqueue.CanvasID
	Module, Name, Modifier string
	// Attributes are pairs that the events have to have.
	Attributes map[string]string
	// Error is a part of the error of an event's last failed attempt; in event_log, of that with which
	// it failed.
	Error string
	// ErrorGroup is the group of that error, exactly as the function ErrorGroup names it.
	ErrorGroup string
	// OlderThan selects events that were emitted longer ago, in event_log those that ended longer ago,
	// and NewerThan those of which that is less long ago.
	OlderThan, NewerThan time.Duration
	// State is one of QueuedStates for the queue; empty: any. For event_log it is one of LoggedStates;
	// empty: StateFailed. For a replay it is one of EndedStates; empty: StateCompleted.
	State EventState
}

// ValidateQueued refuses a filter that would select every event of the queue, and names the first
// invalid field.
func (f EventFilter) ValidateQueued() error {
	if f.State != "" && !slices.Contains(QueuedStates(), f.State) {
		return fmt.Errorf("state: %q is not a state of events in the queue", f.State)
	}
	return f.validate(f.State != "")
}

// ValidateLogged is ValidateQueued for event_log, where a state alone selects too much.
func (f EventFilter) ValidateLogged() error {
	if f.State != "" && !slices.Contains(LoggedStates(), f.State) {
		return fmt.Errorf("state: %q is not a state of events that can be retried", f.State)
	}
	return f.validate(false)
}

// ValidateEnded is ValidateLogged for a replay, which completed events have as well.
func (f EventFilter) ValidateEnded() error {
	if f.State != "" && !slices.Contains(EndedStates(), f.State) {
		return fmt.Errorf("state: %q is not a state of events that have ended", f.State)
	}
	return f.validate(false)
}

func (f EventFilter) validate(selective bool) error {
	for _, field := range []struct{ name, text string }{{"module", f.Module}, {"name", f.Name}, {"modifier", f.Modifier}} {
		if err := eventqueue.CheckName(field.text); field.text != "" && err != nil {
			return fmt.Errorf("%s: %w", field.name, err)
		}
	}
	switch {
	case f.Canvas != nil && *f.Canvas == eventqueue.CanvasID{}:
		return errors.New("canvas_id: is missing: the zero uuid names no canvas")
	case f.OlderThan < 0:
		return fmt.Errorf("older than: %s is negative", f.OlderThan)
	case f.NewerThan < 0:
		return fmt.Errorf("newer than: %s is negative", f.NewerThan)
	case !selective && f.Canvas == nil && f.Module == "" && f.Name == "" && f.Modifier == "" && len(f.Attributes) == 0 && f.Error+f.ErrorGroup == "" && f.OlderThan == 0 && f.NewerThan == 0:
		return errors.New("the filter is empty, and would select every event: set one of its fields")
	default:
		return errors.Join(checkText(f.Error, MaxErrorPartBytes), checkText(f.ErrorGroup, MaxErrorGroupBytes))
	}
}

// MaxErrorPartBytes is how long the part of an error in a filter may be.
const MaxErrorPartBytes = 8 << 10
