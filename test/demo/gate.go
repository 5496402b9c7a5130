package main

import (
	"sync"

	"eventsv2/eventqueue"
)

// gate holds requests back while it is closed, so that the workers are running events at a
// moment that the demo chooses. It is safe for concurrent use.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil while the gate is open
	held   map[string][]eventqueue.EventID
	count  int
	wanted int
	full   chan struct{} // closed when as many as wanted are held
}

func newGate() *gate { return &gate{} }

// close holds all further requests back. The returned channel is closed when the
// wanted number of them is held.
func (g *gate) close(wanted int) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened, g.full = make(chan struct{}), make(chan struct{})
	g.held, g.count, g.wanted = make(map[string][]eventqueue.EventID), 0, wanted
	return g.full
}

// enter records the request of a worker. If the gate is closed it returns the channel to
// wait for, and whether to do the event before the wait, which is true for every second
// event of a worker.
func (g *gate) enter(worker string, id eventqueue.EventID) (held <-chan struct{}, doFirst bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		return nil, false
	}
	g.held[worker] = append(g.held[worker], id)
	g.count++
	if g.count == g.wanted {
		close(g.full)
	}
	return g.opened, len(g.held[worker])%2 == 0
}

// busiest is the worker with the most held events; the first by name of equals.
func (g *gate) busiest() (worker string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	most := 0
	for name, ids := range g.held {
		if len(ids) > most || len(ids) == most && name < worker {
			worker, most = name, len(ids)
		}
	}
	return worker
}

// open lets everything pass and returns the events of one worker that were held.
func (g *gate) open(worker string) []eventqueue.EventID {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.opened)
	g.opened = nil
	return g.held[worker]
}
