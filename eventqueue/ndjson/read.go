package ndjson

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"eventsv2/eventqueue"
)

// Read reads events from r to its end and calls yield for each, in order. name is
// the name of the file in messages; limits are the queue's, for the events.
// It returns an *Error for the first wrong line, the error of yield unchanged, or
// the wrapped error of r. It blocks as r and yield do.
func Read(r io.Reader, name string, limits eventqueue.Limits, yield func(line int, e eventqueue.NewEvent) error) error {
	if err := limits.Validate(); err != nil {
		return fmt.Errorf("read events from %s: %w", name, err)
	}
	lines := lineReader{r: bufio.NewReaderSize(r, 64<<10), limit: lineLimit(limits)}
	for number := 1; ; number++ {
		text, err := lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errLongLine):
			return &Error{Name: name, Line: number, Problem: fmt.Sprintf(
				"is longer than %d bytes: put one event on each line, and keep large data elsewhere", lines.limit)}
		case err != nil:
			return fmt.Errorf("%s:%d: read: %w", name, number, err)
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		event, problem := parse(text, limits, time.Now())
		if problem != nil {
			problem.Name, problem.Line = name, number
			return problem
		}
		if err := yield(number, event); err != nil {
			return err
		}
	}
}

// lineLimit is the length of the longest line. It leaves room for names and blanks,
// and for a value that is a little too large: the message about values helps more
// than that about lines.
func lineLimit(limits eventqueue.Limits) int {
	const values, rest = 1 << 20, 64 << 10
	return max(limits.MaxValueBytes, values) + rest
}

// errLongLine is returned by lineReader.next.
var errLongLine = errors.New("the line is too long")

// lineReader cuts a text into lines of bounded length.
type lineReader struct {
	r     *bufio.Reader
	limit int
	line  []byte // reused
}

// next returns the next line with its newline, valid until the next call. At the end
// of the text it returns io.EOF and no line.
func (l *lineReader) next() ([]byte, error) {
	l.line = l.line[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if len(l.line)+len(part) > l.limit {
			return nil, errLongLine
		}
		l.line = append(l.line, part...)
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(l.line) > 0:
			return l.line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
