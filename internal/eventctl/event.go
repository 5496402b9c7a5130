package eventctl

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

// handlerCells are the last columns of a table of events.
func handlerCells(e view.Event) []any { return []any{e.Module, e.Name, e.Modifier, e.Canvas} }

// originRows are the rows of a table for the parent, the event that it repeats, and the attributes of an event.
func originRows(e view.Event) [][]string {
	rows := factRows("parent", e.ParentID, "replayed from", e.Original)
	label := "attributes"
	for _, key := range slices.Sorted(maps.Keys(e.Attributes)) {
		rows = append(rows, []string{label, printing.Printable(key) + "=" + printing.Printable(e.Attributes[key])})
		label = ""
	}
	return rows
}

// writeAttempts writes the attempts of an event that are known, if there are any.
func writeAttempts(w io.Writer, attempts []view.Attempt) {
	if len(attempts) == 0 {
		return
	}
	_, _ = fmt.Fprintln(w, "attempts:")
	printing.Table(w, tableOf(attempts, "CLAIM  STARTED  TOOK  WORKER  OUTCOME  ERROR", func(a view.Attempt) []any {
		return []any{a.Attempt, a.StartedAt, a.Duration, a.RunBy(), a.Outcome, a.Error}
	}))
	for _, a := range attempts {
		if a.Stack != "" {
			_, _ = fmt.Fprintf(w, "stack of attempt %d:\n%s\n", a.Attempt, printing.PrintableLines(strings.ReplaceAll(a.Stack, "\t", "    ")))
		}
		if a.RunLog != "" {
			_, _ = fmt.Fprintf(w, "log of attempt %d:\n%s\n", a.Attempt, printing.PrintableLines(a.RunLog))
		}
	}
}
