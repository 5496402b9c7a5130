package httpapi

import (
	"context"
	"errors"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
)

// HandlerBody names a handler on a canvas.
type HandlerBody struct {
	Canvas string `json:"canvas_id" format:"uuid"`
	Module string `json:"module" maxLength:"255"`
	Name   string `json:"name" maxLength:"255"`
}

type ruleBody struct {
	HandlerBody
	Reason string    `json:"reason,omitempty" maxLength:"1024" doc:"For whoever asks why the handler does not run."`
	Until  time.Time `json:"until,omitzero" doc:"When cron lifts the rule. Absent: it stands until it is lifted."`
}

type rule struct {
	Type   string     `json:"type" enum:"pause,block"`
	Canvas string     `json:"canvas_id" format:"uuid"`
	Module string     `json:"module"`
	Name   string     `json:"name"`
	Reason string     `json:"reason,omitempty"`
	Actor  string     `json:"actor,omitempty"`
	Until  *time.Time `json:"until,omitempty"`
}

type ruleChanged struct {
	Changed bool `json:"changed" doc:"False: it was so already, and stays as it is."`
}

func (a *api) addRules() {
	get(a, "/rules", "list-rules", "Which handlers are paused and blocked", func(ctx context.Context, in *struct {
		Canvas string `query:"canvas_id" required:"true" format:"uuid"`
	}) (*answer[page[rule]], error) {
		canvas, err := canvasFor(ctx, access.Read, in.Canvas)
		if err != nil {
			return nil, err
		}
		found, err := a.reader.Rules(ctx, inspect.Filter{Canvas: &canvas})
		if err != nil {
			return nil, a.failed("rules", err)
		}
		p := page[rule]{Items: make([]rule, 0, len(found))}
		for _, r := range found {
			item := rule{string(r.Type), r.Canvas.String(), r.Module, r.Name, r.Reason, r.Actor, nil}
			if !r.Until.IsZero() {
				item.Until = new(r.Until.UTC())
			}
			p.Items = append(p.Items, item)
		}
		return &answer[page[rule]]{p}, nil
	})
	// Users pause, and administrators block.
	for _, words := range []struct {
		rule      operate.RuleType
		verb      access.Verb
		add, lift string
	}{{operate.PauseRule, access.Operate, "pause", "unpause"}, {operate.BlockRule, access.Administer, "block", "unblock"}} {
		change(a, words.verb, "POST /handlers/"+words.add, words.add+"-handler", "Hold back a handler on a canvas", func(ctx context.Context, in *struct{ Body ruleBody }) (*answer[ruleChanged], error) {
			return a.addRule(ctx, words.rule, words.verb, in.Body)
		})
		change(a, words.verb, "POST /handlers/"+words.lift, words.lift+"-handler", "Let a handler on a canvas run again", func(ctx context.Context, in *struct{ Body HandlerBody }) (*answer[ruleChanged], error) {
			return a.liftRule(ctx, words.rule, words.verb, in.Body)
		})
	}
}

// rules returns what changes rules as the caller, and the scope of a handler on whose canvas they have a verb.
func (a *api) rules(ctx context.Context, verb access.Verb, h HandlerBody) (*operate.Rules, eventqueue.Scope, error) {
	canvas, err := canvasFor(ctx, verb, h.Canvas)
	scope := eventqueue.Scope{Canvas: canvas, Module: h.Module, Name: h.Name}
	if err != nil {
		return nil, scope, err
	}
	if err := scope.Validate(); err != nil {
		return nil, scope, huma.Error422UnprocessableEntity(err.Error())
	}
	rules, err := operate.NewRules(a.Store.As(callerOf(ctx).actor()), a.Queue)
	if err != nil {
		return nil, scope, a.failed("rules", err)
	}
	return rules, scope, nil
}

func (a *api) addRule(ctx context.Context, t operate.RuleType, verb access.Verb, body ruleBody) (*answer[ruleChanged], error) {
	rules, scope, err := a.rules(ctx, verb, body.HandlerBody)
	if err != nil {
		return nil, err
	}
	added := operate.Rule{Type: t, RuleScope: operate.RuleScope{Scope: scope}, Reason: body.Reason, Actor: callerOf(ctx).Name, Until: body.Until}
	if err := added.Validate(); err != nil {
		return nil, huma.Error422UnprocessableEntity(err.Error())
	}
	done, err := rules.AddRule(ctx, added)
	switch {
	case errors.Is(err, operate.ErrUntilPassed):
		return nil, huma.Error422UnprocessableEntity(err.Error())
	case err != nil:
		return nil, a.failed(string(t), err)
	}
	return &answer[ruleChanged]{ruleChanged{done}}, nil
}

func (a *api) liftRule(ctx context.Context, t operate.RuleType, verb access.Verb, body HandlerBody) (*answer[ruleChanged], error) {
	rules, scope, err := a.rules(ctx, verb, body)
	if err != nil {
		return nil, err
	}
	done, _, err := rules.Lift(ctx, t, scope)
	if err != nil {
		return nil, a.failed("un"+string(t), err)
	}
	return &answer[ruleChanged]{ruleChanged{done}}, nil
}
