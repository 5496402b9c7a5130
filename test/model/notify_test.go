package model_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"pgregory.net/rapid"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/eventqueue/maintenance"
)

func (w *world) markPending(t *rapid.T) {
	ids := w.drawIDs(t, "ids")
	w.sameErrors(t, w.store.MarkPending(w.ctx, ids), w.mem.MarkPending(w.ctx, ids), false)
}

// taker is one call of an operation that takes notifications, on either database.
type taker func(store takeStore) (taken []eventqueue.Notification, next eventqueue.EventID, err error)

type takeStore interface {
	maintenance.RelayStore
	TakeLost(ctx context.Context, after eventqueue.EventID, limit int, quiet, lockTimeout time.Duration) ([]eventqueue.Notification, eventqueue.EventID, error)
	control.RuleStore
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

// sweep is a whole turn of the relay after some time: only several of them in a
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
	quiet, lockTimeout := pick(t, "quiet", quiets), pick(t, "lockTimeout", lockTimeouts)
	var after maintenance.RoundPlace
	switch after.Stage = maintenance.RoundStage(rapid.IntRange(0, int(maintenance.RoundOfRuns)).Draw(t, "stage")); {
	case rapid.Bool().Draw(t, "from its beginning"):
	case after.Stage == maintenance.RoundOfRuns:
		after.Run = w.drawID(t)
	default:
		after.Scope = drawScope(t)
	}
	return func(s takeStore) ([]eventqueue.Notification, eventqueue.EventID, error) {
		lost, next, err := s.TakeRound(w.ctx, after, quiet, lockTimeout)
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
	switch pick(t, "what", []string{"owed", "due", "lost", "waiting"}) {
	case "owed":
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

var ruleTypes = []control.RuleType{control.PauseRule, control.BlockRule}

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
