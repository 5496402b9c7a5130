package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"sync"

	"eventsv2/cronchecker"
)

// listener reads the notes of the library process.
type listener struct {
	ledger *ledger

	mu         sync.Mutex
	heard      bool
	goroutines float64
	heap       float64
}

// listen reads until the end of the notes. What it cannot read, it leaves out:
// the ledger will miss it.
func (l *listener) listen(from io.Reader) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case noteDone:
			of, value, _ := strings.Cut(rest, " ")
			if of == cronchecker.Module {
				_ = l.ledger.ticked([]byte(value)) // the ledger remembers what is wrong
			} else {
				_ = l.ledger.ran([]byte(value))
			}
		case noteStats:
			l.stats(rest)
		}
	}
	// A line that is too long must not stop the process from writing.
	_, _ = io.Copy(io.Discard, from)
}

func (l *listener) stats(text string) {
	var goroutines, heap float64
	if _, err := fmt.Sscan(text, &goroutines, &heap); err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard, l.goroutines, l.heap = true, goroutines, heap
}

// last returns the last measurement, if there is one.
func (l *listener) last() (goroutines, heap float64, heard bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.goroutines, l.heap, l.heard
}
