package httpapi

import (
	"context"
	"errors"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"eventsv2/access"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/view"
)

type ruleBody struct {
	view.RuleScope
	Reason string    `json:"reason,omitempty" maxLength:"1024" doc:"For whoever asks why the handler does not run."`
	Until  time.Time `json:"until,omitzero" doc:"When cron lifts the rule. Absent: it stands until it is lifted."`
}

type liftBody struct {
	view.RuleScope
	Rate int `json:"rate_per_second,omitempty" minimum:"1" maximum:"100000" doc:"Let so many of the waiting events run in a second, the oldest first, and new ones behind them. Absent: all at once."`
}

func (a *api) addRules() {
	get(a, "/rules", "list-rules", "The rules that hold handlers back, and that of the whole queue if there is one", func(ctx context.Context, in *struct {
		Canvas string `query:"canvas_id" required:"true" format:"uuid"`
	}) (*answer[view.Page[view.Rule]], error) {
		canvas, err := canvasFor(ctx, access.Read, in.Canvas)
		if err != nil {
			return nil, err
		}
		found, err := a.reader.Rules(ctx, inspect.Filter{Canvas: &canvas})
		if err != nil {
			return nil, a.failed("rules", err)
		}
		return list(view.ListOf(found, view.RuleOf)), nil
	})
	for _, kind := range operate.RuleKinds() {
		verb := view.VerbOf(kind)
		change(a, verb, "POST /handlers/"+kind.Add, kind.Add+"-handler", "Hold back a handler on a canvas, or all whose names begin in the same way", func(ctx context.Context, in *struct{ Body ruleBody }) (*answer[view.RuleChange], error) {
			return a.addRule(ctx, kind.Type, verb, in.Body)
		})
		change(a, verb, "POST /handlers/"+kind.Lift, kind.Lift+"-handler", "Lift such a rule, at once or at a rate", func(ctx context.Context, in *struct{ Body liftBody }) (*answer[view.RuleChange], error) {
			return a.liftRule(ctx, kind.Type, verb, in.Body)
		})
	}
}

// rules returns what changes rules as the caller, for a scope on whose canvas they have a verb.
func (a *api) rules(ctx context.Context, verb access.Verb, scope operate.RuleScope) (*operate.Rules, error) {
	if scope.Whole() && !callerOf(ctx).MayEverywhere(access.Administer) {
		return nil, huma.Error403Forbidden("your token lacks the verb administer on all canvases, which a rule of the whole queue is about")
	}
	if err := may(ctx, verb, scope.Canvas); !scope.Whole() && err != nil {
		return nil, err
	}
	if err := scope.Validate(); err != nil {
		return nil, huma.Error422UnprocessableEntity(err.Error())
	}
	rules, err := operate.NewRules(a.Store.As(callerOf(ctx).actor()), a.Queue)
	if err != nil {
		return nil, a.failed("rules", err)
	}
	return rules, nil
}

func (a *api) addRule(ctx context.Context, t operate.RuleType, verb access.Verb, body ruleBody) (*answer[view.RuleChange], error) {
	rule := operate.Rule{Type: t, RuleScope: body.Scope(), Reason: body.Reason, Actor: callerOf(ctx).Name, Until: body.Until}
	rules, err := a.rules(ctx, verb, rule.RuleScope)
	if err != nil {
		return nil, err
	}
	if err := rule.Validate(); err != nil {
		return nil, huma.Error422UnprocessableEntity(err.Error())
	}
	added, err := rules.AddRule(ctx, rule)
	switch {
	case errors.Is(err, operate.ErrUntilPassed):
		return nil, huma.Error422UnprocessableEntity(err.Error())
	case err != nil:
		return nil, a.failed(string(t), err)
	}
	there, err := a.reader.RuleThere(ctx, rule)
	if err != nil {
		return nil, a.failed(string(t), err)
	}
	return &answer[view.RuleChange]{view.RuleChange{Rule: view.RuleOf(there), Changed: added}}, nil
}

func (a *api) liftRule(ctx context.Context, t operate.RuleType, verb access.Verb, body liftBody) (*answer[view.RuleChange], error) {
	lift := operate.Lift{Type: t, RuleScope: body.Scope(), Rate: body.Rate}
	rules, err := a.rules(ctx, verb, lift.RuleScope)
	if err != nil {
		return nil, err
	}
	lifted, err := rules.LiftRule(ctx, lift)
	if err != nil {
		return nil, a.failed("un"+string(t), err)
	}
	left, err := a.reader.RulesAbout(ctx, lift.RuleScope)
	if err != nil {
		return nil, a.failed("un"+string(t), err)
	}
	return &answer[view.RuleChange]{view.LiftOf(lift, lifted, left)}, nil
}
