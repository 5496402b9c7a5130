package main

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/test/attack/chaos/journal"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/attack/record"
	"eventsv2/test/webtarget"
)

// targetDeafFor is how long the target works on an event that asks for
// deafness: past the timeout of its handler.
const targetDeafFor = 2 * time.Second

// target is the web server that cmd/worker posts events to. The path is the name
// of the process that posts, and each process has a journal of its own, as if it
// had run the events itself.
type target struct {
	journal func(name string) string

	mu       sync.Mutex
	journals map[string]*journal.Writer
	runs     int32
	snoozed  map[eventqueue.EventID]int // how often each event was snoozed

	server *webtarget.Server
}

// startTarget listens on the loopback interface. journalOf names the journal of
// a process.
func startTarget(ctx context.Context, journalOf func(name string) string) (t *target, err error) {
	t = &target{journal: journalOf, journals: map[string]*journal.Writer{}, snoozed: map[eventqueue.EventID]int{}}
	if t.server, err = webtarget.Start(ctx, t); err != nil {
		return nil, err
	}
	return t, nil
}

// stop ends the server and closes the journals.
func (t *target) stop(ctx context.Context) error {
	errs := []error{t.server.Stop(ctx)}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.journals {
		errs = append(errs, w.Close())
	}
	return errors.Join(errs...)
}

func (t *target) writer(name string) (*journal.Writer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.journals[name]; w != nil {
		return w, nil
	}
	w, err := journal.Open(t.journal(name))
	if err == nil {
		t.journals[name] = w
	}
	return w, err
}

// number gives a run a negative number in place of its attempt, which targets do
// not learn.
func (t *target) number() int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs++
	return -t.runs
}

// snoozes counts how often an event has come that wants to be snoozed.
func (t *target) snoozes(id eventqueue.EventID) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.snoozed[id]++
	return t.snoozed[id]
}

// ServeHTTP takes one event.
func (t *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	event, ok := webtarget.Read(w, r)
	if !ok {
		return
	}
	lines, err := t.writer(event.By)
	run := t.number()
	if err == nil {
		err = lines.Write(journal.Line{Kind: journal.Start, Event: event.ID, Attempt: run, At: time.Now(), Sum: record.Checksum(event.Value)})
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	outcome, status := t.do(r, event)
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	// Before the answer: what is known to be done must be on record.
	if err := lines.Write(journal.Line{Kind: journal.End, Event: event.ID, Attempt: run, At: time.Now(), Outcome: outcome}); err != nil {
		status = http.StatusInternalServerError
	}
	if status != http.StatusOK {
		http.Error(w, "on purpose", status)
	}
}

// do obeys the value of an event as far as a web server can.
func (t *target) do(r *http.Request, event webtarget.Posted) (journal.Outcome, int) {
	job := task.Task{Do: task.Succeed}
	if r.Header.Get("ce-module") == task.Module {
		parsed, err := task.Parse(event.Value)
		if err != nil {
			return journal.Permanent, http.StatusUnprocessableEntity
		}
		job = parsed
	}
	retries, err := strconv.Atoi(r.Header.Get("ce-retries"))
	if err != nil {
		return journal.Permanent, http.StatusBadRequest
	}
	ctx := r.Context()
	attempt := 1
	if job.Do == task.Snooze {
		attempt = t.snoozes(event.ID) // the nearest thing to an attempt that a target knows
	}
	now := job.Now(retries, attempt)
	switch now {
	case task.Hang:
		<-ctx.Done()
	case task.Deaf:
		backoff.Sleep(context.WithoutCancel(ctx), targetDeafFor)
	default:
		backoff.Sleep(ctx, job.Work())
	}
	if ctx.Err() != nil {
		return journal.Cancelled, http.StatusRequestTimeout
	}
	switch now {
	case task.Fail, task.Panic, task.Undo:
		return journal.Failed, http.StatusInternalServerError
	case task.Permanent:
		return journal.Permanent, http.StatusUnprocessableEntity
	case task.Snooze:
		return journal.Snoozed, http.StatusServiceUnavailable
	default:
		return journal.OK, http.StatusOK
	}
}
