package grid

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"

	"eventsv2/eventqueue"
)

// Services are what actions may have injected, by the names that definitions
// use: clients, stores and the like, made by the program. They are shared by all
// runs, so they must be safe for concurrent use.
type Services map[string]any

// Grid is a valid definition. It is safe for concurrent use.
type Grid struct {
	name   string
	canvas eventqueue.CanvasID
	file   string
	steps  []*step // each comes after those that it takes from
}

// step is an action of a grid.
type step struct {
	name     string
	uses     *goAction
	inputs   []source          // as uses.inputs
	params   []json.RawMessage // as uses.params; nil is left out
	services []reflect.Value   // as uses.services; the zero Value is left out
	takes    []edge            // in the order of the file

	fingerprint [32]byte
	// What the fingerprint is made of, beside inputs and params.
	serviceNames map[string]string
}

// source is where an input comes from.
type source struct {
	origin  Origin // "" is left out
	from    *step
	literal json.RawMessage
}

// edge is an input that comes from another action.
type edge struct {
	from  *step
	input string
	line  int
}

// Name is the name of the grid, and of its events.
func (g *Grid) Name() string { return g.name }

// Canvas is the only canvas that the grid is for; zero means every canvas.
func (g *Grid) Canvas() eventqueue.CanvasID { return g.canvas }

// Handler is the key of the handler that runs the grid.
func (g *Grid) Handler() eventqueue.HandlerKey { return handlerOf(g.name) }

// Order lists the actions so that each comes after those that it takes from.
func (g *Grid) Order() []string {
	names := make([]string, len(g.steps))
	for i, s := range g.steps {
		names[i] = s.name
	}
	return names
}

// identity is the hash of what the output of a step depends on, the definitions
// of those that it takes from included. Their identities are known already.
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
