package emit

import (
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/time/rate"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/typed"
	"eventsv2/test/attack/chaos/check"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/attack/harness"
)

// errUndo makes a transaction roll back on purpose.
var errUndo = errors.New("rolled back on purpose")

// Emitters emit until their context ends.
type Emitters struct {
	queue  *eventqueue.Queue
	bus    *typed.Bus
	own    *Emitters // with a pool that the queue did not make
	pool   *pgxpool.Pool
	db     *sql.DB
	limit  *rate.Limiter
	seed   int64
	scopes []eventqueue.CanvasID

	mu               sync.Mutex
	acknowledgements map[string]check.Acknowledgement // by tag
	forms            map[string]int                   // accepted events, by the way of emitting
	repeats          map[string]check.Repeat          // by tag
	ordered          map[string]check.Emission        // by tag
	failures         int

	// waiting is how many events are due and have not ended; backpressure counts them.
	waiting     atomic.Int64
	mostWaiting int
}

// How many emit at once, and how long one emit may take.
const (
	Count       = 4
	emitTimeout = 5 * time.Second
)

// record records the outcome of a call.
func (e *Emitters) record(f form, events []eventqueue.NewEvent, err error) {
	got := check.Unknown
	switch {
	case err == nil:
		got = check.Accepted
	case errors.Is(err, errUndo):
		got = check.Undone
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range events {
		tag := taskOf(events[i]).Tag
		e.acknowledgements[tag] = got
		if _, is := e.repeats[tag]; is {
			e.acknowledgements[tag] = check.Repeated
		}
	}
	if got == check.Unknown {
		e.failures++
	} else {
		e.forms[f.name] += len(events)
	}
}

func (e *Emitters) recordRepeats(events []eventqueue.NewEvent, emitted []eventqueue.Emitted, began time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, one := range emitted {
		if !one.New {
			e.repeats[taskOf(events[i]).Tag] = check.Repeat{Of: one.ID, Key: events[i].UniqueKey, At: began}
		}
	}
}

// taskOf is the task of an event that drawEvent made.
func taskOf(event eventqueue.NewEvent) task.Task {
	t, err := task.Parse(event.Value)
	if err != nil {
		panic(err)
	}
	return t
}

// recordOrdered records the events of a call that have ordering keys.
func (e *Emitters) recordOrdered(emitter int, began time.Time, events []eventqueue.NewEvent) {
	returned := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, event := range events {
		if t := taskOf(event); t.OrderingKey != "" {
			delayed := event.Delay != 0 || !event.DelayUntil.IsZero()
			e.ordered[t.Tag] = check.Emission{Emitter: emitter, Began: began, Returned: returned, Index: i, Delayed: delayed}
		}
	}
}

// New makes emitters on canvases, at a rate per second. own is a pool that the queue did not make.
func New(queue, onOwn *eventqueue.Queue, pool, own *pgxpool.Pool, seed int64, perSecond int, canvases []eventqueue.CanvasID) (*Emitters, error) {
	// A burst lets the emitters catch up after an outage.
	limit := rate.NewLimiter(rate.Limit(perSecond), 10*perSecond+100)
	limit.AllowN(time.Now(), 10*perSecond) // but not at the beginning
	bus, err := task.Chain(queue, nil)
	return &Emitters{queue: queue, bus: bus, own: &Emitters{queue: onOwn, pool: own}, pool: pool, db: stdlib.OpenDBFromPool(pool),
		limit: limit, seed: seed, scopes: canvases, acknowledgements: map[string]check.Acknowledgement{}, forms: map[string]int{},
		repeats: map[string]check.Repeat{}, ordered: map[string]check.Emission{}, mostWaiting: backlogSeconds * perSecond}, err
}

// Close ends what the emitters have opened.
func (e *Emitters) Close() error { return e.db.Close() }

// Known adds to the evidence what the emitters know.
func (e *Emitters) Known(to *check.Evidence) {
	to.Acknowledgements, to.Repeats, to.Ordered = e.acknowledgements, e.repeats, e.ordered
}

// Emitted are the events that each way of emitting has emitted, and the calls that failed.
func (e *Emitters) Emitted() []harness.Row {
	rows := harness.Rows(e.forms)
	return append(rows, harness.Row{What: "calls that failed, with an outcome that was found out at the end", Number: e.failures},
		harness.Row{What: "events that were none, because another had their unique key", Number: len(e.repeats)})
}
