package operate_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/rig"
)

// scriptedRules is a store of rules whose answers the test prepares. Its waiting events are the pages.
type scriptedRules struct {
	*rig.Pages
	operate.RuleStore // methods that are not called panic

	lifted   operate.Lifted
	expired  []operate.Rule
	lifts    []operate.Lift
	woken    chan struct{}
	mu       sync.Mutex         // of what a test changes while rules are lifted
	looks    int                // the calls of RulesToLift
	refused  string             // the name of the handler whose rules cannot be lifted
	refusals []time.Time        // when that was tried
	released []operate.Released // by the next calls of Release
	scopes   []eventqueue.Scope // with waiting events
	taken    []operate.Waiting  // the calls of TakeWaiting
}

func newScriptedRules(pages int) *scriptedRules {
	return &scriptedRules{Pages: rig.NewPages(0, pages), woken: make(chan struct{}, 1)}
}

func (s *scriptedRules) TakeWaiting(_ context.Context, of operate.Waiting, _ int) ([]eventqueue.Notification, eventqueue.EventID, error) {
	s.taken = append(s.taken, of)
	return s.After(of.After)
}

func (s *scriptedRules) LiftRule(_ context.Context, lift operate.Lift) (operate.Lifted, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused != "" && lift.Name == s.refused {
		s.refusals = append(s.refusals, time.Now())
		return operate.Lifted{}, &pgconn.PgError{Code: "P0001"}
	}
	s.lifts = append(s.lifts, lift)
	return s.lifted, nil
}

func (s *scriptedRules) RulesToLift(context.Context, time.Duration) (rules []operate.RuleToLift, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	for _, rule := range s.expired {
		rules = append(rules, operate.RuleToLift{Rule: rule, In: max(time.Until(rule.Until), 0)})
	}
	return rules, nil
}

func (s *scriptedRules) Woken() <-chan struct{} { return s.woken }

func (s *scriptedRules) WaitingScopes(context.Context, operate.RuleScope) ([]eventqueue.Scope, error) {
	return s.scopes, nil
}

func (s *scriptedRules) Release(context.Context, operate.RuleType, operate.RuleScope) (released operate.Released, _ error) {
	if len(s.released) > 0 {
		released, s.released = s.released[0], s.released[1:]
	}
	return released, nil
}

// rules are on the script.
func (s *scriptedRules) rules(t *testing.T) *operate.Rules {
	t.Helper()
	return rulesOn(t, s, s.Pages)
}

// rulesOn makes Rules on a store, which publish to the pages.
func rulesOn(t *testing.T, store operate.RuleStore, pages *rig.Pages) *operate.Rules {
	t.Helper()
	queue, err := eventqueue.New(pages, pages, eventqueue.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := operate.NewRules(store, queue)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// TestLiftingNotifiesAllThatWaits (I13), however many pages there are.
func TestLiftingNotifiesAllThatWaits(t *testing.T) {
	t.Parallel()
	const pages, all = 3, 3 * eventqueue.MaxPublish
	s := newScriptedRules(pages)
	s.lifted = operate.Lifted{Removed: true, Last: true, At: time.Now()}
	removed, notified, err := s.rules(t).Lift(t.Context(), operate.PauseRule, rig.Scope)
	if err != nil || !removed || notified != all {
		t.Errorf("removed=%t notified=%d err=%v, want all %d", removed, notified, err, all)
	}
	s.PublishedOnce(t, all)
}

// TestRulesAreLiftedAtTheirEnd (I13, I14): whoever removes a rule notifies what waits, and nobody
// else does. One that cannot be lifted keeps none of the others.
func TestRulesAreLiftedAtTheirEnd(t *testing.T) {
	t.Parallel()
	other := rig.Scope
	other.Name = "other"
	s := newScriptedRules(2)
	s.expired = []operate.Rule{operate.RuleOf(operate.BlockRule, other), operate.RuleOf(operate.PauseRule, rig.Scope)}
	s.refused = other.Name
	s.lifted = operate.Lifted{Removed: true, Last: true, At: time.Now()}
	lifted, _, err := s.rules(t).LiftExpired(t.Context())
	if err == nil || !slices.Equal(lifted, s.expired[1:]) {
		t.Errorf("lifted are %+v, %v", lifted, err)
	}
	if want := []operate.Lift{{Type: operate.PauseRule, RuleScope: operate.RuleScope{Scope: rig.Scope}, Expired: true}}; !slices.Equal(s.lifts, want) {
		t.Errorf("lifted by %+v, want %+v", s.lifts, want)
	}
	s.PublishedOnce(t, 2*eventqueue.MaxPublish)

	s = newScriptedRules(1)
	s.expired = []operate.Rule{operate.RuleOf(operate.PauseRule, rig.Scope)}
	s.lifted = operate.Lifted{Last: true, At: time.Now()}
	if lifted, _, err := s.rules(t).LiftExpired(t.Context()); err != nil || len(lifted) != 0 {
		t.Errorf("another one has lifted it, and this one returns %+v, %v", lifted, err)
	}
	if len(s.Published) > 0 {
		t.Errorf("%d events are notified again", len(s.Published))
	}
}

// TestRuleIsLiftedAtItsRate: one second's worth at once, and each second what there is room for, until
// nothing waits; only then is it asked more seldom again.
func TestRuleIsLiftedAtItsRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScriptedRules(0)
		slow := operate.RuleOf(operate.PauseRule, rig.Scope)
		slow.Rate = 1
		s.lifted = operate.Lifted{Removed: true, Last: true}
		s.released = []operate.Released{{GoesOn: true, UpTo: 5, At: time.Now()}}
		result, err := s.rules(t).LiftRule(t.Context(), operate.Lift{Type: slow.Type, RuleScope: slow.RuleScope, Rate: 1})
		if err != nil || !result.Removed || !result.GoesOn || len(s.taken) != 1 || s.taken[0] != (operate.Waiting{Scope: rig.Scope, Since: time.Now(), UpTo: 5}) {
			t.Errorf("at first %+v, %v; taken are %+v", result, err, s.taken)
		}
		s.taken, s.expired = nil, []operate.Rule{slow}
		s.released = []operate.Released{{GoesOn: true, After: 5, UpTo: 5}, {GoesOn: true, After: 5, UpTo: 6}, {Removed: true, Last: true, After: 6}, {GoesOn: true}}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second+operate.ExpiryInterval-time.Millisecond)
		defer cancel()
		if err := s.rules(t).RunExpiry(ctx); err != nil {
			t.Error(err)
		}
		if len(s.released) != 1 || len(s.taken) != 2 || s.taken[0].After != 5 || s.taken[0].UpTo != 6 || s.taken[1].After != 6 || s.taken[1].UpTo != 0 {
			t.Errorf("not asked for are %+v, and taken %+v", s.released, s.taken)
		}
	})
}

// TestRuleIsLiftedAtItsEnd: while the end of none is near, rules are looked for once a minute; one that is added meanwhile is
// lifted in time, since adding it wakes the relay.
func TestRuleIsLiftedAtItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScriptedRules(0)
		s.lifted = operate.Lifted{Removed: true, Last: true}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.rules(t).RunExpiry(ctx) }()
		time.Sleep(10 * time.Minute)
		s.mu.Lock()
		if s.looks < 10 || s.looks > 11 {
			t.Errorf("without a rule, they are looked for %d times in ten minutes", s.looks)
		}
		s.mu.Unlock()
		lifts := func() int {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.lifts)
		}
		rule := operate.RuleOf(operate.PauseRule, rig.Scope)
		for _, in := range []time.Duration{time.Second, 15 * time.Second, 100 * time.Second} {
			rule.Until = time.Now().Add(in)
			s.mu.Lock()
			s.expired, s.lifts = []operate.Rule{rule}, nil
			s.mu.Unlock()
			select {
			case s.woken <- struct{}{}:
			default:
			}
			time.Sleep(in - time.Millisecond)
			if lifts() > 0 {
				t.Errorf("a rule that ends in %s is lifted before", in)
			}
			time.Sleep(operate.ExpiryInterval)
			if lifts() == 0 {
				t.Errorf("a rule that ends in %s is not lifted in time", in)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestRuleThatCannotBeLiftedIsLeftAlone (I15): while another one is lifted at a rate, it is tried by itself in growing
// intervals, and at most a minute after its cause has gone it is lifted.
func TestRuleThatCannotBeLiftedIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScriptedRules(0)
		slow, bad := operate.RuleOf(operate.PauseRule, rig.Scope), operate.RuleOf(operate.PauseRule, rig.Scope)
		slow.Rate, bad.Name = 1, "bad"
		s.expired, s.refused = []operate.Rule{bad, slow}, bad.Name
		const seconds = 600
		for range seconds {
			s.released = append(s.released, operate.Released{GoesOn: true})
		}
		ctx, cancel := context.WithTimeout(t.Context(), (seconds-1)*time.Second+time.Millisecond)
		defer cancel()
		if err := s.rules(t).RunExpiry(ctx); err != nil {
			t.Error(err)
		}
		if len(s.released) > 0 {
			t.Errorf("of %d steps of the other rule %d are left", seconds, len(s.released))
		}
		gap := time.Duration(0)
		for i, at := range s.refusals[1:] {
			if next := at.Sub(s.refusals[i]); next < gap || next > time.Minute {
				t.Errorf("after %s it is tried %s later", gap, next)
			} else {
				gap = next
			}
		}
		if n := len(s.refusals); n < seconds/60 || n > 30 {
			t.Errorf("it is tried %d times in ten minutes", n)
		}
	})
}

// TestAllHandlersOfAPrefixAreNotified (I13), each with the modifier of the rule.
func TestAllHandlersOfAPrefixAreNotified(t *testing.T) {
	t.Parallel()
	other := rig.Scope
	other.Name = "other"
	s := newScriptedRules(1)
	s.scopes = []eventqueue.Scope{rig.Scope, other}
	s.lifted = operate.Lifted{Removed: true, Last: true, At: time.Now()}
	result, err := s.rules(t).LiftRule(t.Context(), operate.Lift{Type: operate.PauseRule, RuleScope: operate.RuleScope{Scope: rig.Scope, Prefix: true, Modifier: "bulk"}})
	if err != nil || result.Notified != 2*eventqueue.MaxPublish || len(s.taken) != 2 || s.taken[1] != (operate.Waiting{Scope: other, Modifier: "bulk", Since: s.lifted.At}) {
		t.Errorf("%+v, %v; taken are %+v", result, err, s.taken)
	}
}

// TestLiftingAgain (I13, I14): an earlier call may have removed the rule and got
// no further, so what waits is notified once more, but not what has just been.
// While another rule holds it all back, nothing is.
func TestLiftingAgain(t *testing.T) {
	t.Parallel()
	s := newScriptedRules(1)
	s.lifted = operate.Lifted{Last: true, At: time.Now()}
	removed, notified, err := s.rules(t).Lift(t.Context(), operate.PauseRule, rig.Scope)
	if err != nil || removed || notified != eventqueue.MaxPublish {
		t.Errorf("removed=%t notified=%d err=%v", removed, notified, err)
	}
	if !s.taken[0].Since.Before(s.lifted.At) {
		t.Error("what has just been notified is notified again")
	}
	s = newScriptedRules(1)
	s.lifted = operate.Lifted{Removed: true, At: time.Now()}
	if _, notified, err := s.rules(t).Lift(t.Context(), operate.PauseRule, rig.Scope); err != nil || notified != 0 {
		t.Errorf("under another rule %d were notified, %v", notified, err)
	}
}
