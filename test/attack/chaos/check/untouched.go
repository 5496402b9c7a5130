package check

import (
	"fmt"
	"strings"

	"eventsv2/test/attack/record"
)

// Fate is what becomes of a row that somebody wrote by hand.
type Fate int

// The fates.
const (
	FateRuns    Fate = iota // its event runs like any other
	FateStays               // nobody can run it, and nobody may change it
	FateRefused             // the table does not take it
)

// OddRow is a row that differs in one column from what the queue writes.
type OddRow struct {
	Column, value string // SQL
	Fate          Fate
}

// String is the row in a report.
func (r OddRow) String() string { return r.Column + " = " + r.value }

// OddRows are such rows, each with its fate.
func OddRows() []OddRow {
	return []OddRow{
		{"delay_until", "'4713-01-01 BC'", FateRuns},
		{"enqueued_at", "'4713-01-01 BC'", FateRuns},
		{"enqueued_at", "'9999-01-01'", FateRuns},
		{"id", "4611686018427387904 + nextval('events_id_seq')", FateRuns}, // no sequence comes so far
		{"attempts", "999999900", FateRuns},
		{"retries", "8", FateRuns}, // task.MaxRetries: one run is left
		{"locked_at", "clock_timestamp() - interval '1 day'", FateRuns},
		{"delay_until", "'3000-01-01'", FateStays},
		{"modifier", "''", FateStays}, // no program has a handler for it
		{"attempts", "1000000000", FateStays},
		{"locked_at", "'2999-01-01'", FateStays},
		{"id", "-nextval('events_id_seq')", FateRefused},
		{"modifier", "NULL", FateRefused},
		{"value", "NULL", FateRefused},
		{"delay_until", "'infinity'", FateRefused},
		{"locked_at", "'infinity'", FateRefused},
		{"attempts", "1000000001", FateRefused},
		{"retries", "-1", FateRefused},
	}
}

// InsertSQL writes the row as one of a list of parameters: canvas, module, name, value.
func (r OddRow) InsertSQL() string {
	columns := []string{"canvas_id", "module", "name", "modifier", "id", "delay_until", "enqueued_at", "locked_at", "attempts", "retries", "value"}
	values := []string{"$1", "$2", "$3", "'_'", "nextval('events_id_seq')", "now()", "now()", "NULL", "0", "0", "CASE WHEN $5 THEN $4 END"}
	for i, column := range columns {
		if column == r.Column && column != "value" {
			values[i] = r.value
		}
	}
	return fmt.Sprintf("INSERT INTO events_v2 (%s) VALUES (%s)", strings.Join(columns, ", "), strings.Join(values, ", "))
}

// untouched checks an event that nobody can run: it stays as it was written.
func (c *checker) untouched(t *trial) {
	c.result.figures.untouched++
	for i := range t.Changes {
		switch ch := &t.Changes[i]; {
		case ch.Op == record.Insert:
		case ch.Op == record.Delete:
			c.find(t.Trace, lost, "%s deleted it, and it cannot run (%s)", ch.Writer, OddRows()[t.task.Odd-1])
		case ch.Rewritten || ch.Old != ch.New:
			c.find(t.Trace, other, "%s changed it, and it cannot run (%s)", ch.Writer, OddRows()[t.task.Odd-1])
		}
	}
	if t.Ending != nil || len(t.Runs) > 0 {
		c.find(t.Trace, other, "it has ended or was run, and it cannot run (%s)", OddRows()[t.task.Odd-1])
	}
}

// stays reports whether a task is of an event that nobody can run.
func (c *checker) stays(s *record.Trace) bool {
	t, err := taskOf(s)
	return err == nil && t.Odd > 0 && OddRows()[t.Odd-1].Fate == FateStays
}
