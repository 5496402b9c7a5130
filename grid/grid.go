package grid

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"

	"eventsv2/eventqueue"
)

// Services are the values that can be injected into actions, by the names that
// definitions use: clients, stores and the like, which the program makes. All runs share
// them, so they must be safe for concurrent use.
type Services map[string]any

// Grid is a valid definition. It is safe for concurrent use.
type Grid struct {
	name   string
	canvas eventqueue.CanvasID
	file   string
	steps  []*step // each comes after the steps whose outputs it takes
}

// step is an action of a grid.
type step struct {
	name     string
	uses     *goAction
	inputs   []source          // as uses.inputs
	params   []json.RawMessage // as uses.params; nil if left out
	services []reflect.Value   // as uses.services; the zero Value if left out
	takes    []edge            // in the order of the file

	fingerprint [32]byte
	// Parts of the identity, beside inputs and params.
	serviceNames map[string]string
}

// source is the origin of one input.
type source struct {
	origin  Origin // "" if left out
	from    *step
	literal json.RawMessage
}

// edge is an input that comes from another action.
type edge struct {
	from  *step
	input string
	line  int
}

// Name returns the name of the grid, which is also the name of its events.
func (g *Grid) Name() string { return g.name }

// Canvas returns the only canvas that the grid is for; zero means every canvas.
func (g *Grid) Canvas() eventqueue.CanvasID { return g.canvas }

// Handler returns the key of the handler that runs the grid.
func (g *Grid) Handler() eventqueue.HandlerKey { return handlerOf(g.name) }

// Order lists the actions so that each comes after those whose outputs it takes.
func (g *Grid) Order() []string {
	names := make([]string, len(g.steps))
	for i, s := range g.steps {
		names[i] = s.name
	}
	return names
}

// identity returns the hash of everything that the output of a step depends on. That
// includes the identities of the steps whose outputs it takes, which are known already.
func (s *step) identity() [32]byte {
	type input struct {
		Origin  Origin
		From    []byte          `json:",omitempty"`
		Literal json.RawMessage `json:",omitempty"`
	}
	inputs, params := map[string]input{}, map[string]json.RawMessage{}
	for i, slot := range s.uses.inputs {
		in := input{Origin: s.inputs[i].origin, Literal: s.inputs[i].literal}
		if from := s.inputs[i].from; from != nil {
			in.From = from.fingerprint[:]
		}
		if in.Origin != "" {
			inputs[slot.name] = in
		}
	}
	for i, slot := range s.uses.params {
		if s.params[i] != nil {
			params[slot.name] = s.params[i]
		}
	}
	text, err := json.Marshal([]any{s.uses.name, s.uses.version, s.uses.out.String(), s.serviceNames, params, inputs})
	if err != nil {
		panic(fmt.Sprintf("grid: texts and literals do not become JSON: %v", err))
	}
	return sha256.Sum256(text)
}
