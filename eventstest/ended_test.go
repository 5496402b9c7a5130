package eventstest_test

import (
	"errors"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventstest"
)

func TestFailuresOfEventsSayWhatHasBecomeOfThem(t *testing.T) {
	t.Parallel()
	f := &failing{TB: t}
	policy := eventqueue.Policy{Backoff: func(int) time.Duration { return time.Minute }}
	q := newQueue(f, "mail", policy, returns(errDown))
	wantMessage(t, f.messageOf(func() { q.Work() }), "Work: nothing can run:\n\tno event waits")
	id := emit(t, q, eventqueue.NewEvent{Name: "mail"})
	other := emit(t, q, eventqueue.NewEvent{Name: "other"})
	wantMessage(t, f.messageOf(func() { q.RequireAttempts(id, 1) }), "event 1 has had 0 attempts, want 1", "it has not run")
	wantMessage(t, f.messageOf(func() { q.RequireError(id, "down") }), `event 1 has not run, want an error with "down"`)
	q.Work()
	wantMessage(t, f.messageOf(func() { q.Work() }), "Work: nothing can run:",
		"event 1 for WORKER/mail/_: is due in 1m0s: Advance(1m0s) first", "event 2 for WORKER/other/_: no handler is registered for it")
	q.RequireError(id, "down")
	wantMessage(t, f.messageOf(func() { q.RequireError(id, "up") }),
		`the last run of event 1 failed with "the mail server is down", want an error with "up"`, "run 1 by WORKER/mail/_: RetryAllowed: the mail server is down; again in 1m0s")
	wantMessage(t, f.messageOf(func() { q.RequireState(id, eventstest.Failed) }), "event 1 is delayed, want failed", "run 1 by", "is due in 1m0s")
	wantMessage(t, f.messageOf(func() { q.RequireAttempts(id, 2) }), "event 1 has had 1 attempt, want 2")
	wantMessage(t, f.messageOf(func() { q.RequireState(other+5, eventstest.Failed) }), "is gone, want failed", "there is no such event")
	wantMessage(t, f.messageOf(func() { q.Advance(-time.Second) }), "Advance by -1s: time does not go back")
}

func TestRequireErrorWantsTheLastRun(t *testing.T) {
	t.Parallel()
	f := &failing{TB: t}
	var err error
	q := newQueue(f, "mail", eventqueue.Policy{}, nil)
	register(t, q, func() error { return err })
	id := emit(t, q, eventqueue.NewEvent{Name: "mail"})
	err = eventqueue.Snooze(time.Minute)
	if a := q.Work(); a.Label != "Snoozed" || a.Delay != time.Minute {
		t.Errorf("%+v", a)
	}
	q.Advance(time.Minute)
	err = nil
	q.Drain()
	q.RequireState(id, eventstest.Completed)
	wantMessage(t, f.messageOf(func() { q.RequireError(id, "x") }), "the last run of event 1 has no error", "run 1 by WORKER/mail/_: Snoozed", "run 2 by WORKER/mail/_: ExecutesToCompletion")
	failed := emit(t, q, eventqueue.NewEvent{Name: "mail"})
	err = eventqueue.Permanent(errors.New("no such address"))
	q.Drain()
	q.RequireState(failed, eventstest.Failed)
	q.RequireError(failed, "no such address")
}
