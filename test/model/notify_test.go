package model_test

import (
	"slices"
	"sync"

	"pgregory.net/rapid"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memstore"
)

func (w *world) owe(t *rapid.T) {
	ids := w.drawIDs(t, "ids")
	w.sameErrors(t, w.store.Owe(w.ctx, ids), w.mem.Owe(w.ctx, ids), false)
}

// taker is one call of an operation that takes notifications, on either database.
type taker func(store takeStore) (taken []eventqueue.Notification, next eventqueue.EventID, err error)

type takeStore interface {
	eventqueue.RelayStore
	eventqueue.RuleStore
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

func (w *world) takeOwed(t *rapid.T) { w.take(t, "TakeOwed", w.drawTakeOwed(t)) }
func (w *world) takeDue(t *rapid.T)  { w.take(t, "TakeDue", w.drawTakeDue(t, pick(t, "limit", limits))) }
func (w *world) takeLost(t *rapid.T) {
	w.take(t, "TakeLost", w.drawTakeLost(t, w.drawAfter(t), pick(t, "limit", limits)))
}

// sweep is a whole turn of the relay after some time: only several of them in a
// row show how the interval between two notifications grows.
func (w *world) sweep(t *rapid.T) {
	w.letTimePass(t)
	w.take(t, "TakeLost", w.drawTakeLost(t, 0, 1000))
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
	switch pick(t, "what", []string{"owed", "due", "lost", "waiting"}) {
	case "owed":
		f = w.drawTakeOwed(t)
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

func (w *world) drawTakeOwed(t *rapid.T) taker {
	ids := w.drawIDs(t, "ids")
	return func(s takeStore) ([]eventqueue.Notification, eventqueue.EventID, error) {
		taken, err := s.TakeOwed(w.ctx, ids)
		return taken, 0, err
	}
}

// drawTakeDue raises the limit when it would fall between events that are due at
// the same time: which of them is taken is open.
func (w *world) drawTakeDue(t *rapid.T, limit int) taker {
	within := pick(t, "within", durations)
	var owed []memstore.Row
	for _, r := range w.mem.Events() {
		if r.NotifiedAt.IsZero() && !w.writing[r.ID] {
			owed = append(owed, r)
		}
	}
	slices.SortFunc(owed, func(a, b memstore.Row) int { return a.DelayUntil.Compare(b.DelayUntil) })
	for limit < len(owed) && owed[limit-1].DelayUntil.Equal(owed[limit].DelayUntil) {
		limit++
	}
	return func(s takeStore) ([]eventqueue.Notification, eventqueue.EventID, error) {
		taken, err := s.TakeDue(w.ctx, within, limit)
		return taken, 0, err
	}
}

func (w *world) drawTakeLost(t *rapid.T, after eventqueue.EventID, limit int) taker {
	quiet, lockTimeout := pick(t, "quiet", quiets), pick(t, "lockTimeout", lockTimeouts)
	return func(s takeStore) ([]eventqueue.Notification, eventqueue.EventID, error) {
		return s.TakeLost(w.ctx, after, limit, quiet, lockTimeout)
	}
}

func (w *world) drawTakeWaiting(t *rapid.T, after eventqueue.EventID, limit int) taker {
	scope, since := drawScope(t), w.drawTime(t)
	return func(s takeStore) ([]eventqueue.Notification, eventqueue.EventID, error) {
		return s.TakeWaiting(w.ctx, scope, since, after, limit)
	}
}

var ruleTypes = []eventqueue.RuleType{eventqueue.PauseRule, eventqueue.BlockRule}

func (w *world) addRule(t *rapid.T) {
	kind, scope := pick(t, "type", ruleTypes), drawScope(t)
	pg, pgErr := w.store.AddRule(w.ctx, kind, scope)
	mem, memErr := w.mem.AddRule(w.ctx, kind, scope)
	w.sameErrors(t, pgErr, memErr, false)
	same(t, "AddRule", pg, mem)
}

// liftRule lifts any rule, but mostly one that is there.
func (w *world) liftRule(t *rapid.T) {
	kind, scope := pick(t, "type", ruleTypes), drawScope(t)
	if rules := w.mem.Rules(); len(rules) > 0 && rapid.IntRange(0, 3).Draw(t, "any") > 0 {
		rule := pick(t, "rule", rules)
		kind, scope = rule.Type, rule.Scope
	}
	pg, pgErr := w.store.LiftRule(w.ctx, kind, scope)
	mem, memErr := w.mem.LiftRule(w.ctx, kind, scope)
	w.sameErrors(t, pgErr, memErr, false)
	inUTC(&pg.At)
	same(t, "LiftRule", pg, mem)
	w.times = append(w.times, pg.At)
}
