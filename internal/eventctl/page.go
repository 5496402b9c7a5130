package eventctl

import (
	"fmt"
	"io"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/printing"
)

// page is one page of a list as a document: its rows, and the id for --after if the page is
// full.
type page[Row any] struct {
	rows []Row
	next *eventqueue.EventID
}

// pageOf makes the document of a page. A full page has an id for the next one.
func pageOf[T, Row any](items []T, p *pageFlags, row func(T) Row, id func(T) eventqueue.EventID) page[Row] {
	doc := page[Row]{rows: rowsOf(items, row)}
	if len(items) == p.limit {
		doc.next = new(id(items[len(items)-1]))
	}
	return doc
}

// searchedPage makes the document of a page of a list that goes on after next; 0 is its end.
func searchedPage[T, Row any](items []T, next eventqueue.EventID, row func(T) Row) page[Row] {
	doc := page[Row]{rows: rowsOf(items, row)}
	if next != 0 {
		doc.next = &next
	}
	return doc
}

// writeSearched is writePage for a list that reads a bounded number of events: of a page that is not full, it says so.
func writeSearched(w io.Writer, rows [][]string, things string, next *eventqueue.EventID, limit int) {
	if found := len(rows) - 1; next == nil || found == limit {
		writePage(w, rows, things, next)
		return
	} else if found > 0 {
		printing.List(w, rows, things)
	}
	_, _ = fmt.Fprintf(w, "%d %s read so far; to go on with the search, add --after %s\n", inspect.MostRead, things, next)
}

// rowsOf makes the documents of a list. For an empty list it returns an empty array, not
// null.
func rowsOf[T, Row any](items []T, row func(T) Row) []Row {
	rows := make([]Row, 0, len(items))
	for _, item := range items {
		rows = append(rows, row(item))
	}
	return rows
}

// tableOf makes the text of a list: its heading and the cells of each row.
func tableOf[T any](items []T, heading []string, cells func(T) []string) [][]string {
	return append([][]string{heading}, rowsOf(items, cells)...)
}

// writePage writes a table, or that there are no rows, and the flag for the next page.
func writePage(w io.Writer, rows [][]string, things string, next *eventqueue.EventID) {
	printing.List(w, rows, things)
	if next != nil {
		_, _ = fmt.Fprintf(w, "there may be more: add --after %s\n", next)
	}
}
