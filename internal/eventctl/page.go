package eventctl

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/humantime"
	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

// writeHistory is writeSearched for events that have ended.
func writeHistory(p *program, list view.HistoryPage, limit int, heading string, cells func(view.Event) []any) error {
	return p.write(list, func(w io.Writer) {
		rows := tableOf(list.Items, heading, cells)
		switch {
		case list.Next == "" || len(list.Items) == limit:
			printing.List(w, rows, "entries in event_log")
			if list.Next != "" {
				_, _ = fmt.Fprintf(w, "there may be more: add --after %s\n", list.Next)
			}
		default:
			if len(list.Items) > 0 {
				printing.Table(w, rows)
			}
			_, _ = fmt.Fprintf(w, "%d entries in event_log read so far; to go on with the search, add --after %s\n", inspect.MostRead, list.Next)
		}
	})
}

// writeList writes a list: as JSON, or as a table with the columns of a heading, which stand two spaces apart, and the cells of each item.
func writeList[T any](p *program, list view.Page[T], things, heading string, cells func(T) []any) error {
	return p.write(list, func(w io.Writer) {
		printing.List(w, tableOf(list.Items, heading, cells), things)
		if list.Next != 0 {
			_, _ = fmt.Fprintf(w, "there may be more: add --after %d\n", list.Next)
		}
	})
}

// writeSearched is writeList for a list that reads a bounded number of events: of a page that is not full, it says so.
func writeSearched[T any](p *program, list view.Page[T], limit int, things, heading string, cells func(T) []any) error {
	if list.Next == 0 || len(list.Items) == limit {
		return writeList(p, list, things, heading, cells)
	}
	return p.write(list, func(w io.Writer) {
		if len(list.Items) > 0 {
			printing.Table(w, tableOf(list.Items, heading, cells))
		}
		_, _ = fmt.Fprintf(w, "%d %s read so far; to go on with the search, add --after %d\n", inspect.MostRead, things, list.Next)
	})
}

// tableOf makes the rows of a table. A cell that is empty is a dash, and texts are safe for a terminal.
func tableOf[T any](items []T, heading string, cells func(T) []any) [][]string {
	rows := [][]string{strings.Split(heading, "  ")}
	for _, item := range items {
		var row []string
		for _, cell := range cells(item) {
			row = append(row, cmp.Or(cellText(cell), "-"))
		}
		rows = append(rows, row)
	}
	return rows
}

// factRows makes the rows of a text about one thing, of pairs of a name and what it is. Without that, a pair is left out.
func factRows(pairs ...any) (rows [][]string) {
	for i := 0; i < len(pairs); i += 2 {
		if text := cellText(pairs[i+1]); text != "" {
			rows = append(rows, []string{fmt.Sprint(pairs[i]), text})
		}
	}
	return rows
}

// cellText is a cell of a table. No event and no time are empty.
func cellText(cell any) string {
	switch c := cell.(type) {
	case eventqueue.EventID:
		if c == 0 {
			return ""
		}
	case time.Time:
		return humantime.Time(c)
	case *time.Time:
		if c == nil {
			return ""
		}
		return humantime.Time(*c)
	}
	return printing.Printable(fmt.Sprint(cell))
}

// orAll is a canvas, or all of them.
func orAll(canvas *eventqueue.CanvasID) string {
	if canvas == nil {
		return "all"
	}
	return canvas.String()
}
