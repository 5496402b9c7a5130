package eventctl

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/printing"
)

// attemptDoc is a failed attempt of an event, in JSON.
type attemptDoc struct {
	Attempt   int32     `json:"attempt"`
	StartedAt time.Time `json:"started_at"`
	Seconds   float64   `json:"duration_seconds"`
	Worker    int32     `json:"worker,omitempty"`
	Error     string    `json:"error"`
}

func attemptDocOf(a inspect.Attempt) attemptDoc {
	return attemptDoc{a.Attempt, a.StartedAt.UTC(), a.Duration.Seconds(), int32(a.Worker), a.Error}
}

// writeAttempts writes the failed attempts of an event, if it has any.
func writeAttempts(w io.Writer, shown inspect.Shown) {
	if len(shown.Attempts) == 0 {
		return
	}
	_, _ = fmt.Fprintln(w, "failed attempts:")
	printing.Table(w, tableOf(shown.Attempts, []string{"CLAIM", "STARTED", "TOOK", "WORKER", "ERROR"}, func(a inspect.Attempt) []string {
		return []string{strconv.Itoa(int(a.Attempt)), printing.Time(a.StartedAt), a.Duration.Round(10 * time.Microsecond).String(),
			attemptWorkerText(a, shown.Workers), printing.Printable(a.Error)}
	}))
}

// attemptWorkerText names the worker of an attempt, by its number if it ended long ago.
func attemptWorkerText(a inspect.Attempt, known map[eventqueue.WorkerNumber]inspect.Worker) string {
	if w, ok := known[a.Worker]; ok {
		return workerText(w)
	}
	if a.Worker == 0 {
		return "-"
	}
	return "#" + strconv.Itoa(int(a.Worker))
}
