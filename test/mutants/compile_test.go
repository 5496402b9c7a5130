package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEveryMutantCompiles fails as soon as a mutant names what has been renamed or is no
// longer used, long before the gate builds it. What other packages see of a changed one is
// left to the gate.
func TestEveryMutantCompiles(t *testing.T) {
	t.Parallel()
	root, err := moduleRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byDir := map[string][]*mutant{}
	for _, m := range mutants() {
		if dir := filepath.Dir(m.file); filepath.Ext(m.file) == ".go" {
			byDir[dir] = append(byDir[dir], &m)
		}
	}
	all, err := typeCheckers(t.Context(), root, byDir)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(byDir) {
		t.Fatalf("mutants are in %d packages, and the go command lists %d", len(byDir), len(all))
	}
	for _, c := range all {
		dir, err := filepath.Rel(root, c.dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range byDir[dir] {
			text, err := m.apply(root)
			if err != nil {
				t.Error(err)
			} else if err := c.check(filepath.Base(m.file), text); err != nil {
				t.Errorf("the mutant %s does not compile: %v", m.name, err)
			}
		}
	}
}

// TestWhatDoesNotCompileIsFound in a changed file, and what it breaks in the others.
func TestWhatDoesNotCompileIsFound(t *testing.T) {
	t.Parallel()
	root, err := moduleRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err := typeCheckers(t.Context(), root, map[string][]*mutant{"test/pubsubproxy": nil})
	if err != nil || len(all) != 1 {
		t.Fatal(len(all), err)
	}
	c := typeChecker{path: "example", imports: all[0].imports, fset: all[0].fset}
	for name, text := range map[string]string{
		"a.go": "package example\n\nimport \"context\"\n\nfunc f(ctx context.Context) error { return ctx.Err() }\n",
		"b.go": "package example\n\nimport \"context\"\n\nfunc g() { _ = f(context.Background()) }\n",
	} {
		if err := c.add(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	const begins, signature = "package example\n\nimport \"context\"\n\n", "func f(ctx context.Context) error "
	for body, want := range map[string]string{
		begins + signature + "{ return ctx.Err() }":                   "",
		begins + signature + "{ return context.Cause(ctx) }":          "",
		begins + signature + "{ return ctx.Error() }":                 "ctx.Error undefined",
		begins + signature + "{ return nil; unused := 1 }":            "declared and not used",
		begins + "func f(any) error { return nil }":                   `"context" imported and not used`,
		"package example\n\nfunc f(any) error { return nil }":         "",
		begins + "func f(ctx context.Context) { }":                    "used as value",
		begins + "func h(ctx context.Context) error { return nil }":   "undefined: f",
		begins + signature + "{ return nil }\nfunc g() { var _ = f }": "g redeclared",
	} {
		err := c.check("a.go", body)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("of\n%s\nit says %v, want %q", body, err, want)
		}
	}
}

// typeChecker checks the types of a package of which one file is changed.
type typeChecker struct {
	path, dir string
	imports   types.Importer
	fset      *token.FileSet
	files     []sourceFile
}

// sourceFile is a file of a package as it is.
type sourceFile struct {
	name     string
	whole    *ast.File
	outside  *ast.File // the same without the bodies of functions
	declared string    // the text of that
}

// typeCheckers makes one for each package, by its directory from the root of the module.
// What the packages import comes from the go command's cache.
func typeCheckers(ctx context.Context, root string, dirs map[string][]*mutant) ([]typeChecker, error) {
	arguments := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,DepOnly"}
	for dir := range dirs {
		arguments = append(arguments, "./"+dir)
	}
	cmd := exec.CommandContext(ctx, "go", arguments...)
	cmd.Dir = root
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, &said)
	}
	exports, fset := map[string]string{}, token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var all []typeChecker
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir, Export string
			GoFiles                 []string
			DepOnly                 bool
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if dir, err := filepath.Rel(root, p.Dir); err != nil || dirs[dir] == nil && p.DepOnly {
			continue // of the standard library, or nobody's mutant is in it
		}
		c := typeChecker{path: p.ImportPath, dir: p.Dir, imports: imports, fset: fset}
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err == nil {
				err = c.add(name, text)
			}
			if err != nil {
				return nil, err
			}
		}
		all = append(all, c)
	}
}

// add adds a file to the package.
func (c *typeChecker) add(name string, text []byte) error {
	f := sourceFile{name: name}
	var err error
	if f.whole, err = c.parse(name, text); err != nil {
		return err
	}
	if f.outside, err = c.parse(name, text); err != nil {
		return err
	}
	f.declared = c.withoutBodies(f.outside, string(text))
	c.files = append(c.files, f)
	return nil
}

func (c *typeChecker) parse(name string, text []byte) (*ast.File, error) {
	return parser.ParseFile(c.fset, filepath.Join(c.dir, name), text, parser.SkipObjectResolution)
}

// withoutBodies takes the bodies of functions out of a file, and returns the rest of its
// text.
func (c *typeChecker) withoutBodies(file *ast.File, text string) string {
	var rest strings.Builder
	from := 0
	for _, declared := range file.Decls {
		if f, ok := declared.(*ast.FuncDecl); ok && f.Body != nil {
			rest.WriteString(text[from:c.fset.Position(f.Body.Pos()).Offset])
			from = c.fset.Position(f.Body.End()).Offset
			f.Body = nil
		}
	}
	rest.WriteString(text[from:])
	return rest.String()
}

// check checks the package with another text of one file. Where that declares what the
// file does, the bodies of functions elsewhere mean what they did, and are not read again:
// there are hundreds of mutants.
func (c *typeChecker) check(name, text string) error {
	changed, err := c.parse(name, []byte(text))
	if err != nil {
		return err
	}
	outside, err := c.parse(name, []byte(text))
	if err != nil {
		return err
	}
	declared := c.withoutBodies(outside, text)
	same := slices.ContainsFunc(c.files, func(f sourceFile) bool { return f.name == name && f.declared == declared })
	files := []*ast.File{changed}
	for _, f := range c.files {
		switch {
		case f.name == name:
		case same:
			files = append(files, f.outside)
		default:
			files = append(files, f.whole)
		}
	}
	var all []error
	config := types.Config{Importer: c.imports, Error: func(err error) {
		var wrong types.Error
		if same && errors.As(err, &wrong) && c.fset.Position(wrong.Pos).Filename != filepath.Join(c.dir, name) {
			return // an import of a file without its functions
		}
		all = append(all, err)
	}}
	_, _ = config.Check(c.path, c.fset, files, nil) // which tells Error what it returns
	return errors.Join(all...)
}
