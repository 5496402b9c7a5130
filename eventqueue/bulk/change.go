package bulk

import (
	"encoding/json"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
)

// Verb is what an operation does to its events.
type Verb string

// The verbs.
const (
	Cancel Verb = "cancel" // ends events that wait, without a run
	Delete Verb = "delete" // deletes events that wait
	Run    Verb = "run"    // has events that wait tried now
	Edit   Verb = "edit"   // changes events that wait
	Retry  Verb = "retry"  // moves failed or cancelled events back into the queue
	Replay Verb = "replay" // emits events that have ended again, as new events
)

// unreadable is the verb of an operation whose row has no change: one that SQL wrote. It is listed with the others, and fails when it runs.
const unreadable Verb = "unreadable"

// Verbs lists the verbs.
func Verbs() []Verb { return []Verb{Cancel, Delete, Run, Edit, Retry, Replay} }

// Change is what an operation does, and to which events.
type Change struct {
	Verb   Verb
	Filter control.EventFilter
	// Reason is why events are cancelled; only of Cancel.
	Reason string
	// Edit is what Edit changes, and what Retry changes of the events that it moves; otherwise zero.
	Edit control.Edit
	// Rate is how many events become due in a second, at most, from MinRate to MaxRate; only of Replay, of which 0 is DefaultRate.
	Rate float64
}

// The rates of a replay, in events per second.
const (
	DefaultRate = 100
	MinRate     = 0.001
	MaxRate     = 10_000
)

// Validate names the first field that makes no sense, or that the limits of a queue do not allow.
func (c Change) Validate(limits eventqueue.Limits) error {
	if c.Reason != "" && c.Verb != Cancel {
		return fmt.Errorf("reason: only a cancellation has one, and this is to %s", c.Verb)
	}
	if c.edits() && c.Verb != Edit && c.Verb != Retry {
		return fmt.Errorf("edit: to %s changes no value, attributes or time: leave it out", c.Verb)
	}
	if c.edits() || c.Verb == Edit {
		if err := c.Edit.Check(limits); err != nil {
			return err
		}
	}
	if c.Rate != 0 && c.Verb != Replay {
		return fmt.Errorf("rate: only a replay has one, and this is to %s", c.Verb)
	}
	switch c.Verb {
	case Cancel:
		if err := (control.Cancellation{Reason: c.Reason}).Validate(); err != nil {
			return err
		}
		return c.Filter.ValidateQueued()
	case Delete, Run, Edit:
		return c.Filter.ValidateQueued()
	case Retry:
		return c.Filter.ValidateLogged()
	case Replay:
		if c.Rate != 0 && (!(c.Rate >= MinRate) || c.Rate > MaxRate) {
			return fmt.Errorf("rate: is %v events per second: it must be from %v to %d", c.Rate, MinRate, MaxRate)
		}
		return c.Filter.ValidateEnded()
	default:
		return fmt.Errorf("verb: %q is none of cancel, delete, run, edit, retry and replay", c.Verb)
	}
}

func (c Change) edits() bool {
	return c.Edit.Value != nil || c.Edit.Attributes != nil || c.Edit.Retimes()
}

// document is a Change as its row has it. The value is a text, so that it stays as it is, byte for byte.
type document struct {
	Verb       Verb              `json:"verb"`
	Filter     filterDocument    `json:"filter"`
	Reason     string            `json:"reason,omitempty"`
	Value      *string           `json:"value,omitempty"`
	Attributes map[string]string `json:"attributes"` // {} removes them all
	Delay      *time.Duration    `json:"delay_ns,omitempty"`
	DelayUntil time.Time         `json:"delay_until,omitzero"`
	Rate       float64           `json:"rate,omitempty"`
}

type filterDocument struct {
	Canvas     *eventqueue.CanvasID `json:"canvas_id,omitempty"`
	Module     string               `json:"module,omitempty"`
	Name       string               `json:"name,omitempty"`
	Modifier   string               `json:"modifier,omitempty"`
	Attributes map[string]string    `json:"attributes,omitempty"`
	Error      string               `json:"error,omitempty"`
	OlderThan  time.Duration        `json:"older_than_ns,omitempty"`
	NewerThan  time.Duration        `json:"newer_than_ns,omitempty"`
	State      control.EventState   `json:"state,omitempty"`
}

func documentOf(c Change) document {
	d := document{Verb: c.Verb, Filter: filterDocument(c.Filter), Reason: c.Reason, Attributes: c.Edit.Attributes, Delay: c.Edit.Delay, DelayUntil: c.Edit.DelayUntil, Rate: c.Rate}
	if c.Edit.Value != nil {
		d.Value = new(string(c.Edit.Value))
	}
	return d
}

func (d document) change() Change {
	c := Change{Verb: d.Verb, Filter: control.EventFilter(d.Filter), Reason: d.Reason, Rate: d.Rate,
		Edit: control.Edit{Attributes: d.Attributes, Delay: d.Delay, DelayUntil: d.DelayUntil}}
	if d.Value != nil {
		c.Edit.Value = json.RawMessage(*d.Value)
	}
	return c
}

// target is what the audit log has of an operation. Values are not in it: whoever reads them has the right to.
func target(o Operation) any {
	d := documentOf(o.Change)
	bytes := len(o.Change.Edit.Value)
	d.Value = nil
	return struct {
		Operation  string `json:"operation"`
		ValueBytes int    `json:"value_bytes,omitempty"`
		document
	}{o.ID.String(), bytes, d}
}
