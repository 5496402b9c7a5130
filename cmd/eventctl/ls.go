package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/service"
)

// eventDoc is an event that has not ended, in JSON.
type eventDoc struct {
	ID         eventqueue.EventID  `json:"id"`
	Canvas     eventqueue.CanvasID `json:"canvas_id"`
	Module     string              `json:"module"`
	Name       string              `json:"name"`
	Modifier   string              `json:"modifier"`
	State      pgstore.EventState  `json:"state"`
	Retries    int                 `json:"retries"`
	Attempts   int32               `json:"attempts"`
	EnqueuedAt time.Time           `json:"enqueued_at"`
	DelayUntil time.Time           `json:"delay_until"`
	LockedAt   *time.Time          `json:"locked_at"`
	NotifiedAt *time.Time          `json:"notified_at"`
	ValueBytes int                 `json:"value_bytes"`
	Value      json.RawMessage     `json:"value,omitempty"`
	Ordering   string              `json:"ordering_key,omitempty"`
}

func eventDocOf(e pgstore.QueuedEvent) eventDoc {
	return eventDoc{e.ID, e.Canvas, e.Module, e.Name, e.Modifier, e.State, e.Retries, e.Attempts,
		e.EnqueuedAt.UTC(), e.DelayUntil.UTC(), inUTC(e.LockedAt), inUTC(e.NotifiedAt), e.ValueBytes, jsonValue(e.Value), e.OrderingKey}
}

func inUTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}

func (a *app) lsCommand() *cobra.Command {
	var states []string
	for _, s := range pgstore.EventStates() {
		states = append(states, string(s))
	}
	names := strings.Join(states, ", ")
	var state string
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the events that have not ended",
		Long: "ls lists the events that have not ended, by id. Their states are:\n\n" +
			"  waiting  due and free: a worker may claim it\n" +
			"  delayed  not due yet\n" +
			"  running  a worker holds its lock\n" +
			"  paused   held back by a pause rule\n" +
			"  blocked  held back by a block rule, and perhaps by a pause as well\n" +
			"  expired  the lock ran out: the next claim takes it over\n" +
			"  behind   due and free, but others of its line are before it",
		Args: cobra.NoArgs,
	}
	flags, page := addScope(cmd, false), addPage(cmd)
	cmd.Flags().StringVar(&state, "state", "", "only events in this `state`: "+names)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := flags.filter()
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("state") && !slices.Contains(states, state) {
			return badInput(fmt.Errorf("--state %q is unknown: use %s", state, names))
		}
		if err := page.check(); err != nil {
			return err
		}
		return a.withStore(cmd.Context(), func(store *pgstore.Store, config service.Config) error {
			events, err := store.ListEvents(cmd.Context(), filter, pgstore.EventState(state),
				eventqueue.EventID(page.after), page.limit, config.LockTimeout)
			if err != nil {
				return failed(fmt.Errorf("list the events: %w", err))
			}
			return a.writeEvents(events, page)
		})
	}
	return cmd
}

func (a *app) writeEvents(events []pgstore.QueuedEvent, page *pageFlags) error {
	doc := struct {
		Events []eventDoc          `json:"events"`
		Next   *eventqueue.EventID `json:"next"`
	}{make([]eventDoc, 0, len(events)), page.next(len(events), func() eventqueue.EventID { return events[len(events)-1].ID })}
	rows := [][]string{{"ID", "STATE", "AGE", "DUE", "RETRIES", "MODULE", "NAME", "MODIFIER", "CANVAS"}}
	for _, e := range events {
		doc.Events = append(doc.Events, eventDocOf(e))
		rows = append(rows, []string{e.ID.String(), string(e.State), age(e.AsOf.Sub(e.EnqueuedAt)), when(e.DelayUntil, e.AsOf),
			strconv.Itoa(e.Retries), printable(e.Module), printable(e.Name), printable(e.Modifier), e.Canvas.String()})
	}
	return a.write(doc, func(w io.Writer) { writePage(w, rows, "events", doc.Next) })
}

// writePage writes a table, or that it is empty, and how to go on.
func writePage(w io.Writer, rows [][]string, things string, next *eventqueue.EventID) {
	if len(rows) == 1 {
		_, _ = fmt.Fprintf(w, "no %s\n", things)
		return
	}
	table(w, rows)
	if next != nil {
		_, _ = fmt.Fprintf(w, "there may be more: add --after %s\n", next)
	}
}
