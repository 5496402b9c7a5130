package grid

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"

	"eventsv2/eventqueue"
)

const (
	// MaxFileBytes is the size of the largest definition that is read.
	MaxFileBytes = 1 << 20
	// MaxActions is how many actions a grid may have.
	MaxActions = 1000
)

// Module and Modifier are those of every event that starts a run; its name is
// that of the grid.
const (
	Module   = "GRID"
	Modifier = "_"
)

// Services are what actions may have injected, by the names that definitions
// use: clients, stores and the like, made by the program. They are shared by all
// runs, so they must be safe for concurrent use.
type Services map[string]any

// Grid is a definition that has been found to be right. It is safe for concurrent
// use.
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

func handlerOf(grid string) eventqueue.HandlerKey {
	return eventqueue.HandlerKey{Module: Module, Name: grid, Modifier: Modifier}
}

// Order lists the actions so that each comes after those that it takes from.
func (g *Grid) Order() []string {
	names := make([]string, len(g.steps))
	for i, s := range g.steps {
		names[i] = s.name
	}
	return names
}

// Load reads a definition from a file. The error is that of reading it, or all
// its mistakes; see Parse.
func Load(path string, actions *Actions, services Services) (*Grid, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the definition of a grid: %w", err)
	}
	return Parse(path, data, actions, services)
}

// Parse is Load for a text that has been read already; name stands for the path
// in messages. The error joins a *Problem for each mistake, in the order of their
// lines.
func Parse(name string, data []byte, actions *Actions, services Services) (*Grid, error) {
	c := &checker{file: name, actions: actions, services: services, steps: map[string]*step{}}
	g := c.grid(data)
	if err := c.err(); err != nil {
		return nil, err
	}
	return g, nil
}
