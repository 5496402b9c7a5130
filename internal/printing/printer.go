package printing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Printer writes the results and the messages of one run of a program. Messages may be
// written by several goroutines at once.
type Printer struct {
	program  string
	stdout   io.Writer
	stderr   io.Writer
	terminal bool // whether standard error is a terminal

	// JSON means that results and messages are written as JSON.
	JSON bool
}

// New makes the Printer of a program. Its messages begin with the program's name.
func New(program string, stdout, stderr io.Writer) *Printer {
	return &Printer{program: program, stdout: stdout, stderr: &lockedWriter{w: stderr}, terminal: isTerminal(stderr)}
}

// Result writes the result of a command to standard output: doc as one JSON document, or the
// text that human writes.
func (p *Printer) Result(doc any, human func(w io.Writer)) error {
	var text bytes.Buffer
	if p.JSON {
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(doc); err != nil {
			return fmt.Errorf("write the result as JSON: %w", err)
		}
		text = *bytes.NewBuffer(PrintableJSON(text.Bytes()))
	} else {
		human(&text)
	}
	if _, err := p.stdout.Write(text.Bytes()); err != nil {
		return fmt.Errorf("the command has done its work, but its result cannot be written to standard output: %w", err)
	}
	return nil
}

// Error writes an error to standard error.
func (p *Printer) Error(err error) { p.message("error", "", err) }

// Warning writes a warning to standard error.
func (p *Printer) Warning(err error) { p.message("warning", "warning: ", err) }

func (p *Printer) message(key, prefix string, err error) {
	if p.JSON {
		text, _ := json.Marshal(map[string]string{key: err.Error()}) // a string always becomes JSON
		_, _ = p.stderr.Write(append(PrintableJSON(text), '\n'))     // an error here cannot be reported
		return
	}
	_, _ = fmt.Fprintf(p.stderr, "%s: %s%s\n", p.program, prefix, PrintableLines(err.Error()))
}

// Stderr is standard error, safe for concurrent use.
func (p *Printer) Stderr() io.Writer { return p.stderr }

// lockedWriter prevents the lines of several goroutines from mixing.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
