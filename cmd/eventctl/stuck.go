package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/service"
)

// stuckDoc is an event that seems stuck, in JSON.
type stuckDoc struct {
	eventDoc
	Reasons []pgstore.StuckReason `json:"reasons"`
	Since   time.Time             `json:"stuck_since"`
}

func (a *app) stuckCommand() *cobra.Command {
	var unclaimed time.Duration
	var attempts int32
	cmd := &cobra.Command{
		Use:   "stuck",
		Short: "List the events that seem stuck, and why",
		Long: "stuck lists events that have not ended and that nobody holds back, by id. The reasons are:\n\n" +
			"  expired    its lock ran out: the next claim takes it over, if there is a worker\n" +
			"  unclaimed  due and free for longer than --for: no worker has its handler, or none runs, or all\n" +
			"             are busy, or its notification was lost\n" +
			"  repeated   claimed --attempts times or more: its runs fail, lose their worker, or put it off\n\n" +
			"Events that are paused or blocked are not stuck; those that are delayed or run are so only as\n" +
			"repeated, and so are those that wait in a line behind another one. SINCE is when the first reason\n" +
			"began, NOTIFIED when its notification was last published. It reads all events of the canvas, and\n" +
			"without --canvas all there are, 20,000 in a statement.",
		Args: cobra.NoArgs,
	}
	flags, page := addScope(cmd, false), addPage(cmd)
	cmd.Flags().DurationVar(&unclaimed, "for", 5*time.Minute, "how long a due event may be free, as a `duration`")
	cmd.Flags().Int32Var(&attempts, "attempts", 10, "`n` claims or more are too many")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := flags.filter()
		if err != nil {
			return err
		}
		if err := page.check(); err != nil {
			return err
		}
		if unclaimed < 0 {
			return badInput(fmt.Errorf("--for is %s: it must not be negative", unclaimed))
		}
		if attempts < 1 {
			return badInput(errors.New("--attempts must be at least 1"))
		}
		return a.withStore(cmd.Context(), func(store *pgstore.Store, config service.Config) error {
			long := pgstore.StuckAfter{Unclaimed: unclaimed, Attempts: attempts}
			events, err := store.Stuck(cmd.Context(), filter, long, eventqueue.EventID(page.after), page.limit, config.LockTimeout)
			if err != nil {
				return failed(fmt.Errorf("look for stuck events: %w", err))
			}
			return a.writeStuck(events, page)
		})
	}
	return cmd
}

func (a *app) writeStuck(events []pgstore.StuckEvent, page *pageFlags) error {
	doc := struct {
		Events []stuckDoc          `json:"events"`
		Next   *eventqueue.EventID `json:"next"`
	}{make([]stuckDoc, 0, len(events)), page.next(len(events), func() eventqueue.EventID { return events[len(events)-1].ID })}
	rows := [][]string{{"ID", "REASON", "SINCE", "AGE", "ATTEMPTS", "RETRIES", "NOTIFIED", "MODULE", "NAME", "MODIFIER", "CANVAS"}}
	for _, e := range events {
		doc.Events = append(doc.Events, stuckDoc{eventDocOf(e.QueuedEvent), e.Reasons, e.Since.UTC()})
		rows = append(rows, []string{e.ID.String(), reasonsText(e.Reasons), when(e.Since, e.AsOf), age(e.AsOf.Sub(e.EnqueuedAt)),
			strconv.Itoa(int(e.Attempts)), strconv.Itoa(e.Retries), notifiedText(e.QueuedEvent),
			printable(e.Module), printable(e.Name), printable(e.Modifier), e.Canvas.String()})
	}
	return a.write(doc, func(w io.Writer) { writePage(w, rows, "stuck events", doc.Next) })
}

func reasonsText(reasons []pgstore.StuckReason) string {
	var b strings.Builder
	for i, reason := range reasons {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(reason))
	}
	return b.String()
}

// notifiedText is when an event was last notified, or that the relay owes it.
func notifiedText(e pgstore.QueuedEvent) string {
	if e.NotifiedAt == nil {
		return "owed"
	}
	return when(*e.NotifiedAt, e.AsOf)
}
