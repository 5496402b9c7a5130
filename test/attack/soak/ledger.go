package main

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"eventsv2/cronchecker"
)

// ledger is what the soak knows without the queue: which events were accepted,
// and which were done. It takes two bits per event, so that a week fits into
// memory. It is safe for concurrent use.
type ledger struct {
	mu       sync.Mutex
	next     int64 // the next serial number
	accepted bits
	ran      bits
	ticks    map[time.Time]bool // the cron slots that were done
	again    int                // runs of what had been done before
	wrong    []string           // values that nobody emitted
	refused  int                // calls of emit that failed
}

func newLedger() *ledger { return &ledger{ticks: map[time.Time]bool{}} }

// bits is a set of numbers from 0.
type bits []uint64

func (b bits) has(n int64) bool {
	word := n / 64
	return word < int64(len(b)) && b[word]&(1<<(n%64)) != 0
}

func (b *bits) add(n int64) {
	for n/64 >= int64(len(*b)) {
		*b = append(*b, 0)
	}
	(*b)[n/64] |= 1 << (n % 64)
}

// issue hands out serial numbers, the first of which it returns.
func (l *ledger) issue(count int) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.next
	l.next += int64(count)
	return first
}

// emitted records what became of a call that emitted events with serial numbers
// from first on. One that failed may have emitted them or not.
func (l *ledger) emitted(first int64, count int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.refused++
		return
	}
	for n := first; n < first+int64(count); n++ {
		l.accepted.add(n)
	}
}

// done records that a handler has done an event of some module. It refuses a value that was never
// emitted.
func (l *ledger) done(of string, value []byte) error {
	if of == cronchecker.Module {
		return l.ticked(value)
	}
	serial, err := serialOf(value)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && serial >= l.next {
		err = fmt.Errorf("serial number %d was never emitted", serial)
	}
	if err != nil {
		l.wrong = append(l.wrong, err.Error())
		return err
	}
	if l.ran.has(serial) {
		l.again++
	}
	l.ran.add(serial)
	return nil
}

// ticked records that a handler has done a cron event.
func (l *ledger) ticked(value []byte) error {
	var tick struct {
		Slot time.Time `json:"slot"`
	}
	err := json.Unmarshal(value, &tick)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.wrong = append(l.wrong, fmt.Sprintf("the value %q of a cron event: %v", value, err))
		return err
	}
	if l.ticks[tick.Slot.UTC()] {
		l.again++
	}
	l.ticks[tick.Slot.UTC()] = true
	return nil
}

// account is the sum of a ledger.
type account struct {
	accepted int
	lost     []string // what was accepted and never done, at most maxNamed of them
	losses   int
	again    int
	wrong    []string
	refused  int
	unsure   int // events of failed calls, which ran all the same
	ticks    int
}

// maxNamed is how many lost events are named.
const maxNamed = 20

// balance compares what was accepted with what was done. slots are the cron slots
// that had to be done. A wrong value counts as a loss: what was emitted has not
// reached its handler.
func (l *ledger) balance(slots []time.Time) account {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := account{again: l.again, wrong: l.wrong, refused: l.refused, ticks: len(l.ticks)}
	lose := func(format string, args ...any) {
		if a.losses++; a.losses <= maxNamed {
			a.lost = append(a.lost, fmt.Sprintf(format, args...))
		}
	}
	for n := range l.next {
		switch accepted, done := l.accepted.has(n), l.ran.has(n); {
		case accepted && !done:
			a.accepted++
			lose("the event with serial number %d was accepted and never done", n)
		case accepted:
			a.accepted++
		case done:
			a.unsure++
		}
	}
	for _, slot := range slots {
		if !l.ticks[slot.UTC()] {
			lose("the cron slot %s was never done", slot.UTC().Format(time.RFC3339))
		}
	}
	for _, problem := range l.wrong {
		lose("%s", problem)
	}
	return a
}

// progress is how many events were accepted and done so far, for the reader of
// the log.
func (l *ledger) progress() (issued int64, refused, again int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next, l.refused, l.again
}

// allTicked reports whether every one of these slots was done.
func (l *ledger) allTicked(slots []time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, slot := range slots {
		if !l.ticks[slot.UTC()] {
			return false
		}
	}
	return true
}
