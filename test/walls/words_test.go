package walls_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// retiredWord is a word, in its forms, that the project no longer uses.
type retiredWord struct {
	forms []string
	write string
	prose bool // the word has no other meaning on a page, so that pages and help texts may not have it either
}

// retired is the table in docs/glossary.md under "Words that are not used".
var retired = []retiredWord{
	{[]string{"bell", "bells", "doorbell", "doorbells"}, "notifier", true},
	{[]string{"ring", "rings", "ringing", "rung"}, "notify, publish; of files that use each other: cycle", true},
	{[]string{"unheard"}, "lost", true},
	{[]string{"broker", "brokers"}, "notifier, Pub/Sub", true},
	{[]string{"owe", "owed", "owes", "owing"}, "pending", true},
	{[]string{"look", "looks", "looked"}, "claim, check, query", false},
	{[]string{"turn", "turns"}, "ordering group, advance", false},
	{[]string{"line", "lines"}, "ordering group", false},
	{[]string{"finish", "finished", "finishes"}, "complete, completion", false},
	{[]string{"settle", "settled", "settles"}, "agree, finalize, complete", false},
	{[]string{"announce", "announced", "announces"}, "notify", false},
	{[]string{"mailbox", "mailboxes"}, "batcher", true},
	{[]string{"allowance", "allowances"}, "budget", false},
	{[]string{"patience"}, "lock wait, maximum wait", true},
	{[]string{"tell", "teller", "tells", "told"}, "report", false},
	{[]string{"say", "says", "said"}, "report", false},
	{[]string{"judge", "judges", "judgement"}, "check, decide", false},
	{[]string{"keep", "keeps", "kept"}, "retain", false},
	{[]string{"forget", "forgets", "forgot"}, "delete, lose", false},
	{[]string{"mend", "mends", "mended"}, "repair, correct", true},
	{[]string{"brake", "brakes"}, "backpressure", true},
	{[]string{"court"}, "checker", true},
	{[]string{"excuse", "excuses"}, "permitted cause", true},
	{[]string{"elder", "elders"}, "long-lived", true},
	{[]string{"chore", "chores"}, "maintenance", true},
}

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
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		names, err := retiredNames(path, string(text))
		for _, name := range names {
			used[name.name] = true
			if exceptions[name.name] == "" {
				t.Error(name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range exceptions {
		if !used[name] {
			t.Errorf("no exported name is %s any more: take it out of the exceptions", name)
		}
	}
}

// TestPagesAndHelpTextsHaveNoRetiredWord reads README.md, the changelog, the pages, the
// golden file of eventctl's help, and the files with the help texts of the other programs. The
// changelog may have old names as code.
func TestPagesAndHelpTextsHaveNoRetiredWord(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	pages = append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "CHANGELOG.md"),
		filepath.Join(root, "internal", "eventctl", "testdata", "help.golden"))
	programs, err := filepath.Glob(filepath.Join(root, "cmd", "*", "run.go"))
	if err != nil || len(programs) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	for _, page := range append(pages, programs...) {
		text := readPage(t, page)
		switch filepath.Base(page) {
		case "glossary.md":
			text, _, _ = strings.Cut(text, wordsHeading)
		case "CHANGELOG.md":
			text = regexp.MustCompile("`[^`]*`").ReplaceAllString(text, "``")
		}
		for _, found := range retiredProse(text) {
			t.Errorf("%s:%s", page, found)
		}
	}
}

const wordsHeading = "## Words that are not used\n"

// TestTheGlossaryHasTheRetiredWords holds the table of docs/glossary.md to retired.
func TestTheGlossaryHasTheRetiredWords(t *testing.T) {
	t.Parallel()
	_, section, found := strings.Cut(readPage(t, filepath.Join(root, "docs", "glossary.md")), wordsHeading)
	if !found {
		t.Fatalf("docs/glossary.md has no section %q", wordsHeading)
	}
	want := "| not | but |\n|---|---|\n"
	for _, word := range retired {
		want += fmt.Sprintf("| %s | %s |\n", strings.Join(word.forms, ", "), word.write)
	}
	if !strings.Contains(section, want) {
		t.Errorf("the section of docs/glossary.md lacks the table of the retired words, which is\n%s", want)
	}
}

// TestARetiredWordIsFound shows what the other tests would find.
func TestARetiredWordIsFound(t *testing.T) {
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
	prose := retiredProse("A line.\nThe Doorbell of a turn, during which it\nis owed; `TestABell` and `bell_x`.\n")
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
			if write := replacement(name.Name); name.IsExported() && write != "" {
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

// replacement is what to write instead of the first retired word of a camelCase name.
func replacement(name string) string {
	for _, part := range camelCase(name) {
		for _, word := range retired {
			if slices.Contains(word.forms, strings.ToLower(part)) {
				return word.write
			}
		}
	}
	return ""
}

// camelCase splits HTTPBellURL into HTTP, Bell and URL.
func camelCase(name string) []string {
	var parts []string
	letters, begin := []rune(name), 0
	for i := 1; i < len(letters); i++ {
		if unicode.IsUpper(letters[i]) && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])) {
			parts, begin = append(parts, string(letters[begin:i])), i
		}
	}
	return append(parts, string(letters[begin:]))
}

// retiredProse are the retired words of a text, each with its line.
func retiredProse(text string) []string {
	var found []string
	for _, word := range retired {
		if !word.prose {
			continue
		}
		pattern := regexp.MustCompile(`(?i)\b(` + strings.Join(word.forms, "|") + `)\b`)
		for _, at := range pattern.FindAllStringIndex(text, -1) {
			line := 1 + strings.Count(text[:at[0]], "\n")
			found = append(found, fmt.Sprintf("%d: %q is a retired word: write %s (docs/glossary.md)", line, text[at[0]:at[1]], word.write))
		}
	}
	return found
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
