package eventctl

import (
	"cmp"
	"context"
	"fmt"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/view"
)

// ruleCommands are the commands that add and lift the rules of each kind.
func ruleCommands() (commands []command) {
	for _, kind := range operate.RuleKinds() {
		commands = append(commands, addRuleCommand(kind), liftRuleCommand(kind))
	}
	return commands
}

// addKnown adds to the result whether the handler is known, and warns if it is not: the rule may come
// before the handler's first event, or its name may be misspelt.
func (p *program) addKnown(ctx context.Context, store *pgstore.Store, scope operate.RuleScope, change *view.RuleChange) error {
	known, err := isKnown(ctx, store, scope)
	if err != nil {
		return failed(fmt.Errorf("the rule is changed; check whether %s has events: %w", scope, err))
	}
	change.Known = &known
	if known || p.JSON {
		return nil
	}
	question := "check the spelling if there should be"
	if !scope.Prefix {
		question = cmp.Or(didYouMean(ctx, store, scope.Canvas, eventqueue.HandlerKey{Module: scope.Module, Name: scope.Name, Modifier: scope.Modifier}), question)
	}
	p.Warning(fmt.Errorf("no event of %s is waiting at the moment; %s", scope, question))
	return nil
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
