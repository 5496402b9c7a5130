package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"eventsv2/eventqueue"
)

// Outcome is how a run ended.
type Outcome string

// The outcomes.
const (
	OK        Outcome = "ok"        // the handler returned nil
	Failed    Outcome = "failed"    // an error, on purpose or not
	Panicked  Outcome = "panicked"  // a panic, on purpose
	Permanent Outcome = "permanent" // an error for good
	Snoozed   Outcome = "snoozed"
	Cancelled Outcome = "cancelled" // its context ended
)

// Kind is what a line records.
type Kind string

// The kinds.
const (
	Start      Kind = "start"      // the beginning of a run
	End        Kind = "end"        // the end of a run
	Standstill Kind = "standstill" // a span of time in which the process did not run, though it should
)

// Line is one line of a journal.
type Line struct {
	Kind  Kind               `json:"kind"`
	Event eventqueue.EventID `json:"event,omitempty"`
	// Attempt is the fence token. A handler that cannot know it gives each run a
	// negative number of its own.
	Attempt int32     `json:"attempt,omitempty"`
	At      time.Time `json:"at"`
	// Sum is record.Checksum of the value that the handler saw at the start.
	Sum     uint32    `json:"sum,omitempty"`
	Outcome Outcome   `json:"outcome,omitempty"` // of the end
	Until   time.Time `json:"until,omitzero"`    // the end of a standstill
}

// Writer appends to a journal. It is safe for concurrent use.
type Writer struct{ file *os.File }

// Open opens a journal for appending and makes it if it is missing.
func Open(path string) (*Writer, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	return &Writer{file}, nil
}

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }

// Write appends a line.
func (w *Writer) Write(l Line) error {
	text, err := json.Marshal(l)
	if err == nil {
		_, err = w.file.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write to the journal: %w", err)
	}
	return nil
}

// Read reads the lines of a journal in their order. A file that is missing is empty.
func Read(path string, each func(Line)) (err error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read a journal: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		var l Line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return fmt.Errorf("%s:%d: %q: %w", path, n, lines.Text(), err)
		}
		each(l)
	}
	return lines.Err()
}
