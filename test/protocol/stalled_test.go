package protocol

import (
	"context"
	"strings"
	"testing"
	"time"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
)

// hang is a call that does not return: one that honours its context returns when that has ended,
// as it does when a database does not answer; any other stays until it is released, as in a
// program that has come to a deadlock.
type hang struct {
	call     string
	honours  bool
	released chan struct{}
}

func (h *hang) in(ctx context.Context, call string) error {
	switch {
	case h.call != call:
		return nil
	case h.honours:
		<-ctx.Done()
		return ctx.Err()
	default:
		<-h.released
		return context.Canceled
	}
}

// hangingWorker is a script in which a call hangs.
type hangingWorker struct {
	*script
	*hang
}

func (h hangingWorker) Claim(ctx context.Context, ids []eventqueue.EventID, known eventqueue.HandlerSet, claim eventqueue.ClaimID) ([]worker.ClaimResult, error) {
	if err := h.in(ctx, "claim"); err != nil {
		h.mu.Lock()
		h.asked = append(h.asked, claim)
		h.mu.Unlock()
		return nil, err
	}
	return h.script.Claim(ctx, ids, known, claim)
}

func (h hangingWorker) Renew(ctx context.Context, claims []worker.Claim) (worker.WriteResult, error) {
	if err := h.in(ctx, "renew"); err != nil {
		return worker.WriteResult{}, err
	}
	return h.script.Renew(ctx, claims)
}

func (h hangingWorker) Complete(ctx context.Context, db eventqueue.DB, completions []worker.Completion, retain bool) (worker.WriteResult, error) {
	if err := h.in(ctx, "complete"); err != nil {
		return worker.WriteResult{}, err
	}
	return h.script.Complete(ctx, db, completions, retain)
}

func (h hangingWorker) Requeue(ctx context.Context, deliveries []eventqueue.Delivery, after time.Duration) error {
	if err := h.in(ctx, "requeue"); err != nil {
		return err
	}
	return h.script.Requeue(ctx, deliveries, after)
}

// TestAHungLoopOfAWorkerIsNamed, and one whose calls end by their time-outs is not (I13): a
// database or a notifier that hangs is no reason to restart a worker.
func TestAHungLoopOfAWorkerIsNamed(t *testing.T) {
	t.Parallel()
	for call, loop := range map[string]string{
		"claim":    "loop that pulls notifications and claims events",
		"complete": "loop that writes completions",
		"renew":    "heartbeat that renews locks",
		"requeue":  "heartbeat that extends leases",
	} {
		for _, honours := range []bool{false, true} {
			inVirtualTime(t, func(s *script) {
				h := &hang{call: call, honours: honours, released: make(chan struct{})}
				s.handle(eventqueue.Policy{Timeout: time.Hour}, func(ctx context.Context, run *eventqueue.Run) error {
					if run.ID == 2 { // the other one ends at once
						<-ctx.Done()
					}
					return nil
				})
				stop := s.startOn(hangingWorker{s, h}, worker.Config{LockTimeout: time.Minute, GracePeriod: -1})
				s.notify(s.claimed(1), s.claimed(2))
				expectStall(s.t, call, s.worker.Stalled, loop, honours)
				close(h.released)
				stop()
			})
		}
	}
}

// expectStall asks for ten minutes whether a loop has stalled.
func expectStall(t *testing.T, call string, stalled func() error, loop string, honours bool) {
	t.Helper()
	var why error
	for asked := 0; asked < 120 && why == nil; asked++ {
		pass(5 * time.Second)
		why = stalled()
	}
	switch {
	case honours && why != nil:
		t.Errorf("%s ends by its time-out, and %v", call, why)
	case !honours && (why == nil || !strings.Contains(why.Error(), loop)):
		t.Errorf("%s does not return, and what is said is %v, want the %s", call, why, loop)
	}
}

// TestIdleAndBusyLoopsAreWell: a worker that has nothing to do for days is no stalled one, and
// neither is one whose handlers run for hours.
func TestIdleAndBusyLoopsAreWell(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.handle(eventqueue.Policy{Timeout: 24 * time.Hour}, func(context.Context, *eventqueue.Run) error {
			<-time.After(3 * time.Hour)
			return nil
		})
		stop := s.start(worker.Config{Concurrency: 2})
		defer stop()
		well := func() {
			for range 40 {
				pass(10 * time.Minute)
				if err := s.worker.Stalled(); err != nil {
					s.t.Fatal(err)
				}
			}
		}
		well()
		s.notify(s.claimed(1), s.claimed(2))
		well()
	})
}

// hangingRelay is a relay's store without events, in which a call hangs.
type hangingRelay struct {
	eventqueue.PendingStore
	*hang
}

func (h hangingRelay) TakeDue(ctx context.Context, _ time.Duration, _ int, _ maintenance.AwaitTake) ([]eventqueue.Notification, error) {
	return nil, h.in(ctx, "due")
}

func (h hangingRelay) Sweep(ctx context.Context, _ eventqueue.EventID, _ int, _ time.Duration) (maintenance.Swept, error) {
	return maintenance.Swept{}, h.in(ctx, "sweep")
}

func (h hangingRelay) TakeRound(ctx context.Context, _ maintenance.RoundPlace, _ time.Duration) ([]eventqueue.Notification, maintenance.RoundPlace, error) {
	return nil, maintenance.RoundPlace{}, h.in(ctx, "round")
}

func (h hangingRelay) CountWaiting(ctx context.Context, _ eventqueue.Scope) (maintenance.Waiting, error) {
	return maintenance.Waiting{}, h.in(ctx, "count")
}

func (h hangingRelay) OldestDue(ctx context.Context, _ eventqueue.Scope) (eventqueue.EventID, string, error) {
	return 0, "", h.in(ctx, "oldest")
}

func (h hangingRelay) SumMinutes(ctx context.Context) (bool, error) {
	return false, h.in(ctx, "sum minutes")
}

func (h hangingRelay) SumHour(ctx context.Context) (bool, error) { return false, h.in(ctx, "sum") }

func (h hangingRelay) PruneMinutes(ctx context.Context, _, _ time.Duration, _ int) (int, error) {
	return 0, h.in(ctx, "prune minutes")
}

func (h hangingRelay) LockTimeout(ctx context.Context) (time.Duration, bool, error) {
	return time.Minute, true, h.in(ctx, "lock timeout")
}

func (hangingRelay) AddRule(context.Context, operate.Rule) (bool, error) { return true, nil }

func (h hangingRelay) RulesToLift(ctx context.Context) ([]operate.Rule, error) {
	rule := operate.RuleOf(operate.PauseRule, eventqueue.Scope{Canvas: eventqueue.CanvasID{1}, Module: "WORKER", Name: "job"})
	rule.Prefix, rule.Until = true, time.Now()
	released := rule
	released.Rate = 5
	return []operate.Rule{rule, released}, h.in(ctx, "rules")
}

func (h hangingRelay) LiftRule(ctx context.Context, _ operate.Lift) (operate.Lifted, error) {
	return operate.Lifted{Removed: true, Last: true}, h.in(ctx, "lift")
}

func (h hangingRelay) Release(ctx context.Context, _ operate.RuleType, _ operate.RuleScope) (operate.Released, error) {
	return operate.Released{}, h.in(ctx, "release")
}

func (h hangingRelay) WaitingScopes(ctx context.Context, scope operate.RuleScope) ([]eventqueue.Scope, error) {
	return []eventqueue.Scope{scope.Scope}, h.in(ctx, "scopes")
}

func (h hangingRelay) TakeWaiting(ctx context.Context, _ operate.Waiting, _ int) ([]eventqueue.Notification, eventqueue.EventID, error) {
	return nil, 0, h.in(ctx, "take waiting")
}

func (hangingRelay) LeavePending(context.Context, []eventqueue.EventID) error { return nil }

func (hangingRelay) Listen(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return ctx.Err()
}

func (h hangingRelay) PruneLog(ctx context.Context, _ maintenance.LogStatus, _ time.Duration, _ eventqueue.EventID, _ int) (maintenance.PrunedPage, error) {
	return maintenance.PrunedPage{}, h.in(ctx, "prune")
}

func (hangingRelay) CountLog(context.Context, maintenance.LogStatus, time.Duration, eventqueue.EventID, int) (maintenance.PrunedPage, error) {
	return maintenance.PrunedPage{}, nil
}

func (h hangingRelay) Load(ctx context.Context) (cronchecker.Snapshot, error) {
	return cronchecker.Snapshot{Now: time.Now()}, h.in(ctx, "load")
}

func (hangingRelay) Prune(context.Context, []cronchecker.CronID, time.Duration) error { return nil }

func (hangingRelay) Emit(context.Context, []cronchecker.Slot) (int, error) { return 0, nil }

// TestAHungLoopOfCronIsNamed, as those of a worker are.
func TestAHungLoopOfCronIsNamed(t *testing.T) {
	t.Parallel()
	const lifts = "loop that lifts rules whose end has come"
	for call, loop := range map[string]string{
		"due":          "relay that publishes pending notifications",
		"sweep":        "relay that walks over all events",
		"round":        "relay that looks for lost notifications",
		"count":        "relay that counts what is pending",
		"lock timeout": "relay that reads the lock timeout",
		"rules":        lifts, "lift": lifts, "release": lifts, "scopes": lifts, "take waiting": lifts,
		"prune": "pruner",
		"load":  "cron checker",
		"":      "",
	} {
		for _, honours := range []bool{false, true} {
			if call == "" && !honours {
				continue // nothing hangs: all are well
			}
			inVirtualTime(t, func(s *script) {
				h := hangingRelay{s, &hang{call: call, honours: honours, released: make(chan struct{})}}
				run, stalled := s.cronPart(call, h)
				ctx, cancel := context.WithCancel(context.Background())
				ended := make(chan error)
				go func() { ended <- run(ctx) }()
				expectStall(s.t, call, stalled, loop, honours)
				cancel()
				close(h.released)
				if err := <-ended; err != nil {
					s.t.Error(err)
				}
			})
		}
	}
}

// cronPart makes the part of cron that makes a call.
func (s *script) cronPart(call string, store hangingRelay) (run func(context.Context) error, stalled func() error) {
	s.t.Helper()
	switch call {
	case "prune":
		p, err := maintenance.NewPruner(store, maintenance.PrunerConfig{FailedFor: time.Hour})
		if err != nil {
			s.t.Fatal(err)
		}
		return p.Run, p.Stalled
	case "rules", "lift", "release", "scopes", "take waiting":
		queue, err := eventqueue.New(s, silent{}, eventqueue.QueueConfig{})
		if err != nil {
			s.t.Fatal(err)
		}
		r, err := operate.NewRules(store, queue)
		if err != nil {
			s.t.Fatal(err)
		}
		return r.RunExpiry, r.Stalled
	case "load":
		c, err := cronchecker.New(store, cronchecker.Config{})
		if err != nil {
			s.t.Fatal(err)
		}
		return c.Run, c.Stalled
	default:
		r, err := maintenance.NewRelay(store, silent{}, maintenance.RelayConfig{})
		if err != nil {
			s.t.Fatal(err)
		}
		return r.Run, r.Stalled
	}
}
