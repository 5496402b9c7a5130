package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"eventsv2/test/testenv"
)

// binaries is the folder of the built programs.
var binaries string

func TestMain(m *testing.M) {
	var err error
	if binaries, err = build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testenv.Main(m, func() { _ = os.RemoveAll(binaries) })
}

func build() (string, error) {
	dir, err := os.MkdirTemp("", "eventsv2-e2e-")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "eventsv2/cmd/...")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return dir, nil
}
