package sim

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/oracle"
)

// world is one simulation. The fields below mu are guarded by it; those above
// are set before anything runs, or are used only by the controller and by
// whoever has passed the gate.
type world struct {
	seed      uint64
	start     time.Time
	dice      dice
	intensity intensity
	poked     chan struct{}
	alive     sync.WaitGroup // of the processes

	tables   *tables
	notifier *notifier
	plan     schedule

	attackTime time.Duration
	emitsEach  int
	cronStop   time.Time
	ruleGap    time.Duration // between two things that the operator does, on average
	holidays   int           // times when no worker works
	limits     int           // 0: no concurrency limits; 2: they change
	lingers    bool          // handlers stay paused for long after the attack
	hunted     atomic.Bool   // a worker has died for that, or will not
	broken     partial

	// What the seed has beside: see features.go.
	unique, chains, byHand, forges, falls bool
	grids                                 bool
	outputs                               map[gridOutput]bool // that are stored
	publishes                             bool                // handlers publish in the outside store
	published                             outsideStore
	swept                                 bool        // everything is to be cleaned up, in the end
	modes                                 bool        // keys that stand for an event while it waits
	priorities                            bool        // some events are of high priority, and some of low
	changes                               bool        // waiting events are cancelled, edited and tried now
	lastSilence                           bool        // nothing but silence, after the attack
	refuses                               bool        // the database refuses to write some rows
	lastRefusals                          bool        // and does nothing worse, after the attack
	spoken                                atomic.Bool // the time of lastSilence or lastRefusals is over
	refusals                              map[eventqueue.EventID]rowRefusal
	rates                                 int                          // 0: no rate limits; 2: they change
	parents                               map[int]eventqueue.EventID   // of typed events, by serial number
	audited                               map[eventqueue.EventID]int32 // the last attempt whose synchronous handlers were content

	leastRetries, mostRetries int // what versions choose from

	workers     [3]*process
	relays      [2]*process
	emitters    [2]*process
	left        [2]int // that an emitter has yet to emit
	operator    *process
	all         []*process // that ever were
	incarnation int

	faults, outcomes map[string]int

	mu                         sync.Mutex
	attacking                  bool
	databaseDown, notifierDown bool
	holiday                    bool // no worker works
	arrivals, waiting          []*call
	trace                      []string
	history                    oracle.History
	serial, poisonLeft         int
	calls                      int64
	ramps                      map[operate.Lift]bool // rules that were lifted at a rate
	rest                       *oracle.Final         // the tables when the queue had come to rest
}

func (w *world) healed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.attacking
}

func (w *world) everybody() []*process {
	all := []*process{w.operator}
	for _, list := range [][]*process{w.workers[:], w.relays[:], w.emitters[:]} {
		all = append(all, list...)
	}
	return all
}

// note adds a line to the trace.
func (w *world) note(format string, args ...any) {
	line := fmt.Sprintf("%11.6f ", time.Since(w.start).Seconds()) + fmt.Sprintf(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, line)
}

func (w *world) add(r oracle.Record) {
	if r.At.IsZero() {
		r.At = now()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history.Add(r)
}

// fault opens a fault and returns its end. Actor "" means everybody.
func (w *world) fault(kind oracle.FaultKind, actor string) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := len(w.history.Faults)
	w.history.Faults = append(w.history.Faults, oracle.Fault{Kind: kind, Actor: actor, From: time.Now()})
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.history.Faults[i].To = time.Now()
	}
}
