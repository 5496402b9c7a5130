package walls_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"eventsv2/test/walls"
)

// exceptions are exported names that have a retired word in another meaning.
var exceptions = map[string]string{
	"Line":           "a line of a file",
	"PrintableLines": "lines of text",
	"Lines":          "lines of source code",
	"NotItsTurn":     "a label of the diagram, which is documented so",
}

// TestExportedNamesHaveNoRetiredWord reads all packages but the tests of them.
func TestExportedNamesHaveNoRetiredWord(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	eachSource(t, func(path, source string) {
		names, err := retiredNames(path, source)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			used[name.name] = true
			if exceptions[name.name] == "" {
				t.Error(name)
			}
		}
	})
	for name := range exceptions {
		if !used[name] {
			t.Errorf("no exported name is %s any more: take it out of the exceptions", name)
		}
	}
}

// eachSource calls f with each file of Go that is no test.
func eachSource(t *testing.T, f func(path, source string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case !entry.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			f(path, readPage(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPagesAndHelpTextsHaveNoRetiredWord reads README.md, the changelog, the pages, the
// golden file of eventctl's help, and the files with the help texts of the other programs.
func TestPagesAndHelpTextsHaveNoRetiredWord(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	pages = append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "CHANGELOG.md"),
		filepath.Join(root, "internal", "eventctl", "testdata", "help.golden"))
	programs, err := filepath.Glob(filepath.Join(root, "internal", "program", "*.go"))
	if err != nil || len(programs) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	for _, page := range append(pages, programs...) {
		text := readPage(t, page)
		if filepath.Base(page) == "glossary.md" {
			text, _, _ = strings.Cut(text, wordsHeading)
		}
		for _, found := range walls.RetiredProse(text) {
			t.Errorf("%s:%s", page, found)
		}
	}
}

const wordsHeading = "## Words that are not used\n"

// TestGlossaryHasTheRetiredWords holds the table of docs/glossary.md to Retired.
func TestGlossaryHasTheRetiredWords(t *testing.T) {
	t.Parallel()
	_, section, found := strings.Cut(readPage(t, filepath.Join(root, "docs", "glossary.md")), wordsHeading)
	if !found {
		t.Fatalf("docs/glossary.md has no section %q", wordsHeading)
	}
	want := "| not | but |\n|---|---|\n"
	for _, word := range walls.Retired {
		want += fmt.Sprintf("| %s | %s |\n", strings.Join(word.Forms, ", "), word.Write)
	}
	if !strings.Contains(section, want) {
		t.Errorf("the section of docs/glossary.md lacks the table of the retired words, which is\n%s", want)
	}
}

// TestRetiredWordIsFound shows what the other tests would find.
func TestRetiredWordIsFound(t *testing.T) {
	t.Parallel()
	names, err := retiredNames("a.go", `package a
type DoorbellConfig struct { OwedFor int; online int }
type S interface { TakeOwed() }
const (A = 1; HTTPBellURL = 2)
func (x *DoorbellConfig) Ringing() { type Bell struct{} }
func Online(bell int) { return }
`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, name := range names {
		got = append(got, name.name)
	}
	if want := []string{"DoorbellConfig", "OwedFor", "TakeOwed", "HTTPBellURL", "Ringing"}; !slices.Equal(got, want) {
		t.Errorf("retired names are %v, want %v", got, want)
	}
	if walls.Replacement("column event_lines id") == "" || walls.Replacement("column events online") != "" {
		t.Error("a retired word is not found in a name in SQL, or found in another word")
	}
	prose := walls.RetiredProse("A line.\nThe Doorbell of a turn, during which it\nis owed; `TestABell` and `bell_x`.\n")
	if len(prose) != 2 || !strings.HasPrefix(prose[0], "2: ") || !strings.HasPrefix(prose[1], "3: ") {
		t.Errorf("retired words in prose are %q, want Doorbell in line 2 and owed in line 3", prose)
	}
}

// retiredName is an exported name with a retired word.
type retiredName struct {
	at          token.Position
	name, write string
}

func (n retiredName) String() string {
	return fmt.Sprintf("%s: %s has a retired word: write %s (docs/glossary.md)", n.at, n.name, n.write)
}

// retiredNames are the exported names of a file's package-level declarations, fields and
// methods that have a retired word.
func retiredNames(path, source string) ([]retiredName, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []retiredName
	ast.Inspect(file, func(node ast.Node) bool {
		for _, name := range declared(node) {
			if write := walls.Replacement(name.Name); name.IsExported() && write != "" {
				found = append(found, retiredName{fset.Position(name.Pos()), name.Name, write})
			}
		}
		_, body := node.(*ast.BlockStmt)
		return !body
	})
	return found, nil
}

// declared are the names that a node declares.
func declared(node ast.Node) []*ast.Ident {
	switch n := node.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{n.Name}
	case *ast.TypeSpec:
		return []*ast.Ident{n.Name}
	case *ast.ValueSpec:
		return n.Names
	case *ast.Field:
		return n.Names
	}
	return nil
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
