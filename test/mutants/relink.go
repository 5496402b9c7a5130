package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// A mutant changes one package, and mostly nothing that other packages see of it. The go
// command compiles whatever imports it again all the same, which takes three times as long
// as the package and the linking. So the package alone is compiled here, and linked with
// what the go command has compiled without the mutant. The linker refuses that when the
// package looks different from outside than it did to those who import it (its fingerprint
// is in their object files): then the go command has to do it.

// compiled is a package as the go command has compiled it.
type compiled struct {
	ImportPath    string
	Name          string
	Dir           string
	GoFiles       []string
	EmbedFiles    []string
	EmbedPatterns []string
	Imports       []string
	ImportMap     map[string]string // of variants for a test
	Export        string            // its object file
	Standard      bool
	Module        *struct{ GoVersion string }
}

// path is the import path without the mark of a variant for a test.
func (c *compiled) path() string {
	p, _, _ := strings.Cut(c.ImportPath, " ")
	return p
}

// program is a test binary's main package, and all that is linked with it, by path.
type program struct {
	main *compiled
	with map[string]*compiled
}

// programs are those of the judges' packages, compiled at their first use.
type programs struct {
	mu sync.Mutex
	by map[string]func() (*program, error)
}

func (all *programs) of(ctx context.Context, b builder, pkg string) (*program, error) {
	all.mu.Lock()
	once, ok := all.by[pkg]
	if !ok {
		once = sync.OnceValues(func() (*program, error) {
			defer b.builds.take()()
			return b.listProgram(ctx, pkg)
		})
		all.by[pkg] = once
	}
	all.mu.Unlock()
	return once()
}

// listProgram has the go command compile the tests of a package.
func (b builder) listProgram(ctx context.Context, pkg string) (*program, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-test",
		"-json=ImportPath,Name,Dir,GoFiles,EmbedFiles,EmbedPatterns,Imports,ImportMap,Export,Standard,Module", pkg)
	cmd.Dir, cmd.Env = b.root, b.env
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("compile the tests of %s: %w\n%s", pkg, err, said.String())
	}
	all := map[string]*compiled{}
	p := &program{with: map[string]*compiled{}}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		c := &compiled{}
		if err := decoder.Decode(c); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read what go list says of %s: %w", pkg, err)
		}
		all[c.ImportPath] = c
		if c.Name == "main" && strings.HasSuffix(c.ImportPath, ".test") {
			p.main = c
		}
	}
	if p.main == nil {
		return nil, fmt.Errorf("go list names no test binary of %s", pkg)
	}
	p.add(all, p.main)
	return p, nil
}

// linked is what a program has that nobody imports.
var linked = []string{"runtime", "runtime/cgo"}

// add adds what a package imports.
func (p *program) add(all map[string]*compiled, of *compiled) {
	for _, name := range slices.Concat(linked, of.Imports) {
		if variant, ok := of.ImportMap[name]; ok {
			name = variant
		}
		c := all[name]
		if c == nil || c.Export == "" || p.with[c.path()] != nil { // of which unsafe and C are no packages
			continue
		}
		p.with[c.path()] = c
		p.add(all, c)
	}
}

// importConfig writes the file that tells compiler and linker where packages are, with
// another object file for one of them unless that is empty.
func (p *program) importConfig(file, changed, object string) error {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.with)) {
		from := p.with[name].Export
		if name == changed {
			from = object
		}
		fmt.Fprintf(&text, "packagefile %s=%s\n", name, from)
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("write where the packages are: %w", err)
	}
	return nil
}

// link makes a test binary, of what the go command has compiled but for one package,
// unless its path is empty.
func (b builder) link(ctx context.Context, p *program, name, changed, object string) (binary string, err error) {
	config := filepath.Join(b.dir, name+".link")
	if err := p.importConfig(config, changed, object); err != nil {
		return "", err
	}
	binary = filepath.Join(b.dir, name+".test")
	return binary, b.tool(ctx, "link", "-o", binary, "-importcfg", config, "-buildmode=exe", "-s", "-w",
		"-X=testing.testBinary=1", p.main.Export)
}

// relink makes a test binary with a changed file in one of its packages.
func (b builder) relink(ctx context.Context, p *program, m *mutant, text, name string) (binary string, err error) {
	file := filepath.Join(b.root, m.file)
	var c *compiled
	for _, of := range p.with {
		if of.Dir == filepath.Dir(file) && !strings.HasSuffix(of.path(), "_test") {
			c = of
		}
	}
	if c == nil || c.Module == nil {
		return "", fmt.Errorf("%s is in no package of the tests", m.file)
	}
	replaced := filepath.Join(b.dir, m.name+".relinked"+filepath.Ext(m.file))
	if err := os.WriteFile(replaced, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("write the mutant %s: %w", m.name, err)
	}
	in := func(name string) string {
		if at := filepath.Join(c.Dir, name); at != file {
			return at
		}
		return replaced
	}
	config, object := filepath.Join(b.dir, name+".compile"), filepath.Join(b.dir, name+".a")
	if err := p.importConfig(config, "", ""); err != nil {
		return "", err
	}
	arguments := []string{"compile", "-o", object, "-p", c.path(), "-lang=" + version.Lang("go"+c.Module.GoVersion), "-complete",
		"-pack", fmt.Sprintf("-c=%d", min(runtime.NumCPU(), 4)), "-nolocalimports", "-importcfg", config, "-trimpath", replaced + "=>" + file}
	if len(c.EmbedFiles) > 0 {
		embed := filepath.Join(b.dir, name+".embed")
		if err := embedConfig(embed, c, in); err != nil {
			return "", err
		}
		arguments = append(arguments, "-embedcfg", embed)
	}
	for _, name := range c.GoFiles {
		arguments = append(arguments, in(name))
	}
	if err := b.tool(ctx, arguments...); err != nil {
		return "", err
	}
	binary, err = b.link(ctx, p, name, c.path(), object)
	return binary, errors.Join(err, os.Remove(object))
}

// embedConfig tells the compiler where embedded files are.
func embedConfig(file string, c *compiled, in func(name string) string) error {
	config := struct {
		Patterns map[string][]string
		Files    map[string]string
	}{map[string][]string{}, map[string]string{}}
	for _, name := range c.EmbedFiles {
		config.Files[name] = in(name)
		for _, pattern := range c.EmbedPatterns {
			if ok, err := path.Match(pattern, name); err != nil || ok {
				config.Patterns[pattern] = append(config.Patterns[pattern], name)
			}
		}
	}
	text, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("write where embedded files are: %w", err)
	}
	return os.WriteFile(file, text, 0o600)
}

func (b builder) tool(ctx context.Context, arguments ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"tool"}, arguments...)...)
	cmd.Dir, cmd.Env = b.root, b.env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go tool %s: %w\n%s", arguments[0], err, out)
	}
	return nil
}
