package worker

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/internal/logkey"
)

const (
	// peersFor is for how long a worker believes which others there are.
	peersFor = 5 * time.Second
	// forwardAgain is after what time an event is forwarded once more, at the earliest.
	forwardAgain = time.Second
	// forwardTakes bounds the statements that forward the events of a batch.
	forwardTakes = time.Second
	// maxForward is how many events one statement forwards, whose ids have to fit a notification of Postgres.
	maxForward = 300
)

// Peer is another worker, with its handlers.
type Peer struct {
	Number   eventqueue.WorkerNumber
	Handlers eventqueue.HandlerSet
}

// Peers is a Store that knows the other workers, and can tell one of them of events; pgstore.Store is one.
type Peers interface {
	// Peers returns the workers that are connected to the database.
	Peers(ctx context.Context) ([]Peer, error)
	// Forward has a worker try events at once, if it listens. It is a hint like a notification: it may be
	// lost. There are no more than 300 ids.
	Forward(ctx context.Context, to eventqueue.WorkerNumber, ids []eventqueue.EventID) error
}

// forwarder hands events that this worker has no handler for to a worker that does: whose turn it is, the notifier
// does not choose, so that one of twenty workers would be met after a score of tries. The notification goes
// back to the notifier all the same, as that of an event that no other worker knows does, and comes again if what was
// forwarded is lost. A worker forwards only to those that have the handler, and handlers do not change while
// a worker runs, so nothing is forwarded in a circle. Where every worker has all handlers nothing is asked.
type forwarder struct {
	part
	number eventqueue.WorkerNumber
	peers  Peers // nil if the store has none

	mu    sync.Mutex
	known []Peer
	asked time.Time
	// recent are the events that were forwarded since it began to be filled.
	recent map[eventqueue.EventID]struct{}
	began  time.Time
}

// forward forwards those events of a batch that could not be claimed for want of a handler.
func (f *forwarder) forward(ctx context.Context, rest []candidate) {
	if f.peers == nil {
		return
	}
	unknown := f.unknown(rest)
	if len(unknown) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, forwardTakes)
	defer cancel()
	for to, ids := range f.chosen(f.others(ctx), unknown) {
		for len(ids) > 0 {
			n := min(len(ids), maxForward)
			if err := f.peers.Forward(ctx, to, ids[:n]); err != nil {
				f.log.Debug("could not forward events to a worker that has their handler; their notifications come again", zap.Int(logkey.Count, len(ids)), zap.Error(err))
				return
			}
			ids = ids[n:]
		}
	}
}

// unknown returns the events of a batch that another worker might run now, and that were not forwarded a moment ago.
func (f *forwarder) unknown(rest []candidate) (unknown []eventqueue.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range rest {
		facts := l.result.Facts
		if _, label := machine.DecideClaim(facts); label != machine.HandlerUnknown || facts.Lock == machine.LockHeld {
			continue
		}
		if now := time.Now(); now.Sub(f.began) >= forwardAgain || len(f.recent) >= maxUnknown {
			f.recent, f.began = map[eventqueue.EventID]struct{}{}, now
		}
		if _, forwarded := f.recent[l.result.Event.ID]; !forwarded {
			f.recent[l.result.Event.ID] = struct{}{}
			unknown = append(unknown, l.result.Event)
		}
	}
	return unknown
}

// others returns the other workers, as they were some seconds ago.
func (f *forwarder) others(ctx context.Context) []Peer {
	f.mu.Lock()
	now, known := time.Now(), f.known
	fresh := !f.asked.IsZero() && now.Sub(f.asked) < peersFor
	if !fresh {
		f.asked = now
	}
	f.mu.Unlock()
	if fresh {
		return known
	}
	asked, err := f.peers.Peers(ctx) // without the lock: batches need it, and the database may be slow
	if err != nil {
		f.log.Debug("could not read the other workers", zap.Error(err))
		return known
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known = asked
	return asked
}

// chosen returns which worker gets which events: one of those that have the handler.
func (f *forwarder) chosen(others []Peer, unknown []eventqueue.Event) map[eventqueue.WorkerNumber][]eventqueue.EventID {
	chosen := map[eventqueue.WorkerNumber][]eventqueue.EventID{}
	for i := range unknown {
		var able []eventqueue.WorkerNumber
		for _, w := range others {
			if w.Number != f.number && w.Handlers.Has(unknown[i].Canvas, unknown[i].Handler()) {
				able = append(able, w.Number)
			}
		}
		if len(able) > 0 {
			to := able[f.config.Jitter(time.Duration(len(able)))]
			chosen[to] = append(chosen[to], unknown[i].ID)
		}
	}
	return chosen
}
