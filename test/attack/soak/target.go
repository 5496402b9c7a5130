package main

import (
	"errors"
	"net/http"
	"strconv"

	"eventsv2/cronchecker"
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
	if err := t.record(r.Header.Get("ce-module"), event.Value); err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
	}
}

// errUnknown is the answer to an event that has no handler here.
var errUnknown = errors.New("no handler of the soak")

func (t target) record(of string, value []byte) error {
	switch of {
	case module:
		return t.ledger.ran(value)
	case cronchecker.Module:
		return t.ledger.ticked(value)
	default:
		return errUnknown
	}
}
