package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// How long the tests of one judge may take, on a machine that has better things
// to do.
const testLimit = 100 * time.Second

// builder makes and runs test binaries. It is safe for concurrent use when the
// names of binaries differ.
type builder struct {
	root string // of the module
	dir  string // for overlays and binaries
	env  []string
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

// overlay writes the changed file of a mutant, and the file for -overlay that
// puts it in the place of the real one.
func (b builder) overlay(m *mutant) (string, error) {
	text, err := m.apply(b.root)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(b.dir, m.name+filepath.Ext(m.file))
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("write the mutant %s: %w", m.name, err)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(b.root, m.file): changed}})
	if err != nil {
		return "", fmt.Errorf("write the overlay of %s: %w", m.name, err)
	}
	path := filepath.Join(b.dir, m.name+".json")
	if err := os.WriteFile(path, replace, 0o600); err != nil {
		return "", fmt.Errorf("write the overlay of %s: %w", m.name, err)
	}
	return path, nil
}

// build makes the test binary of a package, with an overlay unless it is empty.
// The error holds what the compiler said.
func (b builder) build(ctx context.Context, pkg, overlay, name string) (binary string, err error) {
	binary = filepath.Join(b.dir, name+".test")
	args := []string{"test", "-c", "-ldflags=-s -w", "-o", binary}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Dir, cmd.Env = b.root, b.env
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the tests of %s: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

// test runs some tests of a binary to the first failure and returns what they
// printed. A failed test is no error.
func (b builder) test(ctx context.Context, binary string, j judge) (string, error) {
	cmd := exec.CommandContext(ctx, binary, "-test.v", "-test.failfast", "-test.shuffle=on", "-test.timeout="+testLimit.String(),
		"-test.run=^("+strings.Join(j.tests, "|")+")$")
	cmd.Dir, cmd.Env = filepath.Join(b.root, j.pkg), b.env
	out, err := cmd.CombinedOutput()
	if err != nil && (cmd.ProcessState == nil || cmd.ProcessState.ExitCode() < 0) {
		return string(out), fmt.Errorf("run the tests of %s: %w", j.pkg, err)
	}
	return string(out), nil
}
