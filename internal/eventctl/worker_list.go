package eventctl

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/humantime"
	"eventsv2/internal/printing"
	"eventsv2/internal/workerhandlers"
)

func listWorkersCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the workers that run, and those that ended less than a day ago",
		Long: "List the workers that run, and those that ended less than a day ago, the longest running first. Their\n" +
			"states are:\n\n" +
			"  live     it is connected to the database\n" +
			"  stopped  it has stopped in order\n" +
			"  dead     it is not connected: it died, or has lost the database",
		Example: "  eventctl worker list",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withReader(cmd.Context(), func(reader *inspect.Reader) error {
				workers, err := reader.Workers(cmd.Context())
				if err != nil {
					return failed(fmt.Errorf("list the workers: %w", err))
				}
				return p.writeWorkers(workers)
			})
		},
	}
}

// workerDoc is a worker, in JSON.
type workerDoc struct {
	Number    eventqueue.WorkerNumber `json:"number"`
	State     inspect.WorkerState     `json:"state"`
	Host      string                  `json:"host"`
	PID       int                     `json:"pid"`
	Version   string                  `json:"version"`
	StartedAt time.Time               `json:"started_at"`
	StoppedAt *time.Time              `json:"stopped_at"`
	Slots     *slotsDoc               `json:"slots"`
	Handlers  []workerhandlers.Doc    `json:"handlers"`
	// Unreadable means that the row lists others, which no worker writes so.
	Unreadable bool `json:"handlers_unreadable,omitempty"`
}

// slotsDoc is how a worker is occupied, in JSON; null if that is unknown.
type slotsDoc struct {
	Of          int        `json:"of"`
	Busy        int        `json:"busy"`
	Hung        int        `json:"hung"`
	OldestSince *time.Time `json:"oldest_since"`
}

func slotsDocOf(s inspect.WorkerSlots) *slotsDoc {
	if s.Of == 0 {
		return nil
	}
	return &slotsDoc{s.Of, s.Busy, s.Hung, printing.UTC(s.OldestSince)}
}

// slotsText says how a worker is occupied.
func slotsText(w inspect.Worker) string {
	if w.Slots.Of == 0 || w.State != inspect.WorkerLive {
		return "-"
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

func workerDocOf(w inspect.Worker) workerDoc {
	return workerDoc{w.Number, w.State, w.Host, w.PID, w.Version, w.StartedAt.UTC(), printing.UTC(w.StoppedAt), slotsDocOf(w.Slots), workerhandlers.Docs(w.Handlers), w.Unreadable}
}

// handlersText says how many handlers a worker has.
func handlersText(w inspect.Worker) string {
	text := strconv.Itoa(len(w.Handlers.Everywhere) + len(w.Handlers.OnCanvas))
	if w.Unreadable {
		text += ", others unreadable"
	}
	return text
}

func (p *program) writeWorkers(workers []inspect.Worker) error {
	doc := struct {
		Workers []workerDoc `json:"workers"`
	}{rowsOf(workers, workerDocOf)}
	rows := tableOf(workers, []string{"NUMBER", "STATE", "WORKER", "STARTED", "STOPPED", "SLOTS", "HANDLERS", "VERSION"}, func(w inspect.Worker) []string {
		stopped := "-"
		if w.StoppedAt != nil {
			stopped = printing.When(*w.StoppedAt, w.AsOf)
		}
		return []string{strconv.Itoa(int(w.Number)), string(w.State), workerText(w), printing.When(w.StartedAt, w.AsOf), stopped, slotsText(w),
			handlersText(w), printing.Printable(w.Version)}
	})
	return p.write(doc, func(w io.Writer) { printing.List(w, rows, "workers") })
}

// workerText names a worker by its host and process.
func workerText(w inspect.Worker) string {
	return fmt.Sprintf("%s pid %d", printing.Printable(w.Host), w.PID)
}
