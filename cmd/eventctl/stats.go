package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/service"
)

// statsDoc is the counts of one handler, in JSON.
type statsDoc struct {
	Canvas eventqueue.CanvasID          `json:"canvas_id"`
	Module string                       `json:"module"`
	Name   string                       `json:"name"`
	Depth  int64                        `json:"depth"`
	States map[pgstore.EventState]int64 `json:"states"`
	// OldestDue is in seconds.
	OldestDue *float64              `json:"oldest_due_seconds"`
	Failed    int64                 `json:"failed"`
	Rules     []eventqueue.RuleType `json:"rules"`
}

func (a *app) statsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count what waits, runs and failed, for each handler",
		Long: "stats counts the events of each handler that has any, or a rule, or failed events in event_log.\n" +
			"DEPTH is how many have not ended; the states (see eventctl ls --help) add up to it. OLDEST DUE is\n" +
			"for how long the oldest event that nobody runs has been due. FAILED counts event_log.",
		Args: cobra.NoArgs,
	}
	flags := addScope(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := flags.filter()
		if err != nil {
			return err
		}
		return a.withStore(cmd.Context(), func(store *pgstore.Store, config service.Config) error {
			stats, err := store.Stats(cmd.Context(), filter, config.LockTimeout)
			if err != nil {
				return failed(fmt.Errorf("count the events: %w", err))
			}
			return a.writeStats(stats)
		})
	}
	return cmd
}

func (a *app) writeStats(stats []pgstore.HandlerStats) error {
	doc := struct {
		Handlers []statsDoc `json:"handlers"`
	}{make([]statsDoc, 0, len(stats))}
	rows := [][]string{{"CANVAS", "MODULE", "NAME", "DEPTH", "WAITING", "DELAYED", "RUNNING", "PAUSED", "BLOCKED", "EXPIRED", "BEHIND", "OLDEST DUE", "FAILED"}}
	for _, h := range stats {
		doc.Handlers = append(doc.Handlers, statsDocOf(h))
		row := []string{h.Canvas.String(), printable(h.Module), printable(h.Name), count(h.Depth)}
		for _, state := range pgstore.EventStates() {
			row = append(row, count(h.ByState[state]))
		}
		oldest := "-"
		if h.HasDue {
			oldest = age(h.OldestBy)
		}
		rows = append(rows, append(row, oldest, count(h.Failed)))
	}
	return a.write(doc, func(w io.Writer) {
		if len(stats) == 0 {
			_, _ = fmt.Fprintln(w, "no events, no rules, nothing failed")
			return
		}
		table(w, rows)
	})
}

func count(n int64) string { return strconv.FormatInt(n, 10) }

func statsDocOf(h pgstore.HandlerStats) statsDoc {
	doc := statsDoc{Canvas: h.Canvas, Module: h.Module, Name: h.Name, Depth: h.Depth, Failed: h.Failed,
		States: map[pgstore.EventState]int64{}, Rules: []eventqueue.RuleType{}}
	for _, state := range pgstore.EventStates() {
		doc.States[state] = h.ByState[state]
	}
	if h.HasDue {
		doc.OldestDue = new(h.OldestBy.Seconds())
	}
	if h.Paused {
		doc.Rules = append(doc.Rules, eventqueue.PauseRule)
	}
	if h.Blocked {
		doc.Rules = append(doc.Rules, eventqueue.BlockRule)
	}
	return doc
}
