package eventctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/minutes"
	"eventsv2/internal/printing"
)

// minutesDoc has what was counted of one handler, in JSON.
type minutesDoc struct {
	// Canvas is null for the counts of all canvases that have none of their own.
	Canvas    *eventqueue.CanvasID `json:"canvas_id"`
	Module    string               `json:"module"`
	Name      string               `json:"name"`
	Emitted   int64                `json:"emitted"`
	Completed int64                `json:"completed"`
	Failed    int64                `json:"failed"`
	Retried   int64                `json:"retried"`
	Cancelled int64                `json:"cancelled"`
	// These are in seconds; null without any run.
	WaitP50 *float64 `json:"wait_p50_seconds"`
	WaitP99 *float64 `json:"wait_p99_seconds"`
	RunP50  *float64 `json:"run_p50_seconds"`
	RunP99  *float64 `json:"run_p99_seconds"`
	// Pending is null if nothing was pending in the last minutes, or cron does not count it.
	Pending   *int64   `json:"pending"`
	OldestDue *float64 `json:"oldest_due_seconds"`
}

// Beyond minutesUpTo, hours are read instead of minutes.
const minutesUpTo = 48 * time.Hour

// latestMinutes are those that say what is pending now.
const latestMinutes = 5 * time.Minute

// counted returns what was counted since a time, by handler.
func counted(ctx context.Context, reader *inspect.Reader, filter inspect.Filter, since time.Duration) ([]inspect.Minute, error) {
	if since < time.Minute {
		return nil, badInput(errors.New("--since must be at least 1m"))
	}
	minutes, err := minutesSince(ctx, reader, filter, since)
	if err != nil {
		return nil, failed(fmt.Errorf("read the counts of minutes: %w", err))
	}
	return inspect.SumMinutes(minutes), nil
}

// minutesSince returns minutes or, of a long time, hours. These have the highest number of pending
// events of their minutes, so what is pending now is read from the last minutes.
func minutesSince(ctx context.Context, reader *inspect.Reader, filter inspect.Filter, since time.Duration) ([]inspect.Minute, error) {
	if since <= minutesUpTo {
		return reader.Minutes(ctx, filter, since, inspect.PerMinute)
	}
	hours, err := reader.Minutes(ctx, filter, since, inspect.PerHour)
	if err != nil {
		return nil, err
	}
	for i := range hours {
		hours[i].Pending, hours[i].OldestDue = nil, nil
	}
	latest, err := reader.Minutes(ctx, filter, latestMinutes, inspect.PerMinute)
	for i := range latest {
		latest[i].Counts = minutes.Counts{Scope: latest[i].Scope} // which the hours have
	}
	return append(hours, latest...), err
}

// showMinutes prints what was counted since a time.
func (p *program) showMinutes(ctx context.Context, reader *inspect.Reader, filter inspect.Filter, since time.Duration) error {
	sums, err := counted(ctx, reader, filter, since)
	if err != nil {
		return err
	}
	return p.write(minutesDocOf(sums), func(w io.Writer) { writeMinutes(w, sums) })
}

func writeMinutes(w io.Writer, sums []inspect.Minute) {
	heading := []string{"CANVAS", "MODULE", "NAME", "EMITTED", "COMPLETED", "FAILED", "RETRIED", "CANCELLED",
		"WAIT P50", "WAIT P99", "RUN P50", "RUN P99", "PENDING", "OLDEST DUE"}
	printing.List(w, tableOf(sums, heading, minuteCells), "counts in this time")
}

func minuteCells(m inspect.Minute) []string {
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	canvas, pending, oldest := m.Canvas.String(), "-", "-"
	if m.Canvas == (eventqueue.CanvasID{}) {
		canvas = "others"
	}
	if m.Pending != nil {
		pending = count(*m.Pending)
	}
	if m.OldestDue != nil {
		oldest = printing.Age(*m.OldestDue)
	}
	return []string{canvas, printing.Printable(m.Module), printing.Printable(m.Name), count(m.Emitted), count(m.Completed), count(m.Failed), count(m.Retried), count(m.Cancelled),
		quantileCell(m.Wait, 0.5), quantileCell(m.Wait, 0.99), quantileCell(m.Run, 0.5), quantileCell(m.Run, 0.99), pending, oldest}
}

func quantileCell(h minutes.Histogram, q float64) string {
	if h.Count() == 0 {
		return "-"
	}
	d := h.Quantile(q)
	if d >= time.Minute {
		return printing.Age(d)
	}
	unit := 100 * time.Microsecond
	for d/unit >= 1000 { // three digits
		unit *= 10
	}
	return d.Round(unit).String()
}

func minutesDocOf(sums []inspect.Minute) any {
	return struct {
		Handlers []minutesDoc `json:"handlers"`
	}{rowsOf(sums, func(m inspect.Minute) minutesDoc {
		doc := minutesDoc{Module: m.Module, Name: m.Name, Emitted: m.Emitted, Completed: m.Completed, Failed: m.Failed, Retried: m.Retried, Cancelled: m.Cancelled,
			WaitP50: quantileOf(m.Wait, 0.5), WaitP99: quantileOf(m.Wait, 0.99), RunP50: quantileOf(m.Run, 0.5), RunP99: quantileOf(m.Run, 0.99),
			Pending: m.Pending}
		if m.Canvas != (eventqueue.CanvasID{}) {
			doc.Canvas = &m.Canvas
		}
		if m.OldestDue != nil {
			doc.OldestDue = new(m.OldestDue.Seconds())
		}
		return doc
	})}
}

func quantileOf(h minutes.Histogram, q float64) *float64 {
	if h.Count() == 0 {
		return nil
	}
	return new(h.Quantile(q).Seconds())
}
