package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"eventsv2/test/testenv"
)

// binaries is the folder of the built programs.
var binaries string

func TestMain(m *testing.M) {
	var err error
	if binaries, err = install(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testenv.Main(m, func() { _ = os.RemoveAll(filepath.Dir(binaries)) })
}

// install installs the programs by the command of docs/quick-start.md: in a directory beside a link to the repository.
func install() (string, error) {
	dir, err := os.MkdirTemp("", "eventsv2-e2e-")
	if err != nil {
		return "", err
	}
	page, err := os.ReadFile("../../docs/quick-start.md")
	if err != nil {
		return "", err
	}
	repository, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	command := regexp.MustCompile(`(?m)^\$ (go .*install .*)$`).FindSubmatch(page)
	if command == nil {
		return "", errors.New("docs/quick-start.md installs no programs")
	}
	target := filepath.Join(dir, "target")
	err = errors.Join(os.Mkdir(target, 0o700), os.Symlink(repository, filepath.Join(dir, "eventsv2")),
		os.WriteFile(filepath.Join(target, "go.mod"), []byte("module target\n"), 0o600))
	if err != nil {
		return "", err
	}
	programs := filepath.Join(dir, "bin")
	cmd := exec.Command("sh", "-c", string(command[1]))
	cmd.Dir = target
	cmd.Env = append(os.Environ(), "GOBIN="+programs, "GOFLAGS=-buildvcs=false -ldflags=-s "+os.Getenv("GOFLAGS"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", command[1], err, out)
	}
	for _, name := range []string{"worker", "cron", "eventctl"} {
		if _, err := os.Stat(filepath.Join(programs, name)); err != nil {
			return "", fmt.Errorf("%s has not installed %s: %w", command[1], name, err)
		}
	}
	return programs, nil
}
