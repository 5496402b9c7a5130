package dashboard

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/view"
)

// workerRow is a worker with what it has in hand.
type workerRow struct {
	view.Worker
	Held *inspect.Held // nil: nothing that is known to have begun
}

// Handled says how many handlers the worker has, and for which canvases.
func (w workerRow) Handled() string {
	onOne := 0
	for _, h := range w.Handlers {
		if h.Canvas != nil {
			onOne++
		}
	}
	var parts []string
	if everywhere := len(w.Handlers) - onOne; everywhere > 0 {
		parts = append(parts, fmt.Sprint(everywhere, " on every canvas"))
	}
	if onOne > 0 {
		parts = append(parts, fmt.Sprint(onOne, " on one"))
	}
	return strings.Join(parts, ", ")
}

type workersData struct {
	Workers []workerRow
	// More reports whether there are more runs in hand than were read.
	More bool
}

func (d *dashboard) workers(r *http.Request) (string, any, error) {
	if !viewerOf(r).MayReadAll() {
		return "", nil, problem{http.StatusForbidden, "You may not see the workers", "They run handlers of all canvases: it takes the verb read on all of them."}
	}
	workers, err := d.Reader.Workers(r.Context())
	if err != nil {
		return "", nil, err
	}
	order := []inspect.WorkerState{inspect.WorkerLive, inspect.WorkerDead}
	slices.SortStableFunc(workers, func(a, b inspect.Worker) int { // those that have stopped come last
		return cmp.Compare(uint(slices.Index(order, a.State)), uint(slices.Index(order, b.State)))
	})
	held, more, err := d.Reader.Held(r.Context())
	data := workersData{More: more}
	for i := range workers {
		data.Workers = append(data.Workers, workerRow{view.WorkerOf(workers[i]), held[workers[i].Number]})
	}
	return "Workers", data, err
}
