package hostile_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"eventsv2/grid"
	"eventsv2/test/programs"
	"eventsv2/test/testenv"
)

// binaries is the folder of the built programs.
var binaries string

// gridVariable has the path of a grid for readGrid: grids are read by programs that embed the library, so this binary is one.
const gridVariable = "HOSTILE_GRID"

func TestMain(m *testing.M) {
	if path := os.Getenv(gridVariable); path != "" {
		os.Exit(readGrid(path))
	}
	dir, err := os.MkdirTemp("", "eventsv2-hostile-")
	if err == nil {
		binaries = dir
		err = programs.Build(context.Background(), dir, programs.Deployed(programs.Worker, programs.Ctl))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testenv.Main(m, func() { _ = os.RemoveAll(dir) })
}

// readGrid does what a program does that cannot start without its grid.
func readGrid(path string) (status int) {
	if _, err := grid.Load(path, grid.NewActions(), nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
