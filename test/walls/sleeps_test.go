package walls_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestNoTestSleeps: a test waits for what is to happen, however long a busy machine takes
// for it. Time that has to pass passes in a bubble of testing/synctest, so that only files
// which have bubbles may sleep.
func TestNoTestSleeps(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		sleeps, err := sleepsOf(path, nil)
		for _, place := range sleeps {
			t.Errorf("%s sleeps outside a bubble: wait for what is to happen (testenv.Eventually), or use testing/synctest", place)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSleepIsFound unless its file has bubbles.
func TestSleepIsFound(t *testing.T) {
	t.Parallel()
	const sleeps = "func f() { time.Sleep(1) }\n"
	for source, want := range map[string][]string{
		"package p\n\nimport \"time\"\n\n" + sleeps:                                 {"p_test.go:5"},
		"package p\n\nimport (\n\t\"testing/synctest\"\n\t\"time\"\n)\n\n" + sleeps: nil,
		"package p\n\nfunc g() { rig.InBubble(f) }\n\n" + sleeps:                    nil,
		"package p\n\nfunc g() { rig.Virtual(f) }\n\n" + sleeps:                     nil,
		"package p\n\nimport \"time\"\n\nfunc f() { <-time.After(1) }\n":            nil,
		"package p\n\nimport \"time\"\n\n// time.Sleep is not called.\nvar _ = 1\n": nil,
	} {
		got, err := sleepsOf("p_test.go", source)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("of\n%sit finds %v, %v; want %v", source, got, err, want)
		}
	}
}

// sleepsOf returns where a file without bubbles names time.Sleep.
func sleepsOf(path string, source any) (places []string, err error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	bubbles := slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == strconv.Quote("testing/synctest") })
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.SelectorExpr); ok {
			switch of, _ := call.X.(*ast.Ident); {
			case of == nil:
			case of.Name == "rig" && (call.Sel.Name == "InBubble" || call.Sel.Name == "Virtual"):
				bubbles = true
			case of.Name == "time" && call.Sel.Name == "Sleep":
				places = append(places, fmt.Sprintf("%s:%d", path, fset.Position(n.Pos()).Line))
			}
		}
		return true
	})
	if bubbles {
		return nil, nil
	}
	return places, nil
}
