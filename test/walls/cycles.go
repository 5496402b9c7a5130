package walls

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
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Package is a package of the module as the compiler sees it, without its tests.
type Package struct {
	// At is its directory below the module.
	At string
	// Lines is how many its files have together.
	Lines int
	// Uses has, for each file, the other files of the package that it uses.
	//
	// A file uses another one when it names what that declares: a function, a variable, a
	// constant, a type, a method or a field. The receiver of a method is no use, since it
	// says only where the method belongs; what its body names of the type is. A value of
	// a type is none either, as long as nothing of it is named. A method that is called
	// through an interface is a use of the interface, not of those that implement it.
	Uses map[string][]string
}

// Cycles returns the sets of two files or more that use each other, in a cycle or in
// several that share a file, the largest first.
func (p Package) Cycles() [][]string {
	var cycles [][]string
	for _, cycle := range components(p.Uses) {
		if len(cycle) > 1 {
			slices.Sort(cycle)
			cycles = append(cycles, cycle)
		}
	}
	slices.SortFunc(cycles, func(a, b []string) int { return len(b) - len(a) })
	return cycles
}

// What a reader can hold in mind at once: files that use each other in a cycle have to be
// read together. A small package may be one cycle, as it is read as a whole.
const (
	mostInCycle  = 5
	smallPackage = 600 // lines
)

// LargeCycles returns a line for each cycle of the module in dir that is too large, and how many
// packages were measured.
func LargeCycles(ctx context.Context, dir string) (large []string, measured int, err error) {
	packages, err := Packages(ctx, dir)
	for _, p := range packages {
		for _, cycle := range p.Cycles() {
			if p.Lines > smallPackage && len(cycle) > mostInCycle {
				large = append(large, fmt.Sprintf("%d files of package %s use each other in a cycle, %d may: %v\nGive one of them a type of its own with what it needs.",
					len(cycle), p.At, mostInCycle, cycle))
			}
		}
	}
	return large, len(packages), err
}

// listed is a package as go list prints it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// Packages returns the packages of the module in dir.
func Packages(ctx context.Context, dir string) ([]Package, error) {
	all, err := list(ctx, dir)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, p := range all {
		exports[p.ImportPath] = p.Export
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	imports := importer.ForCompiler(fset, "gc", open) // which reads each package once
	var packages []Package
	for _, p := range all {
		if p.DepOnly {
			continue
		}
		at, err := filepath.Rel(root, p.Dir)
		if err != nil {
			return nil, err
		}
		read, err := readPackage(p, fset, imports)
		if err != nil {
			return nil, fmt.Errorf("package %s: %w", at, err)
		}
		read.At = filepath.ToSlash(at)
		packages = append(packages, read)
	}
	return packages, nil
}

// list asks go list for the packages in dir, and for the export data of all that they
// import.
func list(ctx context.Context, dir string) ([]listed, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,DepOnly", "./...")
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w", dir, err)
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		all = append(all, p)
	}
}

func readPackage(p listed, fset *token.FileSet, imports types.Importer) (Package, error) {
	read := Package{Uses: map[string][]string{}}
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return read, err
		}
		files = append(files, file)
		read.Lines += fset.File(file.FileStart).LineCount()
		read.Uses[name] = nil
	}
	config := types.Config{Importer: imports}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	pkg, err := config.Check(p.ImportPath, fset, files, info)
	if err != nil {
		return read, err
	}
	fileOf := func(pos token.Pos) string { return filepath.Base(fset.Position(pos).Filename) }
	receivers := receiverNames(files)
	for name, object := range info.Uses {
		if object.Pkg() != pkg || receivers[name] || !lasting(object) {
			continue
		}
		from, to := fileOf(name.Pos()), fileOf(object.Pos())
		if from != to && !slices.Contains(read.Uses[from], to) {
			read.Uses[from] = append(read.Uses[from], to)
		}
	}
	for _, uses := range read.Uses {
		slices.Sort(uses)
	}
	return read, nil
}

// lasting reports whether an object is declared by the package, a type or a method set,
// and not inside a function.
func lasting(object types.Object) bool {
	switch o := object.(type) {
	case *types.Var:
		return o.IsField() || o.Parent() == o.Pkg().Scope()
	case *types.Func:
		return true
	default:
		return o.Parent() == o.Pkg().Scope()
	}
}

// receiverNames are the names in the receivers of methods.
func receiverNames(files []*ast.File) map[*ast.Ident]bool {
	names := map[*ast.Ident]bool{}
	for _, file := range files {
		for _, decl := range file.Decls {
			method, is := decl.(*ast.FuncDecl)
			if !is || method.Recv == nil {
				continue
			}
			ast.Inspect(method.Recv, func(n ast.Node) bool {
				if name, is := n.(*ast.Ident); is {
					names[name] = true
				}
				return true
			})
		}
	}
	return names
}

// components returns the strongly connected components of a graph (Tarjan).
func components(graph map[string][]string) [][]string {
	var found [][]string
	var stack []string
	number, low, open := map[string]int{}, map[string]int{}, map[string]bool{}
	var visit func(string)
	visit = func(at string) {
		number[at] = len(number) + 1
		low[at] = number[at]
		stack, open[at] = append(stack, at), true
		for _, to := range graph[at] {
			if number[to] == 0 {
				visit(to)
			}
			if open[to] {
				low[at] = min(low[at], low[to])
			}
		}
		if low[at] != number[at] {
			return
		}
		i := slices.Index(stack, at)
		for _, member := range stack[i:] {
			open[member] = false
		}
		found = append(found, slices.Clone(stack[i:]))
		stack = stack[:i]
	}
	for _, at := range slices.Sorted(maps.Keys(graph)) {
		if number[at] == 0 {
			visit(at)
		}
	}
	return found
}
