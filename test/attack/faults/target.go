package main

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/test/webtarget"
)

// visit is one run of an event.
type visit struct {
	event   eventqueue.EventID
	handler string
	process string // that ran it
	value   string
	nth     int // of the event's visits, from 1
	began   time.Time
	ended   time.Time // zero while it goes on
	status  int       // of the answer; 0 while it goes on, and when nobody waited for it
	snoozes bool      // whether the answer asks for a later time, and so is no failure
}

// answer is how a handler answers: with a status, and after how long the event
// shall come again if that is 503.
type answer struct {
	status     int
	retryAfter string
}

// completed is the answer of a handler that did what it was to do.
var completed = answer{status: http.StatusOK}

// behaviour is what a handler does. Its context ends when nobody waits for the
// answer any more.
type behaviour func(ctx context.Context, v visit) answer

// target is the web server that all handlers post to. The path is the name of the
// process that posts.
type target struct {
	server *webtarget.Server

	mu         sync.Mutex
	behaviours map[string]behaviour // by the handler's name
	visits     map[eventqueue.EventID][]*visit
}

func startTarget(ctx context.Context) (t *target, err error) {
	t = &target{behaviours: map[string]behaviour{}, visits: map[eventqueue.EventID][]*visit{}}
	t.server, err = webtarget.Start(ctx, t)
	return t, err
}

// behave sets what a handler does from now on; without that it completes at once.
func (t *target) behave(handler string, b behaviour) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.behaviours[handler] = b
}

// handler is an entry of the handlers file for a handler of module WORKER.
func handler(name string) webtarget.Handler {
	return webtarget.Handler{Key: eventqueue.HandlerKey{Module: "WORKER", Name: name, Modifier: "_"}, Timeout: time.Minute,
		MaxRetries: 2, BackoffBase: 200 * time.Millisecond, BackoffMax: 2 * time.Second}
}

// takes is a handler that works for so long.
func takes(d time.Duration) behaviour {
	return func(ctx context.Context, _ visit) answer {
		backoff.Sleep(ctx, d)
		return completed
	}
}

// ServeHTTP takes one event.
func (t *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	event, ok := webtarget.Read(w, r)
	if !ok {
		return
	}
	subject := strings.Split(r.Header.Get("ce-subject"), "/")
	if len(subject) != 3 {
		http.Error(w, "this is no event", http.StatusBadRequest)
		return
	}
	v := &visit{event: event.ID, handler: subject[1], process: event.By, value: string(event.Value), began: time.Now()}
	t.mu.Lock()
	t.visits[v.event] = append(t.visits[v.event], v)
	v.nth = len(t.visits[v.event])
	do := t.behaviours[v.handler]
	seen := *v
	t.mu.Unlock()
	reply := completed
	if do != nil {
		reply = do(r.Context(), seen)
	}
	t.mu.Lock()
	v.ended = time.Now()
	if r.Context().Err() == nil {
		v.status, v.snoozes = reply.status, reply.retryAfter != "" && reply.retryAfter != "0"
	}
	t.mu.Unlock()
	if reply.retryAfter != "" {
		w.Header().Set("Retry-After", reply.retryAfter)
	}
	w.WriteHeader(reply.status)
}

// of are the runs of an event so far.
func (t *target) of(id eventqueue.EventID) []visit {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]visit, 0, len(t.visits[id]))
	for _, v := range t.visits[id] {
		all = append(all, *v)
	}
	return all
}
