package inspect

import (
	"slices"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/workerhandlers"
)

// causes can keep an event from running, in the order in which a worker would meet them, after
// a lock that is held.
var causes = []struct {
	label machine.Label
	set   func(f *facts, e *QueuedEvent)
	want  []string // of the sentence and the remedy
}{
	{machine.IsLocked, func(_ *facts, e *QueuedEvent) { e.heldBy(WorkerDead) }, []string{
		"worker on pod-7 (v1.2.3, dead), which took or renewed the lock 2026-01-01T12:59:50Z (10s ago), no longer runs",
		"valid until 2026-01-01T13:00:50Z (in 50s)", "another worker takes the event over: the relay notifies it again"}},
	{machine.Blocked, func(f *facts, _ *QueuedEvent) { f.rule(machine.BlockRule) }, []string{"blocked by an admin (ada) since", "1h0m ago", "because of: the target is sick …, until 2026-01-01T14:00:00Z (in 1h0m)", "eventctl unblock --canvas"}},
	{machine.Paused, func(f *facts, _ *QueuedEvent) { f.rule(machine.PauseRule) }, []string{"paused by the user (ada) since", "eventctl unpause --canvas"}},
	{machine.DelayNotYet, func(_ *facts, e *QueuedEvent) { e.DelayUntil = e.AsOf.Add(2 * time.Hour) }, []string{"due 2026-01-01T15:00:00Z (in 2h0m)", "eventctl requeue 7"}},
	{machine.HandlerUnknown, func(f *facts, _ *QueuedEvent) {
		f.live, f.knowing, f.lastKnew = 2, 0, &Worker{Host: "pod-1", Version: "v1.0.0", StartedAt: start.Add(-time.Hour), AsOf: start}
	}, []string{"No live worker, of which there are 2, has its handler WORKER/greet/_", "the last that had it was on pod-1 (v1.0.0)", "deploy a version"}},
	{machine.NotItsTurn, func(f *facts, _ *QueuedEvent) {
		f.shown.Group = &Group{Of: operate.ConcurrencyLimit{Key: "k", Max: 1}, Next: 3}
	}, []string{`ordering key "k"`, "behind event 3", "eventctl explain 3"}},
}

var start = time.Date(2026, 1, 1, 13, 0, 0, 0, time.UTC)

// free is an event that nothing keeps from running.
func free() *facts {
	e := &QueuedEvent{Event: eventqueue.Event{ID: 7, Module: "WORKER", Name: "greet", Modifier: "_", EnqueuedAt: start.Add(-time.Minute), DelayUntil: start.Add(-time.Minute)},
		NotifiedAt: new(start.Add(-time.Second)), AsOf: start, LockValidFor: time.Minute}
	return &facts{shown: Shown{Queued: e}, relayRuns: true, live: 1, knowing: 1}
}

// heldBy has a worker in a state hold the lock of the event, whose run has begun.
func (e *QueuedEvent) heldBy(state WorkerState) {
	e.LockedAt, e.Begun = new(e.AsOf.Add(-10*time.Second)), true
	e.Holder = &Worker{Host: "pod-7", Version: "v1.2.3", State: state}
}

func (f *facts) rule(t machine.Rule) {
	f.shown.Rules = append(f.shown.Rules, operate.Rule{Type: t, CreatedAt: start.Add(-time.Hour), Actor: "ada", Reason: "the target is sick\nsince noon", Until: start.Add(time.Hour)})
}

func (r Reason) has(t *testing.T, label machine.Label, want ...string) {
	t.Helper()
	if r.Label != label {
		t.Errorf("the label is %s, want %s: %s", r.Label, label, r.Why)
	}
	for _, text := range want {
		if !strings.Contains(r.Why+"\n"+r.Remedy, text) {
			t.Errorf("%s: %q is missing in\n%s\n%s", label, text, r.Why, r.Remedy)
		}
	}
	for _, sentence := range []string{r.Why, r.Remedy} {
		if sentence == "" || strings.Contains(sentence, "  ") || strings.Contains(sentence, "..") || strings.Contains(sentence, "%!") {
			t.Errorf("%s: %q is no sentence", label, sentence)
		}
	}
}

// Each cause alone, and each two together: the machine decides which is first, and the other follows.
func TestEveryCauseAndEveryPairIsExplained(t *testing.T) {
	t.Parallel()
	for i, first := range causes {
		f := free()
		first.set(f, f.shown.Queued)
		if reasons := f.reasons(); len(reasons) != 1 {
			t.Errorf("%s alone has the reasons %v", first.label, reasons)
		} else {
			reasons[0].has(t, first.label, first.want...)
		}
		for _, second := range causes[i+1:] {
			f := free()
			second.set(f, f.shown.Queued)
			first.set(f, f.shown.Queued)
			reasons := f.reasons()
			if len(reasons) != 2 {
				t.Errorf("%s and %s have the reasons %v", first.label, second.label, reasons)
				continue
			}
			reasons[0].has(t, first.label, first.want...)
			reasons[1].has(t, second.label, second.want...)
			if _, label := machine.DecideClaim(f.machine()); first.label != machine.IsLocked && label != first.label {
				t.Errorf("%s and %s: a worker would say %s", first.label, second.label, label)
			}
		}
	}
}

// What was in hand when a worker died is explained with whatever else is said.
func TestSuspectedHarmfulEventIsExplained(t *testing.T) {
	t.Parallel()
	for company, want := range map[int]string{1: "if it dies alone", 7: "It died beside others"} {
		f := free()
		f.shown.Queued.Company = company
		f.reasons()[0].has(t, f.reasons()[0].Label, want)
		f.rule(machine.PauseRule)
		f.reasons()[0].has(t, machine.Paused, want)
	}
}

// A worker that lives, or of which nothing is known, runs what it holds, and has the handler, whatever other workers have.
// One that has stopped or died runs nothing.
func TestDeadWorkerRunsNoEvent(t *testing.T) {
	t.Parallel()
	locked, unknown := []machine.Label{machine.IsLocked}, []machine.Label{machine.HandlerUnknown}
	then := slices.Concat(locked, unknown)
	for name, c := range map[string]struct {
		set    func(f *facts, e *QueuedEvent)
		want   []string // of the first reason
		labels []machine.Label
	}{
		"live":                {func(_ *facts, e *QueuedEvent) { e.heldBy(WorkerLive) }, []string{"The worker on pod-7 (v1.2.3, live) runs it now", "12:59:50Z (10s ago)", "ends by itself"}, locked},
		"live, has not begun": {func(_ *facts, e *QueuedEvent) { e.heldBy(WorkerLive); e.Begun = false }, []string{"runs it now", "If its run does not begin, the lock expires in 50s"}, locked},
		"live, and cancelled": {func(_ *facts, e *QueuedEvent) {
			e.heldBy(WorkerLive)
			e.Cancellation = &operate.Cancellation{Reason: "twice", Actor: "ada"}
		},
			[]string{"runs it now", "It was cancelled by ada while it ran, and is not run again: twice.", "CANCELLED when its handler returns an error"}, locked},
		"dead, and cancelled": {func(_ *facts, e *QueuedEvent) { e.heldBy(WorkerDead); e.Cancellation = &operate.Cancellation{} },
			[]string{"no longer runs", "It was cancelled while it ran, and is not run again."}, then},
		"not known":                {func(_ *facts, e *QueuedEvent) { e.heldBy(WorkerLive); e.Holder = nil }, []string{"A worker runs it now"}, locked},
		"live, and paused":         {func(f *facts, e *QueuedEvent) { e.heldBy(WorkerLive); f.rule(machine.PauseRule) }, []string{"runs it now"}, []machine.Label{machine.IsLocked, machine.Paused}},
		"stopped":                  {func(_ *facts, e *QueuedEvent) { e.heldBy(WorkerStopped) }, []string{"(v1.2.3, stopped), which", "no longer runs"}, then},
		"dead, has not begun":      {func(_ *facts, e *QueuedEvent) { e.heldBy(WorkerDead); e.Begun = false }, []string{"no longer runs"}, then},
		"dead, and no relay":       {func(f *facts, e *QueuedEvent) { e.heldBy(WorkerDead); f.relayRuns = false }, []string{"no longer runs", "no relay runs", "start cmd/cron"}, then},
		"dead, and the lock ended": {func(_ *facts, e *QueuedEvent) { e.heldBy(WorkerDead); e.LockValidFor = time.Second }, []string{"No live worker"}, unknown},
		"live, and the lock ended": {func(_ *facts, e *QueuedEvent) { e.heldBy(WorkerLive); e.LockValidFor = time.Second }, []string{"No live worker"}, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := free()
			f.knowing = 0
			c.set(f, f.shown.Queued)
			reasons := f.reasons()
			var labels []machine.Label
			for _, r := range reasons {
				labels = append(labels, r.Label)
			}
			if !slices.Equal(labels, c.labels) {
				t.Fatalf("the reasons are %v, want %v", reasons, c.labels)
			}
			reasons[0].has(t, c.labels[0], c.want...)
			if said := strings.Contains(reasons[0].Why, "runs it now"); said != f.runs() {
				t.Errorf("it is said: %s", reasons[0].Why)
			}
		})
	}
}

var failedAttempt = Attempt{Attempt: 3, StartedAt: start.Add(-2 * time.Second), Duration: time.Second, Error: "connection refused\nat line 7"}

// otherCauses are origins of a delay, ends of an event, and an event that nothing keeps.
var otherCauses = map[machine.Label]struct {
	set  func(f *facts, e *QueuedEvent)
	want []string
}{
	machine.RetryAllowed: {func(f *facts, e *QueuedEvent) {
		e.DelayUntil, e.Attempts, f.shown.Attempts = start.Add(time.Minute), 3, []Attempt{failedAttempt}
	}, []string{"Its last run failed 2026-01-01T12:59:59Z (1s ago) with: connection refused …; it is tried again 2026-01-01T13:01:00Z (in 1m0s)", "eventctl requeue 7"}},
	machine.Snoozed: {func(f *facts, e *QueuedEvent) {
		e.DelayUntil, e.Attempts, f.shown.Attempts, f.snoozes = start.Add(time.Minute), 4, []Attempt{failedAttempt}, 2
	}, []string{"asked for a later time, 2 times so far"}},
	machine.OverLimit: {func(f *facts, e *QueuedEvent) {
		e.DelayUntil, f.overLimit = start.Add(time.Minute), true
		f.limits = []operate.RateStatus{rate("", "", 10, 100, 10, 100)}
	}, []string{"no room: 10 per minute and 100 per day for the whole canvas; it is tried again 2026-01-01T13:01:00Z", "eventctl limit rate set --canvas 01"}},
	machine.LockClaimFailed: {func(f *facts, _ *QueuedEvent) { f.writer = &rowWriter{4711, "psql", new(start.Add(-time.Minute))} },
		[]string{"The session 4711 (psql) is writing its row, or has locked it, in a transaction that has not ended, begun 2026-01-01T12:59:00Z (1m0s ago)", "pid = 4711"}},
	machine.EventMissing:         {func(f *facts, _ *QueuedEvent) { f.shown.Queued = nil }, []string{"neither in the queue nor in the history"}},
	machine.ExecutesToCompletion: {logged(LogCompleted), []string{"It completed 2026-01-01T12:59:00Z (1m0s ago)."}},
	machine.FailedForGood: {func(f *facts, e *QueuedEvent) {
		logged(LogFailed)(f, e)
		f.shown.Logged.ForGood = true
	}, []string{"It FAILED", "its handler refused it for good, with: no luck", "eventctl retry 7"}},
	machine.Cancelled: {func(f *facts, e *QueuedEvent) {
		logged(LogCancelled)(f, e)
		f.shown.Logged.Actor, f.shown.Logged.Reason = "ada", "emitted twice"
	}, []string{"It was cancelled 2026-01-01T12:59:00Z (1m0s ago) by ada, after 4 claims: emitted twice.", "eventctl retry 7"}},
	machine.RetryTooMany: {logged(LogFailed), []string{"It FAILED", "after 4 claims, with: no luck", "eventctl retry 7"}},
	machine.BreakerOpen: {func(f *facts, _ *QueuedEvent) {
		f.knowing, f.away, f.breaker = 1, 1, &workerhandlers.Breaker{Since: start.Add(-time.Hour), Error: "POST https://shop: 503."}
	}, []string{"its circuit breaker is open in the worker that has it: POST https://shop: 503. It opened 2026-01-01T12:00:00Z (1h0m ago).", "run by themselves"}},
	machine.Claimed: {func(*facts, *QueuedEvent) {}, []string{"Nothing keeps it from running; it was last notified 2026-01-01T12:59:59Z", "free slot"}},
}

// passing are the labels that no event stays with: what an event is explained by when it was last met by one of them.
var passing = map[machine.Label]string{
	machine.ReceiveNotification: "the next step",
	machine.EventPresent:        "the next step",
	machine.PauseNone:           "the next step",
	machine.DelayNone:           "the next step",
	machine.LockNone:            "the next step",
	machine.LockExpired:         "the next step: it is Claimed",
	machine.Exception:           "what follows at once: RetryAllowed, RetryTooMany or FailedForGood",
	machine.Deleted:             "what came before: ExecutesToCompletion",
	machine.Released:            "nothing: it is Claimed again",
	machine.LockLost:            "the claim of the worker that has taken it over: IsLocked",
}

// TestEveryLabelIsExplained: a label that the machine gets has to have a sentence, or be one that no event stays with.
func TestEveryLabelIsExplained(t *testing.T) {
	t.Parallel()
	explained := map[machine.Label]int{}
	for _, cause := range causes {
		explained[cause.label]++
	}
	for label := range otherCauses {
		explained[label]++
	}
	for label := range passing {
		explained[label]++
	}
	for _, arrow := range machine.Arrows() {
		if n := explained[arrow.Label]; n != 1 {
			t.Errorf("label %q of the machine is in %d of causes, otherCauses and passing, not in one", arrow.Label, n)
		}
	}
	labels := map[machine.Label]bool{}
	for _, arrow := range machine.Arrows() {
		labels[arrow.Label] = true
	}
	for label := range explained {
		if !labels[label] {
			t.Errorf("the machine has no label %q", label)
		}
	}
}

func TestEveryOtherLabelIsExplained(t *testing.T) {
	t.Parallel()
	for label, c := range otherCauses {
		f := free()
		c.set(f, f.shown.Queued)
		f.reasons()[0].has(t, label, c.want...)
	}
}

// Who has cancelled an event, and why, is said as far as it is known; no event that was cancelled has failed.
func TestCancellationIsExplained(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		attempts      int32
		actor, reason string
		want          string
	}{
		"with an actor and a reason": {0, "ada", "emitted twice by import 7.", "It was cancelled 2026-01-01T12:59:00Z (1m0s ago) by ada, before any worker had claimed it: emitted twice by import 7."},
		"nobody knows by whom":       {1, "", "", "It was cancelled 2026-01-01T12:59:00Z (1m0s ago), after 1 claim."},
		"by a name to be quoted":     {2, "a\nb", "no\nmore", `It was cancelled 2026-01-01T12:59:00Z (1m0s ago) by "a\nb", after 2 claims: no ….`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := free()
			logged(LogCancelled)(f, f.shown.Queued)
			l := f.shown.Logged
			l.Attempts, l.Actor, l.Reason = c.attempts, c.actor, c.reason
			f.reasons()[0].has(t, machine.Cancelled, c.want, "To run it after all: eventctl retry 7")
		})
	}
}

func logged(status LogStatus) func(f *facts, e *QueuedEvent) {
	return func(f *facts, _ *QueuedEvent) {
		f.shown = Shown{Logged: &LogEntry{Event: eventqueue.Event{ID: 7}, Attempts: 4, Status: status, LastError: "no luck", EndedAt: start.Add(-time.Minute), AsOf: start}}
	}
}

// Of an event that nothing keeps, what is said depends on its notification, the relay and a lock that ran out.
func TestNotificationsAreExplained(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  func(f *facts, e *QueuedEvent)
		want []string
	}{
		"pending":            {func(_ *facts, e *QueuedEvent) { e.NotifiedAt = nil }, []string{"pending since 2026-01-01T12:59:00Z (1m0s ago)", "The relay publishes it"}},
		"pending, no relay":  {func(f *facts, e *QueuedEvent) { e.NotifiedAt, f.relayRuns = nil, false }, []string{"no relay runs to publish it", "Start cmd/cron"}},
		"notified, no relay": {func(f *facts, _ *QueuedEvent) { f.relayRuns = false }, []string{"no relay runs that would notify it again", "start cmd/cron"}},
		"pending, of low priority": {func(_ *facts, e *QueuedEvent) { e.NotifiedAt, e.Priority = nil, "low" },
			[]string{"pending since 2026-01-01T12:59:00Z (1m0s ago)", "It has low priority: the relay publishes its notification when", "while workers are behind."}},
		"pending, of high priority":          {func(_ *facts, e *QueuedEvent) { e.NotifiedAt, e.Priority = nil, "high" }, []string{"The relay publishes it within its interval."}},
		"pending, of low priority, no relay": {func(f *facts, e *QueuedEvent) { e.NotifiedAt, e.Priority, f.relayRuns = nil, "low", false }, []string{"no relay runs to publish it", "Start cmd/cron"}},
		"pending, of low priority, slots full": {func(f *facts, e *QueuedEvent) {
			e.NotifiedAt, e.Priority, f.slots = nil, "low", WorkerSlots{Of: 2, Busy: 2}
		},
			[]string{"all 2 slots of the worker are busy.", "It runs when one is free", "It has low priority: the relay"}},
		"notified, of low priority": {func(_ *facts, e *QueuedEvent) { e.Priority = "low" }, []string{"it was last notified", "A worker claims it when it has a free slot"}},
		"its lock ran out":          {func(_ *facts, e *QueuedEvent) { e.LockedAt = new(start.Add(-2 * time.Minute)) }, []string{"lock expired 2026-01-01T12:59:00Z", "next claim takes it over"}},
		"due since the delay":       {func(_ *facts, e *QueuedEvent) { e.NotifiedAt, e.DelayUntil = nil, start.Add(-time.Second) }, []string{"pending since 2026-01-01T12:59:59Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := free()
			c.set(f, f.shown.Queued)
			f.reasons()[0].has(t, machine.Claimed, c.want...)
		})
	}
}

// Of workers, those that run count; of the others the last that had the handler is named.
func TestWorkersAreCounted(t *testing.T) {
	t.Parallel()
	f := free()
	f.live, f.knowing = 0, 0
	has := eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{f.shown.Queued.Handler()}}
	elsewhere := eventqueue.HandlerSet{OnCanvas: []eventqueue.CanvasHandler{{Canvas: eventqueue.CanvasID{9}, Key: f.shown.Queued.Handler()}}}
	f.countWorkers([]Worker{{Host: "a", State: WorkerDead, Handlers: has}, {Host: "b", State: WorkerStopped, Handlers: has}, {Host: "c", State: WorkerLive, Handlers: elsewhere}})
	f.reasons()[0].has(t, machine.HandlerUnknown, "has its handler", "the last that had it was on b")
	f.countWorkers([]Worker{{State: WorkerLive, Handlers: has}})
	f.reasons()[0].has(t, machine.Claimed)
	open := []workerhandlers.Breaker{{Handler: workerhandlers.Of(eventqueue.CanvasHandler{Key: f.shown.Queued.Handler()}), Since: start.Add(-time.Minute), Error: "503"}}
	f = free()
	f.countWorkers([]Worker{{State: WorkerLive, Handlers: has, Breakers: open}, {State: WorkerLive, Handlers: has}})
	f.reasons()[0].has(t, machine.Claimed)
	f = free()
	f.live, f.knowing = 0, 0
	f.countWorkers([]Worker{{State: WorkerLive, Handlers: has, Breakers: open}, {State: WorkerDead, Handlers: has}, {State: WorkerLive, Handlers: has, Breakers: open}})
	f.reasons()[0].has(t, machine.BreakerOpen, "open in all 2 workers that have it: 503. It opened 2026-01-01T12:59:00Z (1m0s ago).", "run by themselves")
	f = free()
	f.live, f.knowing = 0, 0
	f.reasons()[0].has(t, machine.HandlerUnknown, "No worker runs.", "Start a worker with its handler WORKER/greet/_.")
}

// Each rule that holds the event back is a reason of its own, with the command that lifts it; a block comes first.
func TestEachRuleIsExplained(t *testing.T) {
	t.Parallel()
	f := free()
	f.rule(machine.PauseRule)
	f.shown.Rules[0].Name = "greet"
	f.rule(machine.PauseRule)
	f.shown.Rules[1].Name, f.shown.Rules[1].Prefix, f.shown.Rules[1].Modifier = "gr", true, "_"
	f.rule(machine.BlockRule)
	f.shown.Rules[2].Name, f.shown.Rules[2].Rate, f.shown.Rules[2].ReleasedTo = "greet", 500, 6
	reasons := f.reasons()
	if len(reasons) != 3 {
		t.Fatalf("the reasons are %v", reasons)
	}
	reasons[0].has(t, machine.Blocked, "Its handler is blocked by an admin (ada)", "and the rule is being lifted: 500 events are let run in each second", "so far those up to 6",
		"while a cron program runs", "eventctl unblock --canvas", "--name greet")
	reasons[1].has(t, machine.Paused, "Its handler is paused by the user (ada)", "eventctl unpause --canvas", "--name greet")
	reasons[2].has(t, machine.Paused, "Its handler with the modifier _, as all whose names begin with gr, is paused by the user (ada)", "--prefix gr --modifier _")
}

// A reason or an error that is a sentence itself does not give the sentence that quotes it two ends.
func TestSentencesHaveOneFullStop(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"The bank is closed.":      "The bank is closed",
		"The bank is closed. ":     "The bank is closed",
		"The bank is closed.\nYes": "The bank is closed. …",
		"HTTP 1.1":                 "HTTP 1.1",
		"...":                      "",
	} {
		if got := firstLine(text); got != want {
			t.Errorf("%q is quoted as %q, want %q", text, got, want)
		}
	}
}
