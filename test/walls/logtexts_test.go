package walls_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"eventsv2/test/walls"
)

// TestLogTextsHaveNoRetiredWord reads the texts of log entries in all packages but the tests of
// them.
func TestLogTextsHaveNoRetiredWord(t *testing.T) {
	t.Parallel()
	read := 0
	eachSource(t, func(path, source string) {
		texts, err := logTexts(path, source)
		if err != nil {
			t.Fatal(err)
		}
		read += len(texts)
		for _, text := range texts {
			if write := walls.Replacement(text.text); write != "" {
				t.Errorf("%s: the log text %q has a retired word: write %s (docs/glossary.md)", text.at, text.text, write)
			}
		}
	})
	if read < 50 {
		t.Errorf("%d log texts were found, want those of all packages", read)
	}
}

// TestLogTextIsFound shows what the other test would read.
func TestLogTextIsFound(t *testing.T) {
	t.Parallel()
	texts, err := logTexts("a.go", `package a
import "go.uber.org/zap"
func f(log *zap.Logger, x string) { log.Warn("could not "+x+" notify", zap.String("a", "bell")); log.Log(1, "it rings") }
`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, text := range texts {
		got = append(got, text.text)
	}
	if want := []string{"could not ", " notify", "it rings"}; !slices.Equal(got, want) {
		t.Errorf("log texts are %q, want %q", got, want)
	}
}

// logText is a literal part of the text of a log entry.
type logText struct {
	at   token.Position
	text string
}

// logMethods are the methods of a zap.Logger that have a text, and the position of that.
var logMethods = map[string]int{"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "DPanic": 0, "Panic": 0, "Fatal": 0, "Log": 1, "Check": 1}

// logTexts are the literal parts of the texts of log entries in a file that imports zap.
func logTexts(path, source string) (texts []logText, err error) {
	if !strings.Contains(source, `"go.uber.org/zap"`) {
		return nil, nil
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if at, ok := logMethods[method.Sel.Name]; ok && at < len(call.Args) {
			texts = append(texts, literals(fset, call.Args[at])...)
		}
		return true
	})
	return texts, nil
}

// literals are the texts in a part of a file.
func literals(fset *token.FileSet, of ast.Node) (texts []logText) {
	ast.Inspect(of, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, _ := strconv.Unquote(literal.Value) // the parser has accepted it
			texts = append(texts, logText{fset.Position(literal.Pos()), text})
		}
		return true
	})
	return texts
}
