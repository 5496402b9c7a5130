package model_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"pgregory.net/rapid"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memstore"
	"eventsv2/eventqueue/operate"
)

func (w *world) markPending(t *rapid.T) {
	ids := w.drawIDs(t, "ids")
	w.sameErrors(t, w.store.MarkPending(w.ctx, ids), w.mem.MarkPending(w.ctx, ids), false)
}

// taker is one call of an operation that takes notifications, on either database.
type taker func(store takeStore) (taken []eventqueue.Notification, next eventqueue.EventID, err error)

type takeStore interface {
	maintenance.RelayStore
	TakeLost(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) ([]eventqueue.Notification, eventqueue.EventID, error)
	operate.RuleStore
}

// take compares one call, and returns what it took.
func (w *world) take(t *rapid.T, what string, f taker) {
	t.Helper()
	pg, pgNext, pgErr := f(w.store)
	mem, memNext, memErr := f(w.mem)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, what+": next", pgNext, memNext)
	same(t, what, byNotified(pg), byNotified(mem))
}

func byNotified(taken []eventqueue.Notification) []eventqueue.Notification {
	return slices.SortedFunc(slices.Values(taken), func(a, b eventqueue.Notification) int { return int(a.Event - b.Event) })
}

func (w *world) takePending(t *rapid.T) { w.take(t, "TakePending", w.drawTakePending(t)) }
func (w *world) takeDue(t *rapid.T)     { w.take(t, "TakeDue", w.drawTakeDue(t, pick(t, "limit", limits))) }
func (w *world) takeLost(t *rapid.T) {
	w.take(t, "TakeLost", w.drawTakeLost(t, w.drawAfter(t), pick(t, "limit", limits)))
}

// unclaimed searches for events whose emits may not have been answered.
func (w *world) unclaimed(t *rapid.T) {
	asked := map[eventqueue.Scope]eventqueue.Unanswered{}
	for range rapid.IntRange(1, 4).Draw(t, "scopes") {
		a := eventqueue.Unanswered{Scope: drawScope(t), Events: 1, Oldest: pick(t, "oldest", durations), Newest: pick(t, "newest", durations)}
		asked[a.Scope] = a
	}
	all := slices.Collect(maps.Values(asked))
	pg, pgErr := w.store.Unclaimed(w.ctx, all)
	mem, memErr := w.mem.Unclaimed(w.ctx, all)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "Unclaimed", pg, mem)
}

// sweep is a whole round of the relay after some time: only several of them in a
// row show how the interval between two notifications grows.
func (w *world) sweep(t *rapid.T) {
	w.letTimePass(t)
	if rapid.Bool().Draw(t, "round") {
		w.take(t, "TakeRound", w.drawTakeRound(t))
		return
	}
	w.take(t, "TakeLost", w.drawTakeLost(t, 0, 1000))
}

func (w *world) drawTakeRound(t *rapid.T) taker {
	lostAfter := pick(t, "lostAfter", lostAfters)
	var after maintenance.RoundPlace
	switch after.Stage = maintenance.RoundStage(rapid.IntRange(0, int(maintenance.RoundOfRuns)).Draw(t, "stage")); {
	case rapid.Bool().Draw(t, "from its beginning"):
	case after.Stage == maintenance.RoundOfRuns:
		after.Run = w.drawID(t)
	default:
		after.Scope = drawScope(t)
	}
	return func(s takeStore) ([]eventqueue.Notification, eventqueue.EventID, error) {
		lost, next, err := s.TakeRound(w.ctx, after, lostAfter)
		var want maintenance.RoundPlace // few handlers and lines are one part each
		if after.Stage != maintenance.RoundOfRuns {
			want.Stage = after.Stage + 1
		}
		if err == nil && next != want {
			t.Fatalf("a round behind %+v goes on behind %+v", after, next)
		}
		return lost, 0, err
	}
}

func (w *world) takeWaiting(t *rapid.T) {
	w.take(t, "TakeWaiting", w.drawTakeWaiting(t, w.drawAfter(t), pick(t, "limit", limits)))
}

// drawAfter draws where a page begins.
func (w *world) drawAfter(t *rapid.T) eventqueue.EventID {
	if rapid.IntRange(0, 2).Draw(t, "fromStart") > 0 {
		return 0
	}
	return w.drawID(t)
}

// takeAtOnce has several take the same at the same time: each event is taken by
// one of them.
func (w *world) takeAtOnce(t *rapid.T) {
	const all = 1000
	var f taker
	switch pick(t, "what", []string{"pending", "due", "lost", "waiting"}) {
	case "pending":
		f = w.drawTakePending(t)
	case "due":
		f = w.drawTakeDue(t, all)
	case "lost":
		f = w.drawTakeLost(t, 0, all)
	case "waiting":
		f = w.drawTakeWaiting(t, 0, all)
	}
	takers := rapid.IntRange(2, 3).Draw(t, "takers")
	taken := make([][]eventqueue.Notification, takers)
	errs := make([]error, takers)
	var wait sync.WaitGroup
	for i := range takers {
		wait.Go(func() { taken[i], _, errs[i] = f(w.store) })
	}
	wait.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("taker %d: %v", i, err)
		}
	}
	mem, _, err := f(w.mem)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "taken by several", byNotified(slices.Concat(taken...)), byNotified(mem))
}

func (w *world) drawTakePending(t *rapid.T) taker {
	ids := w.drawIDs(t, "ids")
	return func(s takeStore) ([]eventqueue.Notification, eventqueue.EventID, error) {
		taken, err := s.TakePending(w.ctx, ids)
		return taken, 0, err
	}
}

func (w *world) drawTakeDue(t *rapid.T, limit int) taker {
	within := pick(t, "within", durations)
	return func(s takeStore) ([]eventqueue.Notification, eventqueue.EventID, error) {
		taken, err := s.TakeDue(w.ctx, within, limit, nil)
		return taken, 0, err
	}
}

func (w *world) drawTakeLost(t *rapid.T, after eventqueue.EventID, limit int) taker {
	lostAfter := pick(t, "lostAfter", lostAfters)
	return func(s takeStore) ([]eventqueue.Notification, eventqueue.EventID, error) {
		return s.TakeLost(w.ctx, after, limit, lostAfter)
	}
}

func (w *world) drawTakeWaiting(t *rapid.T, after eventqueue.EventID, limit int) taker {
	of := operate.Waiting{Scope: drawScope(t), Since: w.drawTime(t), After: after}
	if rapid.IntRange(0, 2).Draw(t, "some") == 0 {
		of.Modifier, of.UpTo = pick(t, "modifier", modifiers), after+eventqueue.EventID(rapid.IntRange(1, 3).Draw(t, "upTo"))
	}
	return func(s takeStore) ([]eventqueue.Notification, eventqueue.EventID, error) {
		return s.TakeWaiting(w.ctx, of, limit)
	}
}

var ruleTypes = []operate.RuleType{operate.PauseRule, operate.BlockRule}

func (w *world) addRule(t *rapid.T) {
	rule := operate.Rule{Type: pick(t, "type", ruleTypes), RuleScope: drawRuleScope(t)}
	if rapid.Bool().Draw(t, "ends") {
		rule.Until = w.now.Add(pick(t, "until", durations)).Truncate(time.Microsecond)
		rule.Actor, rule.Reason = "ann", "a reason"
	}
	pg, pgErr := w.store.AddRule(w.ctx, rule)
	mem, memErr := w.mem.AddRule(w.ctx, rule)
	if errors.Is(pgErr, operate.ErrUntilPassed) != errors.Is(memErr, operate.ErrUntilPassed) {
		t.Fatalf("AddRule until %s at %s: %v and %v", rule.Until, w.now, pgErr, memErr)
	}
	if !errors.Is(pgErr, operate.ErrUntilPassed) {
		w.sameErrors(t, pgErr, memErr, false)
	}
	same(t, "AddRule", pg, mem)
}

// expiredRules compares the rules whose end has passed, and lifts one of them as cron does.
func (w *world) expiredRules(t *rapid.T) {
	w.letTimePass(t)
	pg, pgErr := w.store.RulesToLift(w.ctx)
	mem, memErr := w.mem.RulesToLift(w.ctx)
	w.sameErrors(t, pgErr, memErr, false)
	for i := range pg {
		inUTC(&pg[i].Until, &pg[i].ReleasedAt)
	}
	same(t, "RulesToLift", pg, mem)
	if rules := w.mem.Rules(); len(rules) > 0 {
		rule := pick(t, "rule", rules)
		w.lift(t, operate.Lift{Type: rule.Type, RuleScope: rule.RuleScope, Expired: true})
	}
}

// release goes on with rules that are lifted at a rate, as cron does; mostly one that is.
func (w *world) release(t *rapid.T) {
	w.letTimePass(t)
	kind, scope := pick(t, "type", ruleTypes), drawRuleScope(t)
	rules := slices.DeleteFunc(w.mem.Rules(), func(r memstore.RuleRow) bool { return r.Rate == 0 })
	if len(rules) > 0 && rapid.IntRange(0, 5).Draw(t, "any") > 0 {
		rule := pick(t, "rule", rules)
		kind, scope = rule.Type, rule.RuleScope
	}
	pg, pgErr := w.store.Release(w.ctx, kind, scope)
	mem, memErr := w.mem.Release(w.ctx, kind, scope)
	w.sameErrors(t, pgErr, memErr, false)
	inUTC(&pg.At)
	same(t, "Release", pg, mem)
}

func (w *world) waitingScopes(t *rapid.T) {
	scope := drawRuleScope(t)
	scope.Prefix = true
	pg, pgErr := w.store.WaitingScopes(w.ctx, scope)
	mem, memErr := w.mem.WaitingScopes(w.ctx, scope)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "WaitingScopes", pg, mem)
}

// drawRuleScope draws what a rule is about: a handler, one of its modifiers, names with one beginning.
func drawRuleScope(t *rapid.T) operate.RuleScope {
	scope := operate.RuleScope{Scope: drawScope(t)}
	if rapid.IntRange(0, 2).Draw(t, "of one modifier") == 0 {
		scope.Modifier = pick(t, "modifier", modifiers)
	}
	if rapid.IntRange(0, 2).Draw(t, "of a prefix") == 0 {
		scope.Prefix = true
		scope.Name = scope.Name[:rapid.IntRange(1, len(scope.Name)).Draw(t, "length")]
	}
	return scope
}

// liftRule lifts any rule, but mostly one that is there.
func (w *world) liftRule(t *rapid.T) {
	lift := operate.Lift{Type: pick(t, "type", ruleTypes), RuleScope: drawRuleScope(t)}
	if rules := w.mem.Rules(); len(rules) > 0 && rapid.IntRange(0, 3).Draw(t, "any") > 0 {
		rule := pick(t, "rule", rules)
		lift.Type, lift.RuleScope = rule.Type, rule.RuleScope
	}
	if rapid.Bool().Draw(t, "at a rate") {
		lift.Rate = rapid.IntRange(1, 3).Draw(t, "rate")
	}
	w.lift(t, lift)
}

func (w *world) lift(t *rapid.T, lift operate.Lift) {
	t.Helper()
	pg, pgErr := w.store.LiftRule(w.ctx, lift)
	mem, memErr := w.mem.LiftRule(w.ctx, lift)
	w.sameErrors(t, pgErr, memErr, false)
	inUTC(&pg.At)
	same(t, "LiftRule", pg, mem)
	w.times = append(w.times, pg.At)
}
