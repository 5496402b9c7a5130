package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Compiling and linking costs as much as judging. So most mutants of a judge's package share a
// program, a bundle: in the files that it changes each function has the mutant's body beside its own,
// and so has the value of a variable or constant; a variable of the environment selects one. What
// cannot be had in this way (a type, a constant that others see, a file that is not Go) is
// compiled by itself.

// selector is the variable of the environment that names the mutant of a bundle.
const selector = "EVENTSV2_MUTANT"

// The names that a bundle adds to each package.
const (
	selected = "mutantSelected"
	pick     = "mutantPick"
)

// bundle is a program with several mutants.
type bundle struct {
	binary string
	has    map[string]bool // by the names of its mutants
}

// bundles makes those of judges' packages at their first use.
type bundles struct {
	of map[string][]*mutant // by the package of their first judge
	mu sync.Mutex
	by map[string]func() []*bundle
}

// newBundles bundles mutants by their first judges.
func newBundles(all []mutant) *bundles {
	b := &bundles{of: map[string][]*mutant{}, by: map[string]func() []*bundle{}}
	for i := range all {
		pkg := all[i].judges[0].pkg
		b.of[pkg] = append(b.of[pkg], &all[i])
	}
	return b
}

// with returns the program of a judge's package that has the mutant, if there is one.
func (all *bundles) with(ctx context.Context, b builder, pkg string, m *mutant) (binary string, ok bool) {
	all.mu.Lock()
	once, there := all.by[pkg]
	if !there {
		once = sync.OnceValue(func() []*bundle {
			defer b.builds.take()()
			return b.bundle(ctx, pkg, fit(b.root, all.of[pkg]), "bundle-"+strings.NewReplacer("/", "-", ".", "").Replace(pkg))
		})
		all.by[pkg] = once
	}
	all.mu.Unlock()
	for _, made := range once() {
		if made.has[m.name] {
			return made.binary, true
		}
	}
	return "", false
}

// fit returns the mutants that can be in a bundle.
func fit(root string, all []*mutant) (fits []*mutant) {
	for _, m := range all {
		if _, err := instrument(root, []*mutant{m}); err == nil {
			fits = append(fits, m)
		}
	}
	return fits
}

// bundle makes a program with mutants. Those that cannot be compiled together are left out, by
// halves: they are compiled by themselves, which also says what is wrong with one.
func (b builder) bundle(ctx context.Context, pkg string, mutants []*mutant, name string) []*bundle {
	if len(mutants) < 2 || ctx.Err() != nil {
		return nil
	}
	if binary, err := b.buildBundle(ctx, pkg, mutants, name); err == nil {
		has := map[string]bool{}
		for _, m := range mutants {
			has[m.name] = true
		}
		return []*bundle{{binary, has}}
	}
	half := len(mutants) / 2
	return append(b.bundle(ctx, pkg, mutants[:half], name+"a"), b.bundle(ctx, pkg, mutants[half:], name+"b")...)
}

func (b builder) buildBundle(ctx context.Context, pkg string, mutants []*mutant, name string) (binary string, err error) {
	files, err := instrument(b.root, mutants)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for i, file := range slices.Sorted(maps.Keys(files)) {
		changed := filepath.Join(b.dir, name+"-"+strconv.Itoa(i)+".go")
		if err := os.WriteFile(changed, []byte(files[file]), 0o600); err != nil {
			return "", fmt.Errorf("write a file of the bundle %s: %w", name, err)
		}
		replace[file] = changed
	}
	overlay := filepath.Join(b.dir, name+".json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("write the overlay of the bundle %s: %w", name, err)
	}
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", fmt.Errorf("write the overlay of the bundle %s: %w", name, err)
	}
	binary = filepath.Join(b.dir, name+".test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, pkg)
	cmd.Dir, cmd.Env = b.root, b.env
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build a bundle of %s: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

// errUnfit is why a mutant cannot be in a bundle.
var errUnfit = errors.New("the mutant does not change the body of a function, or a value that only its package sees")

// instrument returns the texts of the files that mutants change, with all of the mutants in them, and
// of a file for each of their packages that selects one.
func instrument(root string, mutants []*mutant) (map[string]string, error) {
	packages := map[string][]*source{}
	for _, m := range mutants {
		if filepath.Ext(m.file) != ".go" {
			return nil, errUnfit
		}
		dir := filepath.Join(root, filepath.Dir(m.file))
		if packages[dir] == nil {
			var err error
			if packages[dir], err = parsePackage(dir); err != nil {
				return nil, err
			}
		}
		for _, s := range packages[dir] {
			if s.name == filepath.Join(root, m.file) {
				if err := s.addMutant(m); err != nil {
					return nil, err
				}
			}
		}
	}
	texts := map[string]string{}
	for dir, files := range packages {
		if err := convertConstants(files); err != nil {
			return nil, err
		}
		for _, s := range files {
			if len(s.variants) > 0 {
				texts[s.name] = s.instrumented()
			}
		}
		texts[filepath.Join(dir, "zz_mutants.go")] = "package " + files[0].file.Name.Name + "\n\nimport \"os\"\n\n" +
			"var " + selected + " = os.Getenv(\"" + selector + "\")\n\n" +
			"func " + pick + "[T any](name string, mutant, original T) T {\n\tif " + selected + " == name {\n\t\treturn mutant\n\t}\n\treturn original\n}\n"
	}
	return texts, nil
}

// source is a file and what is to be changed in it.
type source struct {
	name     string
	text     []byte
	file     *ast.File
	variants map[ast.Node][]variant // by function, or by the specification of a variable or constant
}

// variant is what a mutant makes of a body or a value.
type variant struct{ name, text string }

// parsePackage reads a package without its tests.
func parsePackage(dir string) (files []*source, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list what mutants change: %w", err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read what mutants change: %w", err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse what mutants change: %w", err)
		}
		files = append(files, &source{name: name, text: text, file: file, variants: map[ast.Node][]variant{}})
	}
	return files, nil
}

func (s *source) at(p token.Pos) int { return int(p - s.file.FileStart) }

// of returns the text of a part of the file.
func (s *source) of(n ast.Node) string { return string(s.text[s.at(n.Pos()):s.at(n.End())]) }

// addMutant adds the variants of a mutant.
func (s *source) addMutant(m *mutant) error {
	changed := map[ast.Node]string{}
	for _, e := range m.edits {
		if bytes.Count(s.text, []byte(e.old)) != 1 {
			return errUnfit // it is judged by itself, which says so
		}
		begins := bytes.Index(s.text, []byte(e.old))
		node, from, to := s.around(begins, begins+len(e.old))
		if node == nil {
			return errUnfit
		}
		text, again := changed[node]
		if !again {
			text = string(s.text[from:to])
		}
		if strings.Count(text, e.old) != 1 {
			return errUnfit
		}
		changed[node] = strings.Replace(text, e.old, e.new, 1)
	}
	for node, text := range changed {
		if v, ok := node.(*ast.ValueSpec); ok {
			before := string(s.text[s.at(v.Pos()):s.at(v.Values[0].Pos())])
			if text, ok = strings.CutPrefix(text, before); !ok {
				return errUnfit
			}
		}
		s.variants[node] = append(s.variants[node], variant{m.name, text})
	}
	return nil
}

// around returns the function in whose body a text is, or the specification of a variable or constant
// that has it, and where that body or specification begins and ends.
func (s *source) around(begins, ends int) (node ast.Node, from, to int) {
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && s.at(f.Body.Lbrace)+1 <= begins && ends <= s.at(f.Body.Rbrace) {
			return f, s.at(f.Body.Lbrace) + 1, s.at(f.Body.Rbrace)
		}
	}
	for v := range s.values {
		if from, to := s.at(v.Pos()), s.at(v.End()); from <= begins && ends <= to {
			return v, from, to
		}
	}
	return nil, 0, 0
}

// values yields the specifications of single variables and constants, with their tokens.
func (s *source) values(yield func(*ast.ValueSpec, token.Token) bool) {
	for _, d := range s.file.Decls {
		general, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && len(v.Names) == 1 && len(v.Values) == 1 && !yield(v, general.Tok) {
				return
			}
		}
	}
}

// convertConstants marks the constants of a package that are made of ones which become variables, as
// they have to become variables themselves. Other packages need exported ones as they are.
func convertConstants(files []*source) error {
	variable := map[string]bool{}
	for before := -1; before < len(variable); {
		before = len(variable)
		for _, s := range files {
			for v, tok := range s.values {
				name := v.Names[0].Name
				if _, marked := s.variants[v]; tok != token.CONST || !marked && !mentions(v.Values[0], variable) {
					continue
				}
				if ast.IsExported(name) {
					return errUnfit
				}
				if s.variants[v] == nil {
					s.variants[v] = []variant{}
				}
				variable[name] = true
			}
		}
	}
	return nil
}

// mentions reports whether an expression has one of the names.
func mentions(e ast.Expr, names map[string]bool) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && names[id.Name]
		return !found
	})
	return found
}

// replacement is a new text for a part of a file.
type replacement struct {
	from, to int
	text     string
}

// instrumented returns the text of the file with all variants.
func (s *source) instrumented() string {
	var parts []replacement
	end := ""
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && len(s.variants[f]) > 0 {
			at := s.at(f.Body.Lbrace) + 1
			parts = append(parts, replacement{at, at, bodies(f, s.variants[f])})
		}
	}
	for v, tok := range s.values {
		variants, changes := s.variants[v]
		if !changes {
			continue
		}
		value := s.of(v.Values[0])
		for _, of := range variants {
			value = fmt.Sprintf("%s(%q, %s, %s)", pick, of.name, of.text, value)
		}
		if tok == token.VAR {
			parts = append(parts, replacement{s.at(v.Values[0].Pos()), s.at(v.Values[0].End()), value})
			continue
		}
		// A constant becomes a variable, which cannot be declared among constants.
		parts = append(parts, replacement{s.at(v.Pos()), s.at(v.End()), "_ = 0"})
		typed := ""
		if v.Type != nil {
			typed = s.of(v.Type) + " "
		}
		end += "\nvar " + v.Names[0].Name + " " + typed + "= " + value + "\n"
	}
	slices.SortFunc(parts, func(a, b replacement) int { return a.from - b.from })
	var text strings.Builder
	last := 0
	for _, part := range parts {
		text.Write(s.text[last:part.from])
		text.WriteString(part.text)
		last = part.to
	}
	text.Write(s.text[last:])
	text.WriteString(end)
	return text.String()
}

// bodies are the statements that a function begins with: the bodies of its mutants.
func bodies(f *ast.FuncDecl, variants []variant) string {
	var text strings.Builder
	for _, v := range variants {
		fmt.Fprintf(&text, "\nif %s == %q {\n%s\n", selected, v.name, v.text)
		if f.Type.Results == nil {
			text.WriteString("return\n")
		}
		text.WriteString("}\n")
	}
	return text.String()
}
