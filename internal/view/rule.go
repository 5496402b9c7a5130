package view

import (
	"fmt"
	"strings"
	"time"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/humantime"
)

// RuleScope is the scope of a rule: the handler of the name, unless it says more.
type RuleScope struct {
	Canvas   eventqueue.CanvasID `json:"canvas_id" format:"uuid" doc:"The zero uuid, with prefix: the whole queue."`
	Module   string              `json:"module" maxLength:"255"`
	Name     string              `json:"name" maxLength:"255"`
	Prefix   bool                `json:"prefix,omitempty" doc:"All handlers of the module whose names begin with name."`
	Modifier string              `json:"modifier,omitempty" minLength:"1" maxLength:"255" doc:"Only with this modifier. Absent: with any."`
}

// Rule is a pause or a block.
type Rule struct {
	Type operate.RuleType `json:"type"`
	RuleScope
	CreatedAt  *time.Time         `json:"created_at,omitempty"`
	Reason     string             `json:"reason,omitempty"`
	Actor      string             `json:"actor,omitempty" doc:"Who added it."`
	Until      *time.Time         `json:"until,omitempty" doc:"When cron lifts it. Absent: it stands until it is lifted."`
	Rate       int                `json:"rate_per_second,omitempty" doc:"It is being lifted: so many of the waiting events are let run in a second."`
	ReleasedTo eventqueue.EventID `json:"released_to,omitempty" doc:"The last event that was let run."`
}

// RuleOf is a rule.
func RuleOf(r operate.Rule) Rule {
	return Rule{r.Type, RuleScope{r.Canvas, r.Module, r.Name, r.Prefix, r.Modifier}, Time(r.CreatedAt), r.Reason, r.Actor, Time(r.Until), r.Rate, r.ReleasedTo}
}

// Scope is the scope of the rule.
func (s RuleScope) Scope() operate.RuleScope {
	return operate.RuleScope{Scope: eventqueue.Scope{Canvas: s.Canvas, Module: s.Module, Name: s.Name}, Prefix: s.Prefix, Modifier: s.Modifier}
}

// Names is the name, or the beginning of the names, that the rule is about.
func (s RuleScope) Names() string {
	if s.Prefix {
		return s.Name + "…"
	}
	return s.Name
}

// Wider says which events the rule is about if they are not all of one handler; "" if they are.
func (s RuleScope) Wider() (text string) {
	switch {
	case s.Scope().Whole():
		return "with the whole queue"
	case s.Prefix:
		text = "with all whose names begin with " + s.Name
	}
	if s.Modifier != "" {
		text = strings.TrimSpace(text + " only with modifier " + s.Modifier)
	}
	return text
}

// Kind is what there is to say about all rules of this type.
func (r Rule) Kind() operate.RuleKind { return operate.KindOf(r.Type) }

// VerbOf is what it takes to add and to lift the rules of a kind.
func VerbOf(kind operate.RuleKind) access.Verb {
	if kind.Admin {
		return access.Administer
	}
	return access.Operate
}

// Ends is until when the rule holds, or how fast it is lifted; "" if it stands until it is lifted.
func (r Rule) Ends() string {
	switch {
	case r.Rate > 0:
		return fmt.Sprintf("lifted at %d/s", r.Rate)
	case r.Until != nil:
		return humantime.Time(*r.Until)
	default:
		return ""
	}
}

// RuleChange is the result of adding or lifting a rule: the rule, as it is or was asked for, and what became of it.
type RuleChange struct {
	Rule
	Changed  bool   `json:"changed" doc:"False: it was so already, and stays as it is."`
	Known    *bool  `json:"known,omitempty" doc:"The handler has a waiting event or a cron definition; absent: that was not asked."`
	Notified *int   `json:"notified,omitempty" doc:"Of a lift: how many waiting events were notified."`
	GoesOn   bool   `json:"goes_on,omitempty" doc:"Of a lift at a rate: cron lets the other waiting events run by and by."`
	Left     []Rule `json:"rules_left,omitempty" doc:"Of a lift: the rules that still hold back events that it was about."`
}

// LiftOf is the result of lifting a rule, after which rules are there that are about the same events.
func LiftOf(lift operate.Lift, lifted operate.LiftResult, there []operate.Rule) RuleChange {
	change := RuleChange{Rule: RuleOf(operate.Rule{Type: lift.Type, RuleScope: lift.RuleScope}), Changed: lifted.Removed, Notified: &lifted.Notified, GoesOn: lifted.GoesOn}
	if lifted.GoesOn {
		change.Rate = lift.Rate
	}
	for _, rule := range there {
		if !lifted.GoesOn || rule.Type != lift.Type || rule.RuleScope != lift.RuleScope {
			change.Left = append(change.Left, RuleOf(rule))
		}
	}
	return change
}
