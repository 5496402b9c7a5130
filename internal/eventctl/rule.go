package eventctl

import (
	"context"
	"fmt"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/pgstore"
)

// ruleWords are the words that the commands of one type of rule use for it.
type ruleWords struct {
	rule          control.RuleType
	add, lift     string // commands
	added, lifted string // results
	who           string
}

func pauseWords() ruleWords {
	return ruleWords{control.PauseRule, "pause", "unpause", "paused", "unpaused", "the user"}
}

func blockWords() ruleWords {
	return ruleWords{control.BlockRule, "block", "unblock", "blocked", "unblocked", "an admin"}
}

// wordsOf returns the words of a type of rule.
func wordsOf(t control.RuleType) ruleWords {
	if t == control.BlockRule {
		return blockWords()
	}
	return pauseWords()
}

// ruleChange is the result of adding or lifting a rule.
type ruleChange struct {
	Rule    control.RuleType    `json:"rule"`
	Canvas  eventqueue.CanvasID `json:"canvas_id"`
	Module  string              `json:"module"`
	Name    string              `json:"name"`
	Changed bool                `json:"changed"`
	// Known means that the handler has a waiting event or a cron definition.
	Known bool `json:"known"`
	// Notified is how many waiting events were notified. Only a lift has it.
	Notified *int `json:"notified,omitempty"`
	// Left are the rules that still hold the handler back. Only a lift has them.
	Left []control.RuleType `json:"rules_left,omitempty"`
}

// ruleChanged makes the result. It warns if the handler is unknown: the rule may come
// before the handler's first event, or its name may be misspelt.
func (p *program) ruleChanged(ctx context.Context, store *pgstore.Store, t control.RuleType, scope eventqueue.Scope, changed bool) (ruleChange, error) {
	change := ruleChange{Rule: t, Canvas: scope.Canvas, Module: scope.Module, Name: scope.Name, Changed: changed}
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

func isKnown(ctx context.Context, store *pgstore.Store, scope eventqueue.Scope) (bool, error) {
	has, err := inspect.New(store.Pool()).HasEvents(ctx, scope)
	if err != nil || has || scope.Module != cronchecker.Module {
		return has, err
	}
	definitions, err := cronchecker.NewDefinitions(store.Pool()).List(ctx, &scope.Canvas)
	for _, d := range definitions {
		has = has || d.Name == scope.Name
	}
	return has, err
}
