package walls_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExportedNamesOfEventqueueAreBounded: package eventqueue has what an application names, and what is for
// stores, workers and programs is beside it.
func TestExportedNamesOfEventqueueAreBounded(t *testing.T) {
	t.Parallel()
	const mostNames, mostLines = 74, 2690
	files, err := filepath.Glob(filepath.Join(root, "eventqueue", "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	lines := 0
	var exported []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(text, []byte("\n"))
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		exported = append(exported, exportedOf(file)...)
	}
	if len(exported) > mostNames || lines > mostLines {
		t.Errorf("eventqueue has %d exported names (at most %d) and %d lines (at most %d): %s", len(exported), mostNames, lines, mostLines, strings.Join(exported, " "))
	}
}

// exportedOf lists the exported names of a file that are not methods or fields.
func exportedOf(file *ast.File) (names []string) {
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			if id.IsExported() {
				names = append(names, id.Name)
			}
		}
	}
	for _, declared := range file.Decls {
		switch d := declared.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					add(s.Name)
				case *ast.ValueSpec:
					add(s.Names...)
				}
			}
		}
	}
	return names
}
