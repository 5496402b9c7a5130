package view

import (
	"fmt"
	"strconv"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/humantime"
	"eventsv2/internal/workerhandlers"
)

// Process is the process of a worker.
type Process struct {
	Number    eventqueue.WorkerNumber `json:"number"`
	State     inspect.WorkerState     `json:"state" enum:"live,stopped,dead"`
	Host      string                  `json:"host"`
	PID       int                     `json:"pid"`
	Version   string                  `json:"version"`
	StartedAt time.Time               `json:"started_at"`
}

func processOf(w inspect.Worker) Process {
	return Process{w.Number, w.State, w.Host, w.PID, w.Version, w.StartedAt.UTC()}
}

// Place names a process by its host.
func (p Process) Place() string { return fmt.Sprintf("%s pid %d", p.Host, p.PID) }

// Worker is a worker that runs, or one that ended less than a day ago.
type Worker struct {
	Process
	StoppedAt *time.Time               `json:"stopped_at,omitempty"`
	Slots     *Slots                   `json:"slots,omitempty" doc:"How the worker is occupied, as of its last heartbeat with something in hand; absent: unknown."`
	Handlers  []workerhandlers.Handler `json:"handlers" nullable:"false" doc:"Without a canvas_id one is for every canvas."`
	// Breakers are its circuit breakers that are open.
	Breakers []workerhandlers.Breaker `json:"open_breakers,omitempty" nullable:"false" doc:"Its circuit breakers that are open, as of its last heartbeat: what these handlers call is away, and their events wait."`
	// Unreadable means that the row lists others, which no worker writes so.
	Unreadable bool `json:"handlers_unreadable,omitempty" doc:"The row of the worker lists others, which cannot be read."`

	AsOf time.Time `json:"-"`
}

// Slots is how a worker is occupied.
type Slots struct {
	Of          int        `json:"of" doc:"How many events it may hold."`
	Busy        int        `json:"busy" doc:"How many it holds."`
	Hung        int        `json:"hung" doc:"Of how many the handlers have not returned though their time is over; those that were given up hold no slot."`
	OldestSince *time.Time `json:"oldest_since,omitempty"`
}

// WorkerOf is a worker.
func WorkerOf(w inspect.Worker) Worker {
	worker := Worker{processOf(w), utc(w.StoppedAt), nil, workerhandlers.List(w.Handlers), w.Breakers, w.Unreadable, w.AsOf}
	if s := w.Slots; s.Of > 0 {
		worker.Slots = &Slots{s.Of, s.Busy, s.Hung, utc(s.OldestSince)}
	}
	return worker
}

// Occupied is how the slots of a live worker are occupied; "" if that is unknown.
func (w Worker) Occupied() string {
	if w.Slots == nil || w.State != inspect.WorkerLive {
		return ""
	}
	text := fmt.Sprintf("%d of %d", w.Slots.Busy, w.Slots.Of)
	if w.Slots.OldestSince != nil {
		text += ", the oldest " + humantime.Age(w.AsOf.Sub(*w.Slots.OldestSince))
	}
	if w.Slots.Hung > 0 {
		text += fmt.Sprintf(", %d hung", w.Slots.Hung)
	}
	return text
}

// When is how long ago a time of the worker was; "" for none.
func (w Worker) When(t *time.Time) string { return when(t, w.AsOf) }

// HandlersText says how many handlers a worker has.
func (w Worker) HandlersText() string {
	text := strconv.Itoa(len(w.Handlers))
	if w.Unreadable {
		text += ", others unreadable"
	}
	return text
}
