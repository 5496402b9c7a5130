package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// How long the tests of one judge may take, on a machine that has better things
// to do.
const testLimit = 100 * time.Second

// unchangedLimit bounds the same tests without a mutant, those of all packages at once. They have to
// pass, however slow the machine is.
const unchangedLimit = 10 * time.Minute

// builder makes and runs test binaries. It is safe for concurrent use when the
// names of binaries differ.
type builder struct {
	root string // of the module
	dir  string // for overlays and binaries
	env  []string

	programs *programs
	bundles  *bundles
	// Tests wait for much of their time, so more of them than builds go on at once.
	builds, tests slots
	// until is when the tests of the last mutants may begin; zero is no bound.
	until time.Time
}

// errTooLate is returned for tests that were not begun because the time of a sample was over.
var errTooLate = errors.New("the time of the sample was over")

// slots bound how much goes on at once.
type slots chan struct{}

// take waits for a slot and returns the function that gives it back.
func (s slots) take() func() {
	s <- struct{}{}
	return func() { <-s }
}

// moduleRoot is the directory of go.mod.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("ask go for the root of the module: %w", err)
	}
	file := strings.TrimSpace(string(out))
	if filepath.Base(file) != "go.mod" {
		return "", fmt.Errorf("this is not in a module: run it in the checkout")
	}
	return filepath.Dir(file), nil
}

// testBinary is the program of a package's tests.
type testBinary struct {
	file string
	// selects is the mutant of a bundle that it is to be run with, of which there are others.
	selects string
}

// remove deletes a program that nobody else needs.
func (t testBinary) remove() error {
	if t.selects != "" {
		return nil
	}
	return os.Remove(t.file)
}

// unchanged makes the test binary of a package without a mutant, in the way in which
// those of mutants are made, so that judges are tried on what they will judge.
func (b builder) unchanged(ctx context.Context, pkg, name string) (testBinary, error) {
	p, err := b.programs.of(ctx, b, pkg)
	if err != nil {
		return testBinary{}, err
	}
	defer b.builds.take()()
	file, err := b.link(ctx, p, name, "", "")
	return testBinary{file: file}, err
}

// build makes the test binary of a package with a mutant. The error holds what the
// compiler said.
func (b builder) build(ctx context.Context, pkg string, m *mutant, text, name string) (testBinary, error) {
	if file, ok := b.bundles.with(ctx, b, pkg, m); ok {
		return testBinary{file, m.name}, nil
	}
	file, err := b.buildAlone(ctx, pkg, m, text, name)
	return testBinary{file: file}, err
}

func (b builder) buildAlone(ctx context.Context, pkg string, m *mutant, text, name string) (binary string, err error) {
	p, err := b.programs.of(ctx, b, pkg)
	if err != nil {
		return "", err
	}
	defer b.builds.take()()
	if binary, err := b.relink(ctx, p, m, text, name); err == nil {
		return binary, nil
	}
	return b.buildAnew(ctx, pkg, m, text, name)
}

// buildAnew has the go command compile all that imports the changed package.
func (b builder) buildAnew(ctx context.Context, pkg string, m *mutant, text, name string) (binary string, err error) {
	changed := filepath.Join(b.dir, name+filepath.Ext(m.file))
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("write the mutant %s: %w", m.name, err)
	}
	overlay := filepath.Join(b.dir, name+".json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(b.root, m.file): changed}})
	if err != nil {
		return "", fmt.Errorf("write the overlay of %s: %w", m.name, err)
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		return "", fmt.Errorf("write the overlay of %s: %w", m.name, err)
	}
	binary = filepath.Join(b.dir, name+".test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, pkg)
	cmd.Dir, cmd.Env = b.root, b.env
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the tests of %s: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

// test runs some tests of a binary to the first failure, within a limit, and returns what they
// printed. A failed test is no error.
func (b builder) test(ctx context.Context, binary testBinary, j judge, limit time.Duration) (string, error) {
	defer b.tests.take()()
	if !b.until.IsZero() && time.Now().After(b.until) {
		return "", errTooLate
	}
	cmd := exec.CommandContext(ctx, binary.file, "-test.v", "-test.failfast", "-test.shuffle=on", "-test.timeout="+limit.String(),
		"-test.run=^("+strings.Join(j.tests, "|")+")$")
	cmd.Dir, cmd.Env = filepath.Join(b.root, j.pkg), append(slices.Clip(b.env), selector+"="+binary.selects)
	out, err := cmd.CombinedOutput()
	if err != nil && (cmd.ProcessState == nil || cmd.ProcessState.ExitCode() < 0) {
		return string(out), fmt.Errorf("run the tests of %s: %w", j.pkg, err)
	}
	return string(out), nil
}
