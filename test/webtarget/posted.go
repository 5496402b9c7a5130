package webtarget

import (
	"io"
	"net/http"
	"path"
	"strconv"

	"eventsv2/eventqueue"
)

// Posted is an event as cmd/worker posts it.
type Posted struct {
	ID    eventqueue.EventID
	By    string // the last part of the path, with which targets tell processes apart
	Value []byte
}

// Read reads the event of a request. It returns false when there is nothing to do: the
// worker is gone and reads no answer, or the request is no event and has been answered.
func Read(w http.ResponseWriter, r *http.Request) (Posted, bool) {
	value, err := io.ReadAll(r.Body)
	if err != nil {
		return Posted{}, false
	}
	id, err := strconv.ParseInt(r.Header.Get("ce-id"), 10, 64)
	if err != nil {
		http.Error(w, "ce-id is not the id of an event", http.StatusBadRequest)
		return Posted{}, false
	}
	return Posted{ID: eventqueue.EventID(id), By: path.Base(r.URL.Path), Value: value}, true
}
