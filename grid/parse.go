package grid

import (
	"fmt"
	"os"
)

// Load reads a definition from a file. The error is from reading the file, or joins
// all mistakes in it; see Parse.
func Load(path string, actions *Actions, services Services) (*Grid, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the definition of a grid: %w", err)
	}
	return Parse(path, data, actions, services)
}

// Parse is Load for a text that has been read already; messages show name as its path.
// The error joins a *Problem for each mistake, in the order of the lines.
func Parse(name string, data []byte, actions *Actions, services Services) (*Grid, error) {
	c := &checker{literals: literals{problems: &problems{file: name}}, actions: actions, services: services, steps: map[string]*step{}}
	g := c.grid(data)
	if err := c.err(); err != nil {
		return nil, err
	}
	return g, nil
}
