package eventctl

import (
	"context"
	"fmt"
	"strings"
	"time"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/printing"
)

// ruleWords are the words that the commands of one type of rule use for it.
type ruleWords struct {
	rule          operate.RuleType
	add, lift     string // commands
	added, lifted string // results
	who           string
}

func pauseWords() ruleWords {
	return ruleWords{operate.PauseRule, "pause", "unpause", "paused", "unpaused", "the user"}
}

func blockWords() ruleWords {
	return ruleWords{operate.BlockRule, "block", "unblock", "blocked", "unblocked", "an admin"}
}

// wordsOf returns the words of a type of rule.
func wordsOf(t operate.RuleType) ruleWords {
	if t == operate.BlockRule {
		return blockWords()
	}
	return pauseWords()
}

// ruleChange is the result of adding or lifting a rule.
type ruleChange struct {
	Rule   operate.RuleType    `json:"rule"`
	Canvas eventqueue.CanvasID `json:"canvas_id"`
	Module string              `json:"module"`
	Name   string              `json:"name"`
	ruleWidth
	Changed bool `json:"changed"`
	// Known means that the handler has a waiting event or a cron definition.
	Known bool `json:"known"`
	// Notified is how many waiting events were notified. Only a lift has it.
	Notified *int `json:"notified,omitempty"`
	// GoesOn means that cron lets the other waiting events run by and by. Only a lift at a rate has it.
	GoesOn bool `json:"goes_on,omitempty"`
	// Left are the rules that still hold the handler back. Only a lift has them.
	Left []operate.RuleType `json:"rules_left,omitempty"`
	// ruleFacts are of the rule as it is. Only an added one has them.
	ruleFacts
}

// ruleWidth says which handlers a rule is about, as JSON: without it the one of the name, whatever the modifier.
type ruleWidth struct {
	Prefix   bool   `json:"prefix,omitempty"`
	Modifier string `json:"modifier,omitempty"`
}

func widthOf(s operate.RuleScope) ruleWidth { return ruleWidth{s.Prefix, s.Modifier} }

// ruleFacts are what a rule has beside its identity, as JSON.
type ruleFacts struct {
	Reason string     `json:"reason,omitempty"`
	Actor  string     `json:"actor,omitempty"`
	Until  *time.Time `json:"until,omitempty"`
	// Rate is the rate at which the rule is being lifted, and ReleasedTo the last event that is let run.
	Rate       int                `json:"rate_per_second,omitempty"`
	ReleasedTo eventqueue.EventID `json:"released_to,omitempty"`
}

func factsOf(r operate.Rule) ruleFacts {
	facts := ruleFacts{Reason: r.Reason, Actor: r.Actor, Rate: r.Rate, ReleasedTo: r.ReleasedTo}
	if !r.Until.IsZero() {
		facts.Until = printing.UTC(&r.Until)
	}
	return facts
}

// ruleText says by whom, since when, until when and why, as far as that is known, to follow the text
// of what is held back.
func ruleText(r operate.Rule) string {
	var b strings.Builder
	b.WriteString(" by " + wordsOf(r.Type).who)
	if r.Actor != "" {
		b.WriteString(" (" + printing.Printable(r.Actor) + ")")
	}
	if !r.CreatedAt.IsZero() {
		b.WriteString(" since " + printing.Time(r.CreatedAt))
	}
	if !r.Until.IsZero() {
		b.WriteString(" until " + printing.Time(r.Until))
	}
	if r.Rate > 0 {
		fmt.Fprintf(&b, ", being lifted at %d/s", r.Rate)
	}
	if r.Reason != "" {
		b.WriteString(": " + printing.Printable(r.Reason))
	}
	return b.String()
}

// ruleChanged makes the result. It warns if the handler is unknown: the rule may come
// before the handler's first event, or its name may be misspelt.
func (p *program) ruleChanged(ctx context.Context, store *pgstore.Store, t operate.RuleType, scope operate.RuleScope, changed bool) (ruleChange, error) {
	change := ruleChange{Rule: t, Canvas: scope.Canvas, Module: scope.Module, Name: scope.Name, ruleWidth: widthOf(scope), Changed: changed}
	known, err := isKnown(ctx, store, scope)
	if err != nil {
		return change, failed(fmt.Errorf("the rule is changed; check whether %s has events: %w", scope, err))
	}
	change.Known = known
	if !known && !p.JSON {
		p.Warning(fmt.Errorf("no event of %s is waiting at the moment; check the spelling if there should be", scope))
	}
	return change, nil
}

func isKnown(ctx context.Context, store *pgstore.Store, scope operate.RuleScope) (has bool, err error) {
	if scope.Prefix {
		var handlers []eventqueue.Scope
		handlers, err = store.WaitingScopes(ctx, scope)
		has = len(handlers) > 0
	} else {
		has, err = inspect.NewIn(store.Schema(), store.Pool()).HasEvents(ctx, scope.Scope, scope.Modifier)
	}
	if err != nil || has || scope.Module != cronchecker.Module {
		return has, err
	}
	definitions, err := cronchecker.NewDefinitionsIn(store.Schema(), store.Pool()).List(ctx, &scope.Canvas)
	for _, d := range definitions {
		has = has || scope.Matches(d.Canvas, eventqueue.HandlerKey{Module: cronchecker.Module, Name: d.Name, Modifier: cronchecker.Modifier})
	}
	return has, err
}
