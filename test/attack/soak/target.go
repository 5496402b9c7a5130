package main

import (
	"net/http"
	"strconv"

	"eventsv2/test/webtarget"
)

// target does the events that cmd/worker posts.
type target struct{ ledger *ledger }

// ServeHTTP does one event. It is on record before the answer: what the worker
// knows to be done has to be done.
func (t target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	event, ok := webtarget.Read(w, r)
	if !ok {
		return
	}
	retries, err := strconv.Atoi(r.Header.Get("ce-retries"))
	if err != nil {
		http.Error(w, "ce-retries is not a number", http.StatusBadRequest)
		return
	}
	if err := perform(r.Context(), r.Header.Get("ce-name"), retries); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if r.Context().Err() != nil {
		return // abandoned, and due to come again
	}
	if err := t.ledger.done(r.Header.Get("ce-module"), event.Value); err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
	}
}
