package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// EventFilter selects events by all of its fields that are set.
type EventFilter struct {
	Canvas     *eventqueue.CanvasID `json:"canvas_id,omitempty" format:"uuid" doc:"Absent: all canvases, for tokens that are for all."`
	Module     string               `json:"module,omitempty" minLength:"1" maxLength:"255"`
	Name       string               `json:"name,omitempty" minLength:"1" maxLength:"255"`
	Modifier   string               `json:"modifier,omitempty" minLength:"1" maxLength:"255"`
	State      operate.EventState   `json:"state,omitempty" doc:"Of retry and delete_ended: failed, which is the default, or cancelled; of replay: completed, which is the default, failed or cancelled; of the others, one of those before."`
	Attributes map[string]string    `json:"attributes,omitempty" maxProperties:"16" doc:"Pairs that the events have to have."`
	Error      string               `json:"error,omitempty" minLength:"1" maxLength:"8192" doc:"A part of the error of the last failed attempt."`
	ErrorGroup string               `json:"error_group,omitempty" minLength:"1" maxLength:"240" doc:"The group of that error, as GET /v1/history/groups has it."`
	OlderThan  Seconds              `json:"older_than_seconds,omitempty" minimum:"0" maximum:"4000000000" doc:"Emitted longer ago; of retry, delete_ended and replay, ended longer ago."`
	NewerThan  Seconds              `json:"newer_than_seconds,omitempty" exclusiveMinimum:"0" maximum:"4000000000"`
}

// EventFilterOf is a filter.
func EventFilterOf(f operate.EventFilter) EventFilter {
	return EventFilter{f.Canvas, f.Module, f.Name, f.Modifier, f.State, f.Attributes, f.Error, f.ErrorGroup, Seconds(f.OlderThan.Seconds()), Seconds(f.NewerThan.Seconds())}
}

// Filter is the filter as it selects.
func (f EventFilter) Filter() operate.EventFilter {
	return operate.EventFilter{Canvas: f.Canvas, Module: f.Module, Name: f.Name, Modifier: f.Modifier, State: f.State, Attributes: f.Attributes, Error: f.Error, ErrorGroup: f.ErrorGroup,
		OlderThan: f.OlderThan.Duration(), NewerThan: f.NewerThan.Duration()}
}

// Operation is a change of many events.
type Operation struct {
	ID        uuid.UUID              `json:"id" format:"uuid" doc:"Confirms the operation, for whoever has counted it, until expires_at."`
	Verb      operate.Verb           `json:"verb" enum:"cancel,delete,run,edit,retry,delete_ended,replay"`
	Filter    EventFilter            `json:"filter"`
	Reason    string                 `json:"reason,omitempty"`
	Rate      float64                `json:"rate,omitempty"`
	Actor     string                 `json:"actor" doc:"Who has counted it, and so confirmed it."`
	Via       string                 `json:"via" doc:"By what: such as api, dashboard or eventctl."`
	State     operate.OperationState `json:"state" enum:"counted,running,done,stopped,failed"`
	Counted   int                    `json:"counted" doc:"How many events the filter selected."`
	Changed   int                    `json:"changed"`
	Running   int                    `json:"running" doc:"A worker runs them: refused, but by cancel, which has asked their workers to end the runs."`
	Busy      int                    `json:"busy" doc:"Refused: another transaction was writing them."`
	Refused   int                    `json:"refused" doc:"Refused by the database."`
	CountedAt time.Time              `json:"counted_at"`
	ExpiresAt *time.Time             `json:"expires_at,omitempty" doc:"Until when it can be confirmed."`
	StartedAt *time.Time             `json:"started_at,omitempty"`
	EndedAt   *time.Time             `json:"ended_at,omitempty"`
}

// OperationOf is a change of many events.
func OperationOf(o operate.Operation) Operation {
	op := Operation{ID: o.ID, Verb: o.Change.Verb, Filter: EventFilterOf(o.Change.Filter), Reason: o.Change.Reason, Rate: o.Change.Rate, Actor: o.By.Name, Via: o.By.Via, State: o.State,
		Counted: o.Counted, Changed: o.Changed, Running: o.Running, Busy: o.Busy, Refused: o.Refused, CountedAt: o.CountedAt.UTC(),
		StartedAt: Time(o.StartedAt), EndedAt: Time(o.EndedAt)}
	if o.State == operate.OperationCounted {
		op.ExpiresAt = Time(o.ExpiresAt)
	}
	return op
}

// Title names the operation at the beginning of a sentence.
func (o Operation) Title() string {
	if o.Verb == operate.VerbDeleteEnded {
		return Capital(string(operate.VerbDelete))
	}
	return Capital(string(o.Verb))
}

// Capital is a text at the beginning of a sentence.
func Capital(word string) string {
	if word == "" {
		return ""
	}
	return strings.ToUpper(word[:1]) + word[1:]
}

// What describes the operation in words.
func (o Operation) What() string {
	f, state := o.Filter, o.Filter.State
	if o.Verb == operate.VerbRetry {
		state = cmp.Or(state, operate.StateFailed)
	}
	if o.Verb == operate.VerbReplay {
		state = cmp.Or(state, operate.StateCompleted)
	}
	text := strings.TrimSpace(Capital(string(state)) + " events")
	if state == "" {
		text = "Events"
	}
	handler := cmp.Or(f.Name, f.Module)
	if f.Module != "" && f.Name != "" {
		handler = f.Module + " / " + f.Name
	}
	for _, part := range []struct{ before, what, after string }{
		{" of ", handler, ""}, {" with modifier ", f.Modifier, ""}, {" whose error contains “", f.Error, "”"}, {" whose error is “", f.ErrorGroup, "”, with any numbers as #"},
	} {
		if part.what != "" {
			text += part.before + part.what + part.after
		}
	}
	before := " with "
	for _, key := range slices.Sorted(maps.Keys(f.Attributes)) {
		text += before + key + "=" + f.Attributes[key]
		before = ", "
	}
	if f.OlderThan > 0 {
		text += " older than " + f.OlderThan.String()
	}
	if f.NewerThan > 0 {
		text += " newer than " + f.NewerThan.String()
	}
	if f.Canvas != nil {
		text += " on canvas " + f.Canvas.String()
	}
	return text
}

// PerSecond is the rate of a replay.
func (o Operation) PerSecond() float64 { return cmp.Or(o.Rate, operate.DefaultReplayRate) }

// Percent is how many of the counted events have been tried.
func (o Operation) Percent() int {
	if o.Counted == 0 {
		return 100
	}
	return 100 * min(o.Counted, o.Changed+o.Running+o.Busy+o.Refused) / o.Counted
}
