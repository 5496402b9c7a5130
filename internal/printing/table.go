package printing

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table writes rows of cells in columns; the first row is the heading.
func Table(w io.Writer, rows [][]string) {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(columns, strings.TrimRight(strings.Join(row, "\t"), "\t")) // into a buffer: no error
	}
	_ = columns.Flush()
}

// List writes a table, or that there are no such things if it has no rows.
func List(w io.Writer, rows [][]string, things string) {
	if len(rows) == 1 {
		_, _ = fmt.Fprintf(w, "no %s\n", things)
		return
	}
	Table(w, rows)
}
