package journal

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
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

// Start is the beginning of a run.
type Start struct {
	Event eventqueue.EventID
	// Attempt is the fence token. A handler that cannot know it gives each run a
	// negative number of its own.
	Attempt int32
	At      time.Time
	// Sum is Checksum of the value that the handler saw.
	Sum uint32
}

// End is the end of a run.
type End struct {
	Event   eventqueue.EventID
	Attempt int32
	At      time.Time
	Outcome Outcome
}

// Still is a span of time in which the process did not run, though it should.
type Still struct {
	From, To time.Time
}

// Checksum reports whether two values are the same.
func Checksum(value []byte) uint32 { return crc32.ChecksumIEEE(value) }

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

// Start notes the beginning of a run.
func (w *Writer) Start(s Start) error {
	return w.line("S %d %d %d %d\n", s.Event, s.Attempt, s.At.UnixNano(), s.Sum)
}

// End notes the end of a run.
func (w *Writer) End(e End) error {
	return w.line("E %d %d %d %s\n", e.Event, e.Attempt, e.At.UnixNano(), e.Outcome)
}

// Still notes that the process stood still.
func (w *Writer) Still(s Still) error {
	return w.line("P %d %d\n", s.From.UnixNano(), s.To.UnixNano())
}

func (w *Writer) line(format string, args ...any) error {
	if _, err := fmt.Fprintf(w.file, format, args...); err != nil {
		return fmt.Errorf("write to the journal: %w", err)
	}
	return nil
}

// Reader is told what stands in a journal, in the order of the file.
type Reader struct {
	Start func(Start)
	End   func(End)
	Still func(Still)
}

// Read reads a journal. A file that is missing is empty.
func (r Reader) Read(path string) (err error) {
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
		if err := r.line(lines.Text()); err != nil {
			return fmt.Errorf("%s:%d: %q: %w", path, n, lines.Text(), err)
		}
	}
	return lines.Err()
}

func (r Reader) line(text string) (err error) {
	kind, rest, _ := strings.Cut(text, " ")
	var event, a, b int64
	var attempt int32
	switch kind {
	case "S":
		var sum uint32
		_, err = fmt.Sscanf(rest, "%d %d %d %d", &event, &attempt, &a, &sum)
		if err == nil {
			r.Start(Start{eventqueue.EventID(event), attempt, time.Unix(0, a), sum})
		}
	case "E":
		var outcome string
		_, err = fmt.Sscanf(rest, "%d %d %d %s", &event, &attempt, &a, &outcome)
		if err == nil {
			r.End(End{eventqueue.EventID(event), attempt, time.Unix(0, a), Outcome(outcome)})
		}
	case "P":
		_, err = fmt.Sscanf(rest, "%d %d", &a, &b)
		if err == nil {
			r.Still(Still{time.Unix(0, a), time.Unix(0, b)})
		}
	default:
		err = errors.New("no such kind of line")
	}
	return err
}
