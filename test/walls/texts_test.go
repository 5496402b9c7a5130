package walls_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"eventsv2/test/walls"
)

// TestErrorTextsAndExplanationsHaveNoRetiredWord reads the texts of errors in all packages, and the sentences of
// inspect.Explain, but the tests of them.
func TestErrorTextsAndExplanationsHaveNoRetiredWord(t *testing.T) {
	t.Parallel()
	var inErrors, explained int
	eachSource(t, func(path, source string) {
		texts := errorTexts(t, path, source)
		inErrors += len(texts)
		if name := filepath.Base(path); strings.HasPrefix(name, "explain") && filepath.Base(filepath.Dir(path)) == "inspect" {
			fset, file := parse(t, path, source)
			all := literals(fset, file)
			texts, explained = append(texts, all...), explained+len(all)
		}
		for _, text := range texts {
			for _, found := range walls.RetiredProse(text.text) {
				t.Errorf("%s: %s", text.at, found)
			}
		}
	})
	if inErrors < 500 || explained < 100 {
		t.Errorf("%d texts of errors and %d of explanations were found, want those of all packages", inErrors, explained)
	}
}

// TestCommentsAndTextsHaveNoUnclearPhrase reads the packages, but not the tools for tests.
func TestCommentsAndTextsHaveNoUnclearPhrase(t *testing.T) {
	t.Parallel()
	eachSource(t, func(path, source string) {
		if within, err := filepath.Rel(root, path); err != nil || slices.Contains([]string{"test", "bench"}, strings.Split(within, "/")[0]) {
			return
		}
		for _, found := range unclear(t, path, source) {
			t.Error(found)
		}
	})
}

// TestUnclearPhraseIsFound shows what the other test would find.
func TestUnclearPhraseIsFound(t *testing.T) {
	t.Parallel()
	found := unclear(t, "a.go", `package a
import ("errors"; "fmt"; "go.uber.org/zap")
// f waits for
// somebody, as Somebody does.
func f(log *zap.Logger) { log.Warn("it costs itself only"); _, _ = errors.New("somebody did"), fmt.Errorf("%w: somebody", nil); f("somebody") }
`)
	if len(found) != 4 {
		t.Errorf("it finds %q, want the comment, the log text and both errors", found)
	}
}

// unclear returns where the comments, log texts and errors of a file have an unclear phrase.
func unclear(t *testing.T, path, source string) (found []string) {
	t.Helper()
	fset, file := parse(t, path, source)
	texts, err := logTexts(path, source)
	if err != nil {
		t.Fatal(err)
	}
	texts = append(texts, errorTexts(t, path, source)...)
	for _, comment := range file.Comments {
		texts = append(texts, logText{fset.Position(comment.Pos()), strings.Join(strings.Fields(comment.Text()), " ")})
	}
	for _, text := range texts {
		for phrase, write := range walls.Unclear {
			if strings.Contains(strings.ToLower(text.text), phrase) {
				found = append(found, text.at.String()+": "+phrase+" is unclear: write "+write+" (docs/glossary.md)")
			}
		}
	}
	return found
}

// errorTexts are the literal parts of the texts of errors.New and fmt.Errorf.
func errorTexts(t *testing.T, path, source string) (texts []logText) {
	t.Helper()
	fset, file := parse(t, path, source)
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); ok {
			if of, ok := f.X.(*ast.Ident); ok && (of.Name+"."+f.Sel.Name == "errors.New" || of.Name+"."+f.Sel.Name == "fmt.Errorf") {
				texts = append(texts, literals(fset, call.Args[0])...)
			}
		}
		return true
	})
	return texts
}

func parse(t *testing.T, path, source string) (*token.FileSet, *ast.File) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, source, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return fset, file
}
