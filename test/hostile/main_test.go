package hostile_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"eventsv2/test/programs"
	"eventsv2/test/testenv"
)

// binaries is the folder of the built programs.
var binaries string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "eventsv2-hostile-")
	if err == nil {
		binaries = dir
		err = programs.Build(context.Background(), dir, programs.Deployed(programs.Worker))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testenv.Main(m, func() { _ = os.RemoveAll(dir) })
}
