package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"maps"
	"net/http"
	"path"
	"sync"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/webtarget"
)

// refusalMark is part of the values that the target refuses for good.
const refusalMark = `"refuse_in_demo"`

// failEvery means that the target answers one event in failEvery with an error the first
// time.
const failEvery = 8

// workTakes is how long the target pretends to work on an event.
const workTakes = 5 * time.Millisecond

// target is the web server that all events are posted to. The last part of the
// path is the name of the worker that asks.
type target struct {
	refusals bool
	gate     *gate

	mu       sync.Mutex
	seen     map[eventqueue.EventID]sighting
	tripped  map[eventqueue.EventID]bool // were answered with an error on purpose
	refused  map[eventqueue.EventID]bool // for good: perhaps twice, since a worker that is killed cannot say so
	handlers map[string]int              // events done, by the name of their handler

	server *webtarget.Server
}

// startTarget listens on the loopback interface.
func startTarget(ctx context.Context, refusals bool) (t *target, err error) {
	t = &target{
		refusals: refusals,
		gate:     newGate(),
		seen:     make(map[eventqueue.EventID]sighting),
		tripped:  make(map[eventqueue.EventID]bool),
		refused:  make(map[eventqueue.EventID]bool),
		handlers: make(map[string]int),
	}
	if t.server, err = webtarget.Start(ctx, t); err != nil {
		return nil, err
	}
	return t, nil
}

// ServeHTTP takes one event.
func (t *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	posted, ok := webtarget.Read(w, r)
	if !ok {
		return
	}
	event := posted.ID
	status := t.decide(event, posted.Value)
	if status == http.StatusOK && !t.work(r, event) {
		return
	}
	if status != http.StatusOK {
		http.Error(w, http.StatusText(status)+", on purpose", status)
		return
	}
	w.WriteHeader(status)
}

// decide records the request and chooses the answer. The choice depends on the id alone,
// except for events that are refused for good.
func (t *target) decide(id eventqueue.EventID, body []byte) (status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := digest(sha256.Sum256(body))
	saw, again := t.seen[id]
	if again && saw.digest != sum {
		saw.differs = true
	}
	saw.digest = sum
	saw.runs++
	t.seen[id] = saw
	switch {
	case t.refusals && bytes.Contains(body, []byte(refusalMark)):
		t.refused[id] = true
		return http.StatusUnprocessableEntity
	case id%failEvery == 3 && !t.tripped[id]:
		t.tripped[id] = true
		return http.StatusInternalServerError
	default:
		return http.StatusOK
	}
}

// work does an event. It returns false if the requesting worker has died. While the gate is
// closed no request is answered: every second event waits before it is done and the others
// after that, since a worker may die in either state.
func (t *target) work(r *http.Request, id eventqueue.EventID) bool {
	held, doFirst := t.gate.enter(path.Base(r.URL.Path), id)
	if doFirst {
		t.did(r, id)
	}
	if held != nil {
		select {
		case <-held:
		case <-r.Context().Done():
			return false
		}
	}
	timer := time.NewTimer(workTakes)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
		return false
	}
	if !doFirst {
		t.did(r, id)
	}
	return true
}

func (t *target) did(r *http.Request, id eventqueue.EventID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	saw := t.seen[id]
	saw.done++
	t.seen[id] = saw
	t.handlers[r.Header.Get("ce-name")]++
}

// sightings returns a copy of the requests that were seen for each event.
func (t *target) sightings() map[eventqueue.EventID]sighting {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.seen)
}

// runs is how many requests there were for these events.
func (t *target) runs(ids []eventqueue.EventID) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, id := range ids {
		n += t.seen[id].runs
	}
	return n
}

// tally has the totals of the target.
type tally struct {
	handlers map[string]int
	tripped  int
	refused  int
}

func (t *target) tally() tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	return tally{maps.Clone(t.handlers), len(t.tripped), len(t.refused)}
}
