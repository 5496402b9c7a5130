package operate

import (
	"encoding/json"
	"fmt"
	"time"

	"eventsv2/eventqueue"
)

// Verb is the change that an operation makes.
type Verb string

// The verbs.
const (
	VerbCancel      Verb = "cancel"       // ends events: those that wait without a run, and the runs of the others
	VerbDelete      Verb = "delete"       // deletes events that wait
	VerbRun         Verb = "run"          // has events that wait tried now
	VerbEdit        Verb = "edit"         // changes events that wait
	VerbRetry       Verb = "retry"        // moves failed or cancelled events back into the queue
	VerbDeleteEnded Verb = "delete_ended" // deletes failed or cancelled events from event_log
	VerbReplay      Verb = "replay"       // emits events that have ended again, as new events
)

// unreadable is the verb of an operation whose row has no change: one that SQL wrote. It is listed with the others, and fails when it runs.
const unreadable Verb = "unreadable"

// Change is the change of an operation, and the filter of its events.
type Change struct {
	Verb   Verb
	Filter EventFilter
	// Reason is why events are cancelled, and Actor by whom; only of VerbCancel. An empty Actor stands for the
	// identity that counted them.
	Reason, Actor string
	// Edit is the edit of VerbEdit, or of VerbRetry for the events that it moves; otherwise zero.
	Edit Edit
	// Rate is how many events become due in a second, at most, from MinReplayRate to MaxReplayRate; only of VerbReplay, of which 0 is DefaultReplayRate.
	Rate float64
}

// The rates of a replay, in events per second.
const (
	DefaultReplayRate = 100
	MinReplayRate     = 0.001
	MaxReplayRate     = 10_000
)

// Validate names the first field that makes no sense, or that the limits of a queue do not allow.
func (c Change) Validate(limits eventqueue.Limits) error {
	if c.Reason+c.Actor != "" && c.Verb != VerbCancel {
		return fmt.Errorf("reason: only a cancellation has one, and this is to %s", c.Verb)
	}
	if c.edits() && c.Verb != VerbEdit && c.Verb != VerbRetry {
		return fmt.Errorf("edit: to %s changes no value, attributes or time: leave it out", c.Verb)
	}
	if c.edits() || c.Verb == VerbEdit {
		if err := c.Edit.Check(limits); err != nil {
			return err
		}
	}
	if c.Rate != 0 && c.Verb != VerbReplay {
		return fmt.Errorf("rate: only a replay has one, and this is to %s", c.Verb)
	}
	switch c.Verb {
	case VerbCancel:
		if err := (Cancellation{c.Reason, c.Actor}).Validate(); err != nil {
			return err
		}
		return c.Filter.ValidateQueued()
	case VerbDelete, VerbRun, VerbEdit:
		return c.Filter.ValidateQueued()
	case VerbRetry, VerbDeleteEnded:
		return c.Filter.ValidateLogged()
	case VerbReplay:
		if c.Rate != 0 && (!(c.Rate >= MinReplayRate) || c.Rate > MaxReplayRate) {
			return fmt.Errorf("rate: is %v events per second: it must be from %v to %d", c.Rate, MinReplayRate, MaxReplayRate)
		}
		return c.Filter.ValidateEnded()
	default:
		return fmt.Errorf("verb: %q is none of cancel, delete, run, edit, retry, delete_ended and replay", c.Verb)
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
	Actor      string            `json:"actor,omitempty"`
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
	ErrorGroup string               `json:"error_group,omitempty"`
	OlderThan  time.Duration        `json:"older_than_ns,omitempty"`
	NewerThan  time.Duration        `json:"newer_than_ns,omitempty"`
	State      EventState           `json:"state,omitempty"`
}

// plainFilter is a filterDocument as encoding/json writes it.
type plainFilter filterDocument

// groupDocument stands in place of the error of a filter that has a group of errors. Programs of a version that knows no
// groups cannot read it: without the group they would change all failed events of the handler.
type groupDocument struct {
	Group string `json:"group"`
	Part  string `json:"part,omitempty"`
}

// MarshalJSON writes what UnmarshalJSON reads.
func (f filterDocument) MarshalJSON() ([]byte, error) {
	if f.ErrorGroup == "" {
		return json.Marshal(plainFilter(f))
	}
	return json.Marshal(struct {
		plainFilter
		Error      groupDocument `json:"error"`
		ErrorGroup string        `json:"error_group,omitempty"` // in place of that of plainFilter: none
	}{plainFilter(f), groupDocument{f.ErrorGroup, f.Error}, ""})
}

// UnmarshalJSON reads an error that is a text, and one that is a group.
func (f *filterDocument) UnmarshalJSON(text []byte) error {
	var d struct {
		plainFilter
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return err
	}
	*f = filterDocument(d.plainFilter)
	if len(d.Error) == 0 {
		return nil
	}
	if d.Error[0] != '{' {
		return json.Unmarshal(d.Error, &f.Error)
	}
	var group groupDocument
	err := json.Unmarshal(d.Error, &group)
	f.Error, f.ErrorGroup = group.Part, group.Group
	return err
}

func documentOf(c Change) document {
	d := document{Verb: c.Verb, Filter: filterDocument(c.Filter), Reason: c.Reason, Actor: c.Actor, Attributes: c.Edit.Attributes, Delay: c.Edit.Delay, DelayUntil: c.Edit.DelayUntil, Rate: c.Rate}
	if c.Edit.Value != nil {
		d.Value = new(string(c.Edit.Value))
	}
	return d
}

func (d document) change() Change {
	c := Change{Verb: d.Verb, Filter: EventFilter(d.Filter), Reason: d.Reason, Actor: d.Actor, Rate: d.Rate,
		Edit: Edit{Attributes: d.Attributes, Delay: d.Delay, DelayUntil: d.DelayUntil}}
	if d.Value != nil {
		c.Edit.Value = json.RawMessage(*d.Value)
	}
	return c
}

// target describes an operation in the audit log, without values, which need a right of their own.
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
