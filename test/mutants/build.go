package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// testLimit bounds the tests of a package with one mutant.
const testLimit = 5 * time.Minute

// builder makes and runs test binaries that have all mutants. It is safe for concurrent use.
type builder struct {
	root, module string
	dir          string // for the overlay and the binaries
	env          []string
	importers    map[string][]string // packages with tests, by the import path of what they import

	// Tests wait for much of their time, so more of them than builds go on at once.
	builds, tests slots
	until         time.Time // when the tests of the last mutants may begin; zero is no bound

	mu       sync.Mutex
	binaries map[string]func() (string, error) // by package
	passes   map[string]func() error           // by package and test, without a mutant
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

// newBuilder writes the mutants where the go command finds them, in a directory.
func newBuilder(ctx context.Context, root, dir string, env []string, parallel int, mutants []mutant) (*builder, error) {
	b := &builder{root: root, dir: dir, env: env, importers: map[string][]string{}, builds: make(slots, parallel), tests: make(slots, 2*parallel),
		binaries: map[string]func() (string, error){}, passes: map[string]func() error{}}
	texts, unfit, err := instrument(root, mutants)
	if err := errors.Join(unfit, err); err != nil {
		return nil, err
	}
	replace := map[string]string{}
	for name, text := range texts {
		changed := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("write a file with its mutants: %w", err)
		}
		replace[filepath.Join(root, name)] = changed
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(b.overlay(), text, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("write the overlay: %w", err)
	}
	return b, b.list(ctx)
}

func (b *builder) overlay() string { return filepath.Join(b.dir, "overlay.json") }

// list finds out which packages with tests import which others.
func (b *builder) list(ctx context.Context) error {
	const format = `{{.Module.Path}} {{.ImportPath}} {{if or .TestGoFiles .XTestGoFiles}}{{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}{{end}}`
	out, err := b.goCommand(ctx, "list", "-f", format, "./...")
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		words := strings.Fields(lines.Text())
		b.module = words[0]
		for _, imported := range words[2:] {
			if !slices.Contains(b.importers[imported], words[1]) {
				b.importers[imported] = append(b.importers[imported], words[1])
			}
		}
	}
	return nil
}

func (b *builder) goCommand(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	var said bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = b.root, b.env, &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s%s", args[0], err, said.String(), out)
	}
	return out, nil
}

// testsElsewhere are packages with no tests of their own part of the product that judge it nevertheless.
var testsElsewhere = []string{"test/outbox"}

// judges returns the packages whose tests may notice a mutant, nearest first: that of the file, and those that import
// it. All that have a database import the migrations.
func (b *builder) judges(m *mutant) []string {
	own := b.module + "/" + m.dir()
	near := slices.Concat([]string{own}, b.importers[own])
	if strings.HasPrefix(m.file, "migrations/") {
		near = slices.Concat([]string{b.module + "/eventqueue/pgstore", b.module + "/migrations"}, near, b.importers[b.module+"/test/testenv"])
	}
	var judges []string
	for _, pkg := range near {
		in := strings.TrimPrefix(pkg, b.module+"/")
		if (!strings.HasPrefix(in, "test/") || slices.Contains(testsElsewhere, in)) && !slices.Contains(judges, pkg) {
			judges = append(judges, pkg)
		}
	}
	return judges
}

// binary returns the program of a package's tests, with all mutants.
func (b *builder) binary(ctx context.Context, pkg string) (string, error) {
	b.mu.Lock()
	once, ok := b.binaries[pkg]
	if !ok {
		once = sync.OnceValues(func() (string, error) {
			defer b.builds.take()()
			file := filepath.Join(b.dir, strings.NewReplacer("/", "-", ".", "-").Replace(pkg)+".test")
			_, err := b.goCommand(ctx, "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", b.overlay(), "-o", file, pkg)
			return file, err
		})
		b.binaries[pkg] = once
	}
	b.mu.Unlock()
	return once()
}

// run runs tests of a package, all if test is empty, to the first failure, and returns what they printed. A failed
// test is no error, nor is a package without tests.
func (b *builder) run(ctx context.Context, pkg, test, mutant string) (string, error) {
	binary, err := b.binary(ctx, pkg)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(binary); errors.Is(err, os.ErrNotExist) {
		return "", nil // the package has no test files
	}
	defer b.tests.take()()
	if !b.until.IsZero() && time.Now().After(b.until) {
		return "", errTooLate
	}
	args := []string{"-test.v", "-test.failfast", "-test.shuffle=on", "-test.timeout=" + testLimit.String()}
	if test != "" {
		args = append(args, "-test.run=^("+test+")$")
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = filepath.Join(b.root, strings.TrimPrefix(pkg, b.module+"/"))
	cmd.Env = append(slices.Clip(b.env), selector+"="+mutant)
	out, err := cmd.CombinedOutput()
	if err != nil && (cmd.ProcessState == nil || cmd.ProcessState.ExitCode() < 0) {
		return string(out), fmt.Errorf("run the tests of %s: %w", pkg, err)
	}
	return string(out), nil
}

// passesUnchanged reports whether a test fails without a mutant: then it can tell nothing.
func (b *builder) passesUnchanged(ctx context.Context, pkg, test string) error {
	b.mu.Lock()
	once, ok := b.passes[pkg+" "+test]
	if !ok {
		once = sync.OnceValue(func() error {
			out, err := b.run(ctx, pkg, test, "")
			if err == nil && !passed(out, test) {
				err = fmt.Errorf("without a mutant %s of %s does not pass:\n%s", test, pkg, tail(out))
			}
			return err
		})
		b.passes[pkg+" "+test] = once
	}
	b.mu.Unlock()
	return once()
}
