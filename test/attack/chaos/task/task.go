package task

import (
	"encoding/json"
	"fmt"
	"time"
)

// Action is what an event asks for.
type Action string

// The actions. Those with Times go wrong so often and end well after that.
const (
	Succeed   Action = "succeed"   // works for a while and returns nil
	Fail      Action = "fail"      // returns an error, Times times
	Panic     Action = "panic"     // panics, Times times
	Permanent Action = "permanent" // says that trying again is of no use
	Snooze    Action = "snooze"    // asks for a later time, in its first Times claims
	Hang      Action = "hang"      // returns only when its context ends, Times times
	Deaf      Action = "deaf"      // works far past its timeout and its lock, Times times
	Complete  Action = "complete"  // completes in a transaction with its effect and a child
	Undo      Action = "undo"      // as Complete, but rolls that back Times times
)

// Task is the value of an event.
type Task struct {
	// Tag names the emit; no two events have the same.
	Tag string `json:"tag"`
	// Do is what the event asks for.
	Do Action `json:"do"`
	// Times is how often it goes wrong.
	Times int `json:"times,omitempty"`
	// WorkMillis is how long a run pretends to work.
	WorkMillis int `json:"work_ms,omitempty"`
	// OrderingKey and UniqueKey are the keys with which the event was emitted, and
	// UniqueSeconds is how long the second one holds after the end.
	OrderingKey   string `json:"ordering_key,omitempty"`
	UniqueKey     string `json:"unique_key,omitempty"`
	UniqueSeconds int    `json:"unique_seconds,omitempty"`
	// Odd is the number of what is odd about the row, which somebody wrote by hand; 0: nothing.
	Odd int `json:"odd,omitempty"`
	// Filler makes values differ in size and holds what must survive unharmed.
	Filler string `json:"filler,omitempty"`
}

// Parse reads a value.
func Parse(value []byte) (Task, error) {
	var t Task
	if err := json.Unmarshal(value, &t); err != nil {
		return t, fmt.Errorf("the value %.100q is no task: %w", value, err)
	}
	return t, nil
}

// Value is the task as the value of an event.
func (t Task) Value() json.RawMessage {
	value, err := json.Marshal(t)
	if err != nil {
		panic(fmt.Sprintf("task: strings and numbers do not become JSON: %v", err))
	}
	return value
}

// Work is how long a run pretends to work.
func (t Task) Work() time.Duration { return time.Duration(t.WorkMillis) * time.Millisecond }

// Now is what one run has to do: the action while it goes wrong, Succeed (or
// Complete) after that. attempt counts from 1.
func (t Task) Now(retries int, attempt int) Action {
	switch t.Do {
	case Fail, Panic, Hang, Deaf:
		if retries < t.Times {
			return t.Do
		}
		return Succeed
	case Snooze:
		if attempt <= t.Times {
			return Snooze
		}
		return Succeed
	case Undo:
		if retries < t.Times {
			return Undo
		}
		return Complete
	default:
		return t.Do
	}
}

// Child is the tag of the event that a run emits when it completes in a
// transaction.
func (t Task) Child() string { return t.Tag + "/child" }
