package dashboard

import (
	"errors"
	"net/http"
	"time"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/humantime"
	"eventsv2/internal/view"
)

// handlerData is the page of one handler on a canvas, on which rules are added and lifted.
type handlerData struct {
	eventqueue.Scope
	States  []standingRow
	New     []newRule // that the viewer may add, and that are not there for exactly this handler
	Problem string    // of the form that was sent
	MaySet  bool      // limits
	Numbers handlerNumbers
}

// Renews is how often the page is read again, in seconds: a week takes more statements.
func (h handlerData) Renews() int {
	if h.Numbers.byHour {
		return 60
	}
	return 45
}

// newRule is a kind of rule and the form that adds one.
type newRule struct {
	operate.RuleKind
	Form ruleForm
}

// standingRow is a state of the handler; a rule may be lifted there.
type standingRow struct {
	stateRow
	MayLift bool
}

// ruleForm holds the input for a rule that has a mistake.
type ruleForm struct{ Reason, Until, Begins, Modifier string }

// scopeOf returns the handler that a request names, if its viewer may read it.
func scopeOf(r *http.Request, value func(string) string) (scope eventqueue.Scope, err error) {
	if scope.Canvas, err = eventqueue.ParseCanvasID(value("canvas")); err != nil {
		return scope, badFilter("The canvas is not a UUID. Choose a handler on the page of handlers.")
	}
	if !viewerOf(r).May(access.Read, scope.Canvas) {
		return scope, forbidden(access.Read)
	}
	scope.Module, scope.Name = value("module"), value("name")
	if err := scope.Validate(); err != nil {
		return scope, badFilter("There is no such handler: " + clean(err.Error()) + ".")
	}
	return scope, nil
}

func (d *dashboard) handler(r *http.Request) (string, any, error) {
	scope, err := scopeOf(r, r.URL.Query().Get)
	if err != nil {
		return "", nil, err
	}
	data, err := d.readHandler(r, scope)
	return handlerName(scope), data, err
}

func (d *dashboard) readHandler(r *http.Request, scope eventqueue.Scope) (data handlerData, err error) {
	data = handlerData{Scope: scope, MaySet: d.mayChange(r, access.Administer, scope.Canvas)}
	rules, err := d.Reader.RulesAbout(r.Context(), operate.RuleScope{Scope: scope})
	if err != nil {
		return data, err
	}
	there := map[operate.RuleType]bool{}
	for _, rule := range rules {
		if rule.RuleScope == (operate.RuleScope{Scope: scope}) {
			there[rule.Type] = true
		}
	}
	for _, kind := range operate.RuleKinds() {
		if !there[kind.Type] && d.mayChange(r, view.VerbOf(kind), scope.Canvas) {
			data.New = append(data.New, newRule{RuleKind: kind})
		}
	}
	facts := inspect.HandlerFacts{Rules: rules}
	if data.Numbers, err = d.readNumbers(r, scope, &facts); err != nil {
		return data, err
	}
	for _, standing := range facts.States(scope) {
		row := standingRow{stateRow: stateRowOf(standing)}
		if rule := standing.Rule; rule != nil {
			kind := operate.KindOf(rule.Type)
			row.MayLift = kind.Known() && !rule.Whole() && d.mayChange(r, view.VerbOf(kind), scope.Canvas)
		}
		data.States = append(data.States, row)
	}
	return data, nil
}

// handlerToChange returns the rules as the viewer changes them, and the handler of a form.
func (d *dashboard) handlerToChange(r *http.Request, kind operate.RuleKind) (rules *operate.Rules, scope eventqueue.Scope, err error) {
	if scope, err = scopeOf(r, r.PostFormValue); err != nil {
		return nil, scope, err
	}
	if verb := view.VerbOf(kind); !viewerOf(r).May(verb, scope.Canvas) {
		return nil, scope, forbidden(verb)
	}
	rules, err = operate.NewRules(d.Store.As(viewerOf(r).actor()), d.Queue)
	return rules, scope, err
}

// addRule adds a rule of a kind to a handler.
func (d *dashboard) addRule(kind operate.RuleKind) func(r *http.Request) (string, flash, error) {
	return func(r *http.Request) (string, flash, error) {
		rules, scope, err := d.handlerToChange(r, kind)
		if err != nil {
			return "", flash{}, err
		}
		form, until, mistake := readRule(r)
		rule := operate.Rule{Type: kind.Type, RuleScope: form.scope(scope), Reason: form.Reason, Actor: viewerOf(r).Name, Until: until}
		if mistake == nil {
			mistake = rule.Validate()
		}
		var added bool
		if mistake == nil {
			if added, err = rules.AddRule(r.Context(), rule); errors.Is(err, operate.ErrUntilPassed) {
				mistake, err = err, nil
			}
		}
		if err != nil {
			return "", flash{}, err
		}
		if mistake != nil {
			data, err := d.readHandler(r, scope)
			if err != nil {
				return "", flash{}, err
			}
			data.Problem = clean(mistake.Error())
			for i := range data.New {
				if data.New[i].Type == kind.Type {
					data.New[i].Form = form
				}
			}
			return "", flash{}, mistaken("handler", handlerName(scope), data)
		}
		if !added {
			return handlerPath(scope), refused("It was " + string(kind.State) + " already: that stays as it is. Lift it first to change its reason or its end."), nil
		}
		return handlerPath(scope), done("It is " + string(kind.State) + ". Runs that had begun go on, and no other begins."), nil
	}
}

// scope is the scope of the rule in the form of a handler.
func (f ruleForm) scope(handler eventqueue.Scope) operate.RuleScope {
	scope := operate.RuleScope{Scope: handler, Prefix: f.Begins != "", Modifier: f.Modifier}
	if scope.Prefix {
		scope.Name = f.Begins
	}
	return scope
}

// readRule returns a rule as it was written in a form. The mistake is one of the user.
func readRule(r *http.Request) (form ruleForm, until time.Time, mistake error) {
	form = ruleForm{Until: r.PostFormValue("until"), Begins: r.PostFormValue("begins"), Modifier: r.PostFormValue("modifier")}
	if form.Reason, mistake = field(r, "reason"); mistake != nil {
		return form, until, errors.New("The reason is a text of at most 1,024 bytes")
	}
	if form.Until != "" {
		until, mistake = readTime(r, form.Until, humantime.ParseEnd)
	}
	return form, until, mistake
}

// liftRule lifts a rule: at once, or at a rate.
func (d *dashboard) liftRule(kind operate.RuleKind) func(r *http.Request) (string, flash, error) {
	return func(r *http.Request) (string, flash, error) {
		rules, scope, err := d.handlerToChange(r, kind)
		if err != nil {
			return "", flash{}, err
		}
		lift := operate.LiftOf(kind.Type, scope)
		if rate := r.PostFormValue("rate"); rate != "" {
			if lift.Rate = numberOf(rate); lift.Rate < 1 || lift.Rate > operate.MaxRate {
				return handlerPath(scope), refused("It is still " + string(kind.State) + ": so many events per second are a number from 1 to 100,000; leave it empty for all at once."), nil
			}
		}
		lift.Prefix, lift.Modifier = r.PostFormValue("prefix") != "", r.PostFormValue("modifier")
		if of := r.PostFormValue("of"); of != "" {
			lift.Name = of
		}
		if err := lift.Validate(); err != nil {
			return "", flash{}, badFilter("There is no such rule: " + clean(err.Error()) + ".")
		}
		result, err := rules.LiftRule(r.Context(), lift)
		switch {
		case err != nil:
			return "", flash{}, err
		case !result.Removed:
			return handlerPath(scope), refused("It was not " + string(kind.State) + " any more."), nil
		case result.GoesOn:
			return handlerPath(scope), done("It is being lifted: the waiting events run by and by."), nil
		default:
			return handlerPath(scope), done("It is no longer " + string(kind.State) + "."), nil
		}
	}
}
