package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"os"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/ndjson"
)

//go:embed sample.ndjson
var sample []byte

// sampleName stands for the file in messages.
const sampleName = "the built-in sample"

// input is the set of events to emit.
type input struct {
	name   string
	events []eventqueue.NewEvent
	// refusals means that the target refuses for good the events that are marked so.
	refusals bool
}

// loadInput reads a file to its end, or the built-in sample when path is empty.
func loadInput(path string) (*input, error) {
	if path == "" {
		in, err := readInput(bytes.NewReader(sample), sampleName)
		if err == nil {
			in.refusals = true
		}
		return in, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the input: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	return readInput(file, path)
}

func readInput(r io.Reader, name string) (*input, error) {
	in := &input{name: name}
	err := ndjson.Read(r, name, eventqueue.Limits{}, func(line int, e eventqueue.NewEvent) error {
		if e.Delay != 0 || !e.DelayUntil.IsZero() {
			return &ndjson.Error{Name: name, Line: line, Field: "delay",
				Problem: "the demo runs everything at once: leave delay and delay_until out"}
		}
		in.events = append(in.events, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(in.events) == 0 {
		return nil, fmt.Errorf("%s holds no event: write one JSON object on each line", name)
	}
	return in, nil
}

// handlers are the distinct handlers of the events, in the order of their first
// event.
func (in *input) handlers() []eventqueue.HandlerKey {
	seen := make(map[eventqueue.HandlerKey]bool)
	var keys []eventqueue.HandlerKey
	for _, e := range in.events {
		if key := e.Handler(); !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	return keys
}

func (in *input) canvases() int {
	seen := make(map[eventqueue.CanvasID]bool)
	for _, e := range in.events {
		seen[e.Canvas] = true
	}
	return len(seen)
}

// split cuts the input into the events that are emitted while a handler is paused and those
// that are emitted around the crash. The second part is empty only for a single event.
func (in *input) split() (first, rest []eventqueue.NewEvent) {
	at := (len(in.events) + 1) / 2
	return in.events[:at], in.events[at:]
}

// scopeOf returns the scope of a rule for the event.
func scopeOf(e eventqueue.NewEvent) eventqueue.Scope {
	return eventqueue.Scope{Canvas: e.Canvas, Module: e.Module, Name: e.Name}
}

// busiestScope is the handler on one canvas with the most events; the first of
// equals.
func busiestScope(events []eventqueue.NewEvent) (busiest eventqueue.Scope, count int) {
	counts := make(map[eventqueue.Scope]int)
	for _, e := range events {
		counts[scopeOf(e)]++
	}
	for _, e := range events {
		if n := counts[scopeOf(e)]; n > count {
			busiest, count = scopeOf(e), n
		}
	}
	return busiest, count
}
