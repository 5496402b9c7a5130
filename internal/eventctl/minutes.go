package eventctl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/minutes"
	"eventsv2/internal/view"
)

// Beyond minutesUpTo, hours are read instead of minutes.
const minutesUpTo = 48 * time.Hour

// latestMinutes are those that say what is pending now.
const latestMinutes = time.Hour

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
	return writeList(p, view.ListOf(sums, view.CountsOf), noCounts, countsHeading, countsCells)
}

const (
	noCounts      = "counts in this time"
	countsHeading = "CANVAS  MODULE  NAME  EMITTED  COMPLETED  FAILED  RETRIED  CANCELLED  WAIT P50  WAIT P99  RUN P50  RUN P99  PENDING  OLDEST DUE  COUNTED"
)

func countsCells(c view.Counts) []any {
	canvas, pending := "others", ""
	if c.Canvas != nil {
		canvas = c.Canvas.String()
	}
	if c.Pending != nil {
		pending = fmt.Sprint(*c.Pending)
	}
	return []any{canvas, c.Module, c.Name, c.Emitted, c.Completed, c.Failed, c.Retried, c.Cancelled, c.WaitP50.Span(), c.WaitP99.Span(), c.RunP50.Span(), c.RunP99.Span(), pending, c.OldestDue.Age(), c.CountedAt}
}
