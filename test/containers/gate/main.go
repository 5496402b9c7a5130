// Command gate is the HTTP target of the test that cuts a worker off. It holds
// a worker's requests for a group of events until the gate of that group is
// opened, or until the worker hangs up, and lists what became of each:
//
//	POST /run/{worker}/{group}    an event; answered with 204 when the gate is open
//	POST /open/{worker}/{group}   opens a gate for good
//	GET  /requests                every request so far, as JSON
//
// It runs in a container of the test's network.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// What became of a request.
const (
	waiting  = "waiting"  // for the gate
	answered = "answered" // with 204
	gone     = "gone"     // the worker hung up before
)

// request is one element of the list.
type request struct {
	Worker string `json:"worker"`
	Group  string `json:"group"`
	Event  string `json:"event"`
	State  string `json:"state"`
}

// gate is the target. It is safe for concurrent use.
type gate struct {
	mu       sync.Mutex
	open     map[string]chan struct{} // by worker and group; closed when the gate is open
	requests []*request
}

// way is the gate for a request.
func (g *gate) way(r *http.Request) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	name := r.PathValue("worker") + "/" + r.PathValue("group")
	if g.open[name] == nil {
		g.open[name] = make(chan struct{})
	}
	return g.open[name]
}

func (g *gate) run(w http.ResponseWriter, r *http.Request) {
	// Only behind the body does the server notice that the worker hangs up.
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q := &request{Worker: r.PathValue("worker"), Group: r.PathValue("group"), Event: r.Header.Get("ce-id"), State: waiting}
	g.mu.Lock()
	g.requests = append(g.requests, q)
	g.mu.Unlock()
	select {
	case <-g.way(r):
		w.WriteHeader(http.StatusNoContent)
		g.set(q, answered)
	case <-r.Context().Done():
		g.set(q, gone)
	}
}

func (g *gate) set(q *request, state string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q.State = state
}

func (g *gate) unlock(w http.ResponseWriter, r *http.Request) {
	way := g.way(r)
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-way:
	default:
		close(way)
	}
	w.WriteHeader(http.StatusNoContent)
}

func (g *gate) list(w http.ResponseWriter, _ *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := json.NewEncoder(w).Encode(g.requests); err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
	}
}

func main() {
	g := &gate{open: map[string]chan struct{}{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /run/{worker}/{group}", g.run)
	mux.HandleFunc("POST /open/{worker}/{group}", g.unlock)
	mux.HandleFunc("GET /requests", g.list)
	server := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintln(os.Stderr, "gate:", server.ListenAndServe())
	os.Exit(1)
}
