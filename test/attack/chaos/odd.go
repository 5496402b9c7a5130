package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
)

// fate is what becomes of a row that somebody wrote by hand.
type fate int

const (
	fateRuns    fate = iota // its event runs like any other
	fateStays               // nobody can run it, and nobody may change it
	fateRefused             // the table does not take it
)

// oddRow is a row that differs in one column from what the queue writes.
type oddRow struct {
	column, value string // SQL
	fate          fate
}

// String is the row in a report.
func (r oddRow) String() string { return r.column + " = " + r.value }

func oddRows() []oddRow {
	return []oddRow{
		{"delay_until", "'4713-01-01 BC'", fateRuns},
		{"enqueued_at", "'4713-01-01 BC'", fateRuns},
		{"enqueued_at", "'9999-01-01'", fateRuns},
		{"id", "4611686018427387904 + nextval('events_id_seq')", fateRuns}, // no sequence comes so far
		{"attempts", "999999900", fateRuns},
		{"retries", "8", fateRuns}, // task.MaxRetries: one run is left
		{"locked_at", "clock_timestamp() - interval '1 day'", fateRuns},
		{"delay_until", "'3000-01-01'", fateStays},
		{"modifier", "''", fateStays}, // no program has a handler for it
		{"attempts", "1000000000", fateStays},
		{"locked_at", "'2999-01-01'", fateStays},
		{"id", "-nextval('events_id_seq')", fateRefused},
		{"modifier", "NULL", fateRefused},
		{"value", "NULL", fateRefused},
		{"delay_until", "'infinity'", fateRefused},
		{"locked_at", "'infinity'", fateRefused},
		{"attempts", "1000000001", fateRefused},
		{"retries", "-1", fateRefused},
	}
}

// insertSQL writes the row as one of a list of parameters: canvas, module, name, value.
func (r oddRow) insertSQL() string {
	columns := []string{"canvas_id", "module", "name", "modifier", "id", "delay_until", "enqueued_at", "locked_at", "attempts", "retries", "value"}
	values := []string{"$1", "$2", "$3", "'_'", "nextval('events_id_seq')", "now()", "now()", "NULL", "0", "0", "CASE WHEN $5 THEN $4 END"}
	for i, column := range columns {
		if column == r.column && column != "value" {
			values[i] = r.value
		}
	}
	return fmt.Sprintf("INSERT INTO events_v2 (%s) VALUES (%s)", strings.Join(columns, ", "), strings.Join(values, ", "))
}

// insertOdd does what a program does that writes the table by hand and makes a mistake.
func insertOdd(ctx context.Context, e *emitters, events []eventqueue.NewEvent) error {
	for _, event := range events {
		t := taskOf(event)
		row := oddRows()[t.Odd-1]
		_, err := e.pool.Exec(ctx, row.insertSQL(), [16]byte(event.Canvas), event.Module, event.Name, string(event.Value), row.column != "value")
		var broken *pgconn.PgError
		switch constraint := errors.As(err, &broken) && strings.HasPrefix(broken.Code, "23"); {
		case err != nil && !constraint:
			return err
		case row.fate == fateRefused:
			return errUndo // which the checker holds it to, also when the table took it
		}
	}
	return nil // so that one that the table should have taken is lost if it did not
}

// untouched checks an event that nobody can run: it stays as it was written.
func (c *checker) untouched(t *trial) {
	c.result.figures.untouched++
	for i := range t.changes {
		switch ch := &t.changes[i]; {
		case ch.op == opInsert:
		case ch.op == opDelete:
			c.find(t.story, lost, "%s deleted it, and it cannot run (%s)", ch.writer, oddRows()[t.task.Odd-1])
		case ch.rewritten || ch.old != ch.new:
			c.find(t.story, other, "%s changed it, and it cannot run (%s)", ch.writer, oddRows()[t.task.Odd-1])
		}
	}
	if t.ending != nil || len(t.runs) > 0 {
		c.find(t.story, other, "it has ended or was run, and it cannot run (%s)", oddRows()[t.task.Odd-1])
	}
}

// stays reports whether a task is of an event that nobody can run.
func (c *checker) stays(s *story) bool {
	t, err := s.task()
	return err == nil && t.Odd > 0 && oddRows()[t.Odd-1].fate == fateStays
}
