package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// HandlerState is what keeps the events of a handler from running, or from completing. The states of rules are those of
// operate.RuleKind.
type HandlerState string

// The states of a handler beside those of rules.
const (
	HandlerHeld     HandlerState = "held"           // with the whole queue
	HandlerUnserved HandlerState = "no worker"      // no live worker has it, or none has it with a modifier of events that wait
	HandlerAway     HandlerState = "target away"    // its circuit breaker is open in each worker that has it
	HandlerLimited  HandlerState = "over its limit" // a rate or concurrency limit lets no other event begin
	HandlerBusy     HandlerState = "all slots busy" // of each worker that has it
	HandlerFailing  HandlerState = "failing"        // all of its last runs failed
	HandlerOpen     HandlerState = "open"           // none of these
)

// Standing is one state of a handler.
type Standing struct {
	State HandlerState
	// Rule is the rule that holds events back; nil if the state is another.
	Rule *operate.Rule
	// Why is a sentence that says what was found; empty if Rule says it, and of HandlerOpen.
	Why string
}

// HandlerFacts holds what the states of some handlers follow from: the rules, rate limits and concurrency limits that can be
// about them, all workers, the modifiers of events of theirs that wait, and their counts of ActivityFor at least.
type HandlerFacts struct {
	Rules   []operate.Rule
	Rates   []operate.RateStatus
	Limits  []LimitInUse
	Serving Serving
	Waiting map[eventqueue.Scope][]string
	Minutes []Minute
}

// States returns everything that keeps the events of a handler from running, the strongest first, and what keeps only those
// with some modifiers last. It is never empty.
func (f HandlerFacts) States(scope eventqueue.Scope) []Standing {
	var list, narrow []Standing
	for _, rule := range f.rulesOf(scope) {
		standing := Standing{State: HandlerState(operate.KindOf(rule.Type).State), Rule: &rule}
		switch {
		case rule.Whole():
			standing.State = HandlerHeld
			list = slices.Insert(list, 0, standing)
		case rule.Modifier != "":
			narrow = append(narrow, standing)
		default:
			list = append(list, standing)
		}
	}
	for _, found := range []struct {
		state HandlerState
		why   string
	}{
		{HandlerUnserved, f.Serving.unserved(scope)},
		{HandlerAway, f.Serving.away(scope)},
		{HandlerLimited, f.overLimit(scope)},
		{HandlerBusy, f.Serving.busy(scope)},
		{HandlerFailing, f.failing(scope)},
	} {
		if found.why != "" {
			list = append(list, Standing{State: found.state, Why: found.why})
		}
	}
	if why := f.Serving.unservedModifiers(scope, f.Waiting[scope]); why != "" {
		narrow = append(narrow, Standing{State: HandlerUnserved, Why: why})
	}
	if list = append(list, narrow...); len(list) == 0 {
		list = []Standing{{State: HandlerOpen}}
	}
	return list
}

// rulesOf are the rules that are about events of a handler, stronger ones before weaker ones.
func (f HandlerFacts) rulesOf(scope eventqueue.Scope) []operate.Rule {
	rules := slices.DeleteFunc(slices.Clone(f.Rules), func(r operate.Rule) bool { return !r.Overlaps(operate.RuleScope{Scope: scope}) })
	strength := func(r operate.Rule) int {
		return slices.IndexFunc(operate.RuleKinds(), func(k operate.RuleKind) bool { return k.Type == r.Type })
	}
	slices.SortStableFunc(rules, func(a, b operate.Rule) int { return cmp.Compare(strength(b), strength(a)) })
	return rules
}

// overLimit says which limits let no other event of a handler begin, or have put some off.
func (f HandlerFacts) overLimit(scope eventqueue.Scope) string {
	var full []string
	for _, l := range f.Rates {
		if l.Canvas != scope.Canvas || !l.WholeCanvas() && l.Scope != scope {
			continue
		}
		windows := fullWindows(l)
		if len(windows) == 0 && l.Waiting == 0 {
			continue
		}
		text := "The rate limit of " + limitOf(l.WholeCanvas()) + " has put events off"
		if len(windows) > 0 {
			text = "The rate limit of " + limitOf(l.WholeCanvas()) + " has no room: " + strings.Join(windows, " and ")
		}
		if l.Waiting > 0 {
			text += fmt.Sprintf("; about %d wait", l.Waiting)
		}
		full = append(full, text+".")
	}
	for _, l := range f.Limits {
		if l.Canvas == scope.Canvas && (l.Module == "" || l.Module == scope.Module && l.Name == scope.Name) && l.Key == "" && !l.EveryKey && l.Waiting > 0 && l.Admitted >= min(l.Max, CountedInGroup+1) {
			full = append(full, fmt.Sprintf("The concurrency limit of %s lets %d run at once, and others wait.", limitOf(l.Module == ""), l.Max))
		}
	}
	return strings.Join(full, " ")
}

func limitOf(wholeCanvas bool) string {
	if wholeCanvas {
		return "the whole canvas"
	}
	return "the handler"
}

// FailingRuns is how many runs of a handler must have ended in ActivityFor, all of them without success, for it to be failing.
const FailingRuns = 3

// failing says that all of the last runs of a handler failed.
func (f HandlerFacts) failing(scope eventqueue.Scope) string {
	var a Activity
	for i := range f.Minutes {
		if m := &f.Minutes[i]; m.Scope == scope && m.AsOf.Sub(m.Begins) < ActivityFor {
			a.Completed += m.Completed
			a.Unsuccessful += m.Failed + m.Retried
		}
	}
	if !a.Failing() {
		return ""
	}
	return fmt.Sprintf("All %d runs of the last %d minutes failed.", a.Unsuccessful, int(ActivityFor.Minutes()))
}

// Failing reports whether all runs failed, and whether they were so many that this says something.
func (a Activity) Failing() bool { return a.Completed == 0 && a.Unsuccessful >= FailingRuns }

// Serving has the live workers by the handlers that they have.
type Serving struct {
	by         map[eventqueue.Scope][]*Worker // the zero Canvas stands for every one
	keys       map[eventqueue.CanvasHandler]bool
	unreadable bool // some have more handlers than could be read
	live       int
}

// ServingOf returns those of some workers that are live, by their handlers.
func ServingOf(workers []Worker) Serving {
	s := Serving{by: map[eventqueue.Scope][]*Worker{}, keys: map[eventqueue.CanvasHandler]bool{}}
	add := func(h eventqueue.CanvasHandler, w *Worker) {
		s.keys[h] = true
		scope := eventqueue.Scope{Canvas: h.Canvas, Module: h.Key.Module, Name: h.Key.Name}
		if !slices.Contains(s.by[scope], w) {
			s.by[scope] = append(s.by[scope], w)
		}
	}
	for i := range workers {
		w := &workers[i]
		if w.State != WorkerLive {
			continue
		}
		s.live++
		s.unreadable = s.unreadable || w.Unreadable
		for _, key := range w.Handlers.Everywhere {
			add(eventqueue.CanvasHandler{Key: key}, w)
		}
		for _, h := range w.Handlers.OnCanvas {
			add(h, w)
		}
	}
	return s
}

// of are the live workers that have a handler, with any modifier.
func (s Serving) of(scope eventqueue.Scope) []*Worker {
	workers := slices.Clone(s.by[eventqueue.Scope{Module: scope.Module, Name: scope.Name}])
	for _, w := range s.by[scope] {
		if !slices.Contains(workers, w) {
			workers = append(workers, w)
		}
	}
	return workers
}

// Serves reports whether a live worker has, or may have, a handler on a canvas, with any modifier.
func (s Serving) Serves(scope eventqueue.Scope) bool { return s.unreadable || len(s.of(scope)) > 0 }

// unserved says that no live worker has a handler.
func (s Serving) unserved(scope eventqueue.Scope) string {
	switch {
	case s.Serves(scope):
		return ""
	case s.live == 0:
		return "No worker is connected."
	case s.live == 1:
		return "The live worker does not have it."
	default:
		return fmt.Sprintf("None of the %d live workers has it.", s.live)
	}
}

// modifiersNamed is how many modifiers without a worker are named.
const modifiersNamed = 3

// unservedModifiers says with which of some modifiers no live worker has a handler that some have.
func (s Serving) unservedModifiers(scope eventqueue.Scope, modifiers []string) string {
	if s.unreadable || len(s.of(scope)) == 0 {
		return ""
	}
	var names []string
	what, handler := "modifiers", "its handler with any of them"
	for _, modifier := range modifiers {
		key := eventqueue.HandlerKey{Module: scope.Module, Name: scope.Name, Modifier: modifier}
		if !s.keys[eventqueue.CanvasHandler{Key: key}] && !s.keys[eventqueue.CanvasHandler{Canvas: scope.Canvas, Key: key}] {
			names = append(names, cmp.Or(printable(modifier), `""`))
		}
	}
	switch more := len(names) - modifiersNamed; {
	case len(names) == 0:
		return ""
	case len(names) == 1:
		what, handler = "modifier", "its handler "+printable(scope.Module)+"/"+printable(scope.Name)+"/"+names[0]
	case more > 0:
		names = append(names[:modifiersNamed], fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("No worker for %s %s. %s.", what, strings.Join(names, ", "), noneHas(s.live, handler))
}

// busy says that all workers that have a handler have no slot left.
func (s Serving) busy(scope eventqueue.Scope) string {
	workers := s.of(scope)
	var slots WorkerSlots
	for _, w := range workers {
		if !w.Slots.Full() {
			return ""
		}
		slots.add(w.Slots)
	}
	if len(workers) == 0 || s.unreadable {
		return ""
	}
	text := slots.busy(len(workers))
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
