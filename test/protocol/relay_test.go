package protocol

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/operate"
)

// ledger plays the database for emits, a relay and rules: it hands out each of
// its pages once and records pending notifications. Beside the pages it is for one goroutine
// at a time.
type ledger struct {
	// Methods that are not called panic.
	eventqueue.EmitStore
	maintenance.RelayStore
	operate.RuleStore

	mu        sync.Mutex // for pages
	due, lost [][]eventqueue.Notification
	asked     int // for pages

	pending   map[eventqueue.EventID]bool
	published map[eventqueue.EventID]int
	failing   bool
	inserted  eventqueue.EventID
	lifted    operate.Lifted
	expired   []operate.Rule
	lifts     []operate.Lift
	refused   string             // the name of the handler whose rules cannot be lifted
	refusals  []time.Time        // when that was tried
	released  []operate.Released // by the next calls of Release
	scopes    []eventqueue.Scope // with waiting events
	taken     []operate.Waiting  // the calls of TakeWaiting
	since     time.Time          // of the last TakeWaiting
	hang      chan struct{}
	sending   func() // at each Publish; nil: nothing
}

// newLedger has pages of whole requests, with ids from 1 on.
func newLedger(due, lost int) *ledger {
	l := &ledger{pending: map[eventqueue.EventID]bool{}, published: map[eventqueue.EventID]int{}}
	next := eventqueue.EventID(1)
	page := func() (p []eventqueue.Notification) {
		for range eventqueue.MaxPublish {
			p = append(p, eventqueue.Notification{Event: next, Canvas: canvas})
			next++
		}
		return p
	}
	for range due {
		l.due = append(l.due, page())
	}
	for range lost {
		l.lost = append(l.lost, page())
	}
	return l
}

func (l *ledger) Publish(_ context.Context, notifications []eventqueue.Notification) error {
	if l.hang != nil {
		<-l.hang
	}
	if l.sending != nil {
		l.sending()
	}
	if l.failing {
		return errors.New("down")
	}
	for _, n := range notifications {
		l.published[n.Event]++
	}
	return nil
}

func (l *ledger) MarkPending(ctx context.Context, ids []eventqueue.EventID) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, id := range ids {
		l.pending[id] = true
	}
	return nil
}

func (l *ledger) Insert(_ context.Context, _ eventqueue.DB, events []eventqueue.NewEvent, mode eventqueue.NotifyMode) ([]eventqueue.Inserted, error) {
	rows := make([]eventqueue.Inserted, len(events))
	for i := range rows {
		l.inserted++
		rows[i] = eventqueue.Inserted{ID: l.inserted, MustNotify: mode == eventqueue.NotifyModeSelf}
		if mode != eventqueue.NotifyModeSelf {
			l.pending[l.inserted] = true
		}
	}
	return rows, nil
}

func (l *ledger) TakePending(context.Context, []eventqueue.EventID) ([]eventqueue.Notification, error) {
	return nil, nil
}

func (l *ledger) TakeDue(context.Context, time.Duration, int, maintenance.AwaitTake) ([]eventqueue.Notification, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if len(l.due) == 0 {
		return nil, nil
	}
	page := l.due[0]
	l.due = l.due[1:]
	return page, nil
}

func (l *ledger) TakeLost(_ context.Context, after eventqueue.EventID, _ int, _ time.Duration) ([]eventqueue.Notification, eventqueue.EventID, error) {
	return l.page(after)
}

func (l *ledger) TakeRound(context.Context, maintenance.RoundPlace, time.Duration) ([]eventqueue.Notification, maintenance.RoundPlace, error) {
	return nil, maintenance.RoundPlace{}, nil
}

func (l *ledger) Sweep(_ context.Context, after eventqueue.EventID, _ int, _ time.Duration) (s maintenance.Swept, err error) {
	s.Lost, s.Next, err = l.page(after)
	s.Read = max(1, len(s.Lost))
	return s, err
}

func (l *ledger) TakeWaiting(_ context.Context, of operate.Waiting, _ int) ([]eventqueue.Notification, eventqueue.EventID, error) {
	l.since = of.Since
	l.taken = append(l.taken, of)
	return l.page(of.After)
}

// page is the first page of lost that is after an id.
func (l *ledger) page(after eventqueue.EventID) ([]eventqueue.Notification, eventqueue.EventID, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	for i, page := range l.lost {
		last := page[len(page)-1].Event
		switch {
		case last <= after:
		case i == len(l.lost)-1:
			return page, 0, nil
		default:
			return page, last, nil
		}
	}
	return nil, 0, nil
}

func (l *ledger) LiftRule(_ context.Context, lift operate.Lift) (operate.Lifted, error) {
	if l.refused != "" && lift.Name == l.refused {
		l.refusals = append(l.refusals, time.Now())
		return operate.Lifted{}, &pgconn.PgError{Code: "P0001"}
	}
	l.lifts = append(l.lifts, lift)
	return l.lifted, nil
}

func (l *ledger) RulesToLift(context.Context) ([]operate.Rule, error) { return l.expired, nil }

func (l *ledger) WaitingScopes(context.Context, operate.RuleScope) ([]eventqueue.Scope, error) {
	return l.scopes, nil
}

func (l *ledger) Release(context.Context, operate.RuleType, operate.RuleScope) (released operate.Released, _ error) {
	if len(l.released) > 0 {
		released, l.released = l.released[0], l.released[1:]
	}
	return released, nil
}

func (l *ledger) relay(t *testing.T, config maintenance.RelayConfig) *maintenance.Relay {
	t.Helper()
	relay, err := maintenance.NewRelay(l, l, config)
	if err != nil {
		t.Fatal(err)
	}
	return relay
}

// publishedOnce checks that the events 1 to n were published, each once.
func (l *ledger) publishedOnce(t *testing.T, n int) {
	t.Helper()
	for id := eventqueue.EventID(1); id <= eventqueue.EventID(n); id++ {
		if l.published[id] != 1 {
			t.Fatalf("event %s of %d was published %d times", id, n, l.published[id])
		}
	}
}

// TestARelayPublishesAndSearches (I1, I2): all pages of pending notifications, and all pages
// of those that seem lost.
func TestARelayPublishesAndSearches(t *testing.T) {
	t.Parallel()
	l := newLedger(3, 3)
	const page = eventqueue.MaxPublish
	done, err := l.relay(t, maintenance.RelayConfig{}).Pass(t.Context())
	if err != nil || done != (maintenance.Relayed{Pending: 3 * page, Lost: 3 * page}) {
		t.Errorf("published %+v, %v", done, err)
	}
	l.publishedOnce(t, 6*page)
}

// TestWhatARelayCannotPublishIsPendingAgain (I1, I2).
func TestWhatARelayCannotPublishIsPendingAgain(t *testing.T) {
	t.Parallel()
	const page = eventqueue.MaxPublish
	for name, l := range map[string]*ledger{"pending": newLedger(1, 0), "lost": newLedger(0, 1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l.failing = true
			// More than one request can carry.
			for id := range eventqueue.EventID(page) {
				extra := eventqueue.Notification{Event: page + 1 + id, Canvas: canvas}
				if name == "pending" {
					l.due[0] = append(l.due[0], extra)
				} else {
					l.lost[0] = append(l.lost[0], extra)
				}
			}
			if done, err := l.relay(t, maintenance.RelayConfig{}).Pass(t.Context()); err == nil {
				t.Errorf("the relay reports that it published %+v", done)
			}
			if len(l.pending) != 2*page {
				t.Errorf("%d of %d are pending again", len(l.pending), 2*page)
			}
		})
	}
}

// TestARelayKeepsItsRate (I11), in virtual time.
func TestARelayKeepsItsRate(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		l := newLedger(11, 0)
		began := time.Now()
		if _, err := l.relay(s.t, maintenance.RelayConfig{PerSecond: eventqueue.MaxPublish}).Pass(s.t.Context()); err != nil {
			s.t.Error(err)
		}
		// The first second's worth may go out at once.
		if took := time.Since(began); took < 10*time.Second {
			s.t.Errorf("eleven seconds' worth took %s", took)
		}
	})
}

// TestStoppedRelayLosesNothingOfWhatItHasTaken (I1, I2): a relay that is stopped while it waits for its rate has all that it
// has taken and not published pending again.
func TestStoppedRelayLosesNothingOfWhatItHasTaken(t *testing.T) {
	t.Parallel()
	const perSecond, page = 200, eventqueue.MaxPublish
	for _, name := range []string{"pending", "lost"} {
		for _, after := range []time.Duration{0, 50 * time.Millisecond, 900 * time.Millisecond, 2500 * time.Millisecond, time.Hour} {
			t.Run(name+" "+after.String(), func(t *testing.T) {
				t.Parallel()
				inVirtualTime(t, func(s *script) {
					all := slices.Concat(newLedger(2, 0).due...)
					l := newLedger(0, 0)
					if l.due = append(l.due, all); name == "lost" {
						l.due, l.lost = nil, l.due
					}
					ctx, stop := context.WithTimeout(s.t.Context(), after)
					defer stop()
					if after == time.Hour { // it is stopped during its first request
						l.sending = stop
					}
					_, _ = l.relay(s.t, maintenance.RelayConfig{PerSecond: perSecond}).Pass(ctx) // it is stopped
					if len(l.pending)+len(l.published) == 0 && after == 0 {
						return // it has taken nothing
					}
					for _, n := range all {
						if published := l.published[n.Event]; published > 1 || (published == 1) == l.pending[n.Event] {
							s.t.Fatalf("event %s was published %d times, and is pending: %t", n.Event, published, l.pending[n.Event])
						}
					}
					if after == time.Hour && len(l.published) != perSecond/10 {
						s.t.Errorf("%d were published, and one request has %d", len(l.published), perSecond/10)
					}
					// A whole request may go out at once.
					if most := page + int(after.Seconds()*perSecond) + 1; len(l.published) > most {
						s.t.Errorf("%d were published in %s, at %d a second", len(l.published), after, perSecond)
					}
				})
			})
		}
	}
}

// LeavePending is MarkPending.
func (l *ledger) LeavePending(ctx context.Context, ids []eventqueue.EventID) error {
	return l.MarkPending(ctx, ids)
}

// rules are on the ledger.
func (l *ledger) rules(t *testing.T) *operate.Rules {
	t.Helper()
	queue, err := eventqueue.New(l, l, eventqueue.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := operate.NewRules(l, queue)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// TestLiftingNotifiesAllThatWaits (I13), however many pages there are.
func TestLiftingNotifiesAllThatWaits(t *testing.T) {
	t.Parallel()
	const pages, all = 3, 3 * eventqueue.MaxPublish
	l := newLedger(0, pages)
	l.lifted = operate.Lifted{Removed: true, Last: true, At: time.Now()}
	removed, notified, err := l.rules(t).Lift(t.Context(), operate.PauseRule, scope)
	if err != nil || !removed || notified != all {
		t.Errorf("removed=%t notified=%d err=%v, want all %d", removed, notified, err, all)
	}
	l.publishedOnce(t, all)
}

// TestRulesAreLiftedAtTheirEnd (I13, I14): whoever removes a rule notifies what waits, and nobody
// else does. One that cannot be lifted keeps none of the others.
func TestRulesAreLiftedAtTheirEnd(t *testing.T) {
	t.Parallel()
	other := scope
	other.Name = "other"
	l := newLedger(0, 2)
	l.expired = []operate.Rule{operate.RuleOf(operate.BlockRule, other), operate.RuleOf(operate.PauseRule, scope)}
	l.refused = other.Name
	l.lifted = operate.Lifted{Removed: true, Last: true, At: time.Now()}
	lifted, _, err := l.rules(t).LiftExpired(t.Context())
	if err == nil || !slices.Equal(lifted, l.expired[1:]) {
		t.Errorf("lifted are %+v, %v", lifted, err)
	}
	if want := []operate.Lift{{Type: operate.PauseRule, RuleScope: operate.RuleScope{Scope: scope}, Expired: true}}; !slices.Equal(l.lifts, want) {
		t.Errorf("lifted by %+v, want %+v", l.lifts, want)
	}
	l.publishedOnce(t, 2*eventqueue.MaxPublish)

	l = newLedger(0, 1)
	l.expired = []operate.Rule{operate.RuleOf(operate.PauseRule, scope)}
	l.lifted = operate.Lifted{Last: true, At: time.Now()}
	if lifted, _, err := l.rules(t).LiftExpired(t.Context()); err != nil || len(lifted) != 0 {
		t.Errorf("another one has lifted it, and this one returns %+v, %v", lifted, err)
	}
	if len(l.published) > 0 {
		t.Errorf("%d events are notified again", len(l.published))
	}
}

// TestARuleIsLiftedAtItsRate: one second's worth at once, and each second what there is room for, until
// nothing waits; only then is it asked more seldom again.
func TestARuleIsLiftedAtItsRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(0, 0)
		slow := operate.RuleOf(operate.PauseRule, scope)
		slow.Rate = 1
		l.lifted = operate.Lifted{Removed: true, Last: true}
		l.released = []operate.Released{{GoesOn: true, UpTo: 5, At: time.Now()}}
		result, err := l.rules(t).LiftRule(t.Context(), operate.Lift{Type: slow.Type, RuleScope: slow.RuleScope, Rate: 1})
		if err != nil || !result.Removed || !result.GoesOn || len(l.taken) != 1 || l.taken[0] != (operate.Waiting{Scope: scope, Since: time.Now(), UpTo: 5}) {
			t.Errorf("at first %+v, %v; taken are %+v", result, err, l.taken)
		}
		l.taken, l.expired = nil, []operate.Rule{slow}
		l.released = []operate.Released{{GoesOn: true, After: 5, UpTo: 5}, {GoesOn: true, After: 5, UpTo: 6}, {Removed: true, Last: true, After: 6}, {GoesOn: true}}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second+operate.ExpiryInterval-time.Millisecond)
		defer cancel()
		if err := l.rules(t).RunExpiry(ctx); err != nil {
			t.Error(err)
		}
		if len(l.released) != 1 || len(l.taken) != 2 || l.taken[0].After != 5 || l.taken[0].UpTo != 6 || l.taken[1].After != 6 || l.taken[1].UpTo != 0 {
			t.Errorf("not asked for are %+v, and taken %+v", l.released, l.taken)
		}
	})
}

// TestARuleThatCannotBeLiftedIsLeftAlone (I15): while another one is lifted at a rate, it is tried by itself in growing
// intervals, and at most a minute after its cause has gone it is lifted.
func TestARuleThatCannotBeLiftedIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(0, 0)
		slow, bad := operate.RuleOf(operate.PauseRule, scope), operate.RuleOf(operate.PauseRule, scope)
		slow.Rate, bad.Name = 1, "bad"
		l.expired, l.refused = []operate.Rule{bad, slow}, bad.Name
		const seconds = 600
		for range seconds {
			l.released = append(l.released, operate.Released{GoesOn: true})
		}
		ctx, cancel := context.WithTimeout(t.Context(), (seconds-1)*time.Second+time.Millisecond)
		defer cancel()
		if err := l.rules(t).RunExpiry(ctx); err != nil {
			t.Error(err)
		}
		if len(l.released) > 0 {
			t.Errorf("of %d steps of the other rule %d are left", seconds, len(l.released))
		}
		gap := time.Duration(0)
		for i, at := range l.refusals[1:] {
			if next := at.Sub(l.refusals[i]); next < gap || next > time.Minute {
				t.Errorf("after %s it is tried %s later", gap, next)
			} else {
				gap = next
			}
		}
		if n := len(l.refusals); n < seconds/60 || n > 30 {
			t.Errorf("it is tried %d times in ten minutes", n)
		}
	})
}

// TestAllHandlersOfAPrefixAreNotified (I13), each with the modifier of the rule.
func TestAllHandlersOfAPrefixAreNotified(t *testing.T) {
	t.Parallel()
	other := scope
	other.Name = "other"
	l := newLedger(0, 1)
	l.scopes = []eventqueue.Scope{scope, other}
	l.lifted = operate.Lifted{Removed: true, Last: true, At: time.Now()}
	result, err := l.rules(t).LiftRule(t.Context(), operate.Lift{Type: operate.PauseRule, RuleScope: operate.RuleScope{Scope: scope, Prefix: true, Modifier: "bulk"}})
	if err != nil || result.Notified != 2*eventqueue.MaxPublish || len(l.taken) != 2 || l.taken[1] != (operate.Waiting{Scope: other, Modifier: "bulk", Since: l.lifted.At}) {
		t.Errorf("%+v, %v; taken are %+v", result, err, l.taken)
	}
}

// TestLiftingAgain (I13, I14): an earlier call may have removed the rule and got
// no further, so what waits is notified once more, but not what has just been.
// While another rule holds it all back, nothing is.
func TestLiftingAgain(t *testing.T) {
	t.Parallel()
	l := newLedger(0, 1)
	l.lifted = operate.Lifted{Last: true, At: time.Now()}
	removed, notified, err := l.rules(t).Lift(t.Context(), operate.PauseRule, scope)
	if err != nil || removed || notified != eventqueue.MaxPublish {
		t.Errorf("removed=%t notified=%d err=%v", removed, notified, err)
	}
	if !l.since.Before(l.lifted.At) {
		t.Error("what has just been notified is notified again")
	}
	l = newLedger(0, 1)
	l.lifted = operate.Lifted{Removed: true, At: time.Now()}
	if _, notified, err := l.rules(t).Lift(t.Context(), operate.PauseRule, scope); err != nil || notified != 0 {
		t.Errorf("under another rule %d were notified, %v", notified, err)
	}
}
