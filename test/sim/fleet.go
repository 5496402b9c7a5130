package sim

import (
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
)

// newProcess makes a process with a store, a notifier and a queue of its own.
func (w *world) newProcess(name string) *process {
	p := &process{w: w, name: name, stopped: make(chan struct{}), claimed: map[eventqueue.EventID]int{}}
	p.skew = w.dice.between(-maxSkew, maxSkew)
	if p.skew.Abs() > time.Second {
		w.faults["process with a wrong clock"]++
	}
	p.db = pgstore.New(w.tables.pool)
	queue, err := eventqueue.New(p.store(), ringer{p}, eventqueue.QueueConfig{PublishTimeout: 2 * time.Second, PublishRest: 5 * time.Second, Jitter: p.jitter})
	if err != nil {
		panic(err)
	}
	p.queue = queue
	w.all = append(w.all, p)
	return p
}
