package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/service"
)

// logDoc is an event that has ended, in JSON.
type logDoc struct {
	ID         eventqueue.EventID  `json:"id"`
	Canvas     eventqueue.CanvasID `json:"canvas_id"`
	Module     string              `json:"module"`
	Name       string              `json:"name"`
	Modifier   string              `json:"modifier"`
	Status     pgstore.LogStatus   `json:"status"`
	Retries    int                 `json:"retries"`
	Attempts   int32               `json:"attempts"`
	LastError  *string             `json:"last_error"`
	EnqueuedAt time.Time           `json:"enqueued_at"`
	EndedAt    time.Time           `json:"ended_at"`
	ValueBytes int                 `json:"value_bytes"`
	Value      json.RawMessage     `json:"value,omitempty"`
}

func logDocOf(e pgstore.LogEntry) logDoc {
	doc := logDoc{ID: e.ID, Canvas: e.Canvas, Module: e.Module, Name: e.Name, Modifier: e.Modifier, Status: e.Status,
		Retries: e.Retries, Attempts: e.Attempts, EnqueuedAt: e.EnqueuedAt.UTC(), EndedAt: e.EndedAt.UTC(),
		ValueBytes: e.ValueBytes, Value: jsonValue(e.Value)}
	if e.Status == pgstore.LogFailed {
		doc.LastError = &e.LastError
	}
	return doc
}

func (a *app) logCommand() *cobra.Command {
	var status string
	var newest bool
	cmd := &cobra.Command{
		Use:   "log",
		Short: "List the events that have ended: the failed ones, and the completed ones if they are kept",
		Args:  cobra.NoArgs,
	}
	flags, page := addScope(cmd, false), addPage(cmd)
	cmd.Flags().StringVar(&status, "status", "", "only events that ended with this `status`: failed or completed")
	cmd.Flags().BoolVar(&newest, "newest", false, "begin with the highest id; --after goes on downwards")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := flags.filter()
		if err != nil {
			return err
		}
		wanted, err := parseStatus(status, cmd.Flags().Changed("status"))
		if err != nil {
			return err
		}
		if err := page.check(); err != nil {
			return err
		}
		return a.withStore(cmd.Context(), func(store *pgstore.Store, _ service.Config) error {
			entries, err := store.ListLog(cmd.Context(), filter, wanted, newest, eventqueue.EventID(page.after), page.limit)
			if err != nil {
				return failed(fmt.Errorf("list event_log: %w", err))
			}
			return a.writeLog(entries, page)
		})
	}
	return cmd
}

func parseStatus(text string, given bool) (pgstore.LogStatus, error) {
	if !given {
		return "", nil
	}
	switch status := pgstore.LogStatus(strings.ToUpper(text)); status {
	case pgstore.LogFailed, pgstore.LogCompleted:
		return status, nil
	default:
		return "", badInput(fmt.Errorf("--status %q is unknown: use failed or completed", text))
	}
}

func (a *app) writeLog(entries []pgstore.LogEntry, page *pageFlags) error {
	doc := struct {
		Entries []logDoc            `json:"entries"`
		Next    *eventqueue.EventID `json:"next"`
	}{make([]logDoc, 0, len(entries)), page.next(len(entries), func() eventqueue.EventID { return entries[len(entries)-1].ID })}
	rows := [][]string{{"ID", "STATUS", "ENDED", "RETRIES", "MODULE", "NAME", "MODIFIER", "CANVAS", "LAST ERROR"}}
	for _, e := range entries {
		doc.Entries = append(doc.Entries, logDocOf(e))
		rows = append(rows, []string{e.ID.String(), string(e.Status), when(e.EndedAt, e.AsOf), strconv.Itoa(e.Retries),
			printable(e.Module), printable(e.Name), printable(e.Modifier), e.Canvas.String(), brief(e.LastError)})
	}
	return a.write(doc, func(w io.Writer) { writePage(w, rows, "entries in event_log", doc.Next) })
}

// brief cuts an error to what fits into a table: show has the whole of it.
func brief(s string) string {
	const most = 80
	if len(s) <= most {
		return printable(s)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return printable(s[:cut]) + "…"
}
