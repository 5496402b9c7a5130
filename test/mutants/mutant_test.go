package main

import (
	"errors"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryMutantApplies fails as soon as somebody changes a text that a mutant
// replaces, long before the gate runs.
func TestEveryMutantApplies(t *testing.T) {
	t.Parallel()
	root, err := moduleRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range mutants() {
		if names[m.name] {
			t.Errorf("two mutants are named %s", m.name)
		}
		names[m.name] = true
		if m.breaks == "" || len(m.judges) == 0 || len(m.edits) == 0 {
			t.Errorf("the mutant %s lacks an invariant, a judge or an edit", m.name)
		}
		text, err := m.apply(root)
		if err != nil {
			t.Error(err)
			continue
		}
		if filepath.Ext(m.file) != ".go" {
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), m.file, text, parser.SkipObjectResolution); err != nil {
			t.Errorf("the mutant %s is no Go: %v", m.name, err)
		}
	}
	if len(names) < 20 {
		t.Errorf("there are %d mutants only", len(names))
	}
}

// TestMutantsChangeTheLastDefinition fails when a later migration makes a function anew: what
// a mutant changes in the one before is then in no migrated database.
func TestMutantsChangeTheLastDefinition(t *testing.T) {
	t.Parallel()
	root, err := moduleRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "migrations", "*.sql"))
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	definition := regexp.MustCompile(`CREATE (?:OR REPLACE )?FUNCTION (\w+)\(`)
	last := map[string]string{} // the file that defines a function last, by the function
	ups := map[string]string{}  // what brings a database up, by the file
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := "migrations/" + filepath.Base(file)
		ups[name], _, _ = strings.Cut(string(source), goDown)
		for _, of := range definition.FindAllStringSubmatch(ups[name], -1) {
			last[of[1]] = name
		}
	}
	checked := 0
	for _, m := range mutants() {
		up, isMigration := ups[m.file]
		if !isMigration {
			continue
		}
		for _, e := range m.edits {
			before, _, _ := strings.Cut(up, e.old)
			begins := definition.FindAllStringSubmatchIndex(before+e.old, -1)
			if len(begins) == 0 {
				continue
			}
			of := begins[len(begins)-1]
			end := ";\n"
			if strings.HasSuffix((before + e.old)[:of[0]], "-- +goose StatementBegin\n") {
				end = "-- +goose StatementEnd"
			}
			if strings.Contains(before[min(of[0], len(before)):], end) {
				continue // behind the function
			}
			checked++
			if function := (before + e.old)[of[2]:of[3]]; last[function] != m.file {
				t.Errorf("the mutant %s changes %s in %s, and %s makes it anew: move the mutant there", m.name, function, m.file, last[function])
			}
		}
	}
	if checked < 10 {
		t.Errorf("%d edits of functions were found only", checked)
	}
}

// TestEveryTestOfTheListExists fails if a test that has to kill a mutant is renamed.
func TestEveryTestOfTheListExists(t *testing.T) {
	t.Parallel()
	root, err := moduleRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	declares := map[string]string{} // the texts of a package's tests
	for _, m := range mutants() {
		for _, j := range m.judges {
			if declares[j.pkg] == "" {
				declares[j.pkg] = testsOf(t, filepath.Join(root, j.pkg))
			}
			for _, test := range j.tests {
				if !strings.Contains(declares[j.pkg], "\nfunc "+test+"(t *testing.T)") {
					t.Errorf("%s, which judges the mutant %s, has no test %s", j.pkg, m.name, test)
				}
			}
		}
	}
}

func testsOf(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

func TestAMutantThatDoesNotApplySaysSo(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "f.go"), []byte("one two two"), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(old string) error {
		m := mutant{name: "example", file: "f.go", edits: change(old, "x")}
		_, err := m.apply(root)
		return err
	}
	if err := with("one"); err != nil {
		t.Error(err)
	}
	for _, old := range []string{"three", "two"} {
		err := with(old)
		if gone := new(notApplicable); !errors.As(err, &gone) || !strings.Contains(err.Error(), "the mutant example no longer applies") {
			t.Errorf("%q: %v", old, err)
		}
	}
}

func TestVerdictOfAMutant(t *testing.T) {
	t.Parallel()
	j := judge{"./pkg", []string{"TestA", "TestB"}}
	for _, c := range []struct {
		output string
		fate   fate
		by     string
	}{
		{"--- PASS: TestA (0.00s)\nPASS\n", survived, ""},
		{"--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/sub (0.00s)\nFAIL\n", killed, "TestA/sub"},
		{"--- FAIL: TestC (0.00s)\nFAIL\n", survived, ""},
		{"--- SKIP: TestA (0.00s)\nPASS\n", survived, ""},
		{"--- FAIL: TestA (0.00s)\npanic: boom [recovered]\n", panicked, ""},
		{"=== RUN TestA\npanic: test timed out after 1m0s\n", outOfTime, ""},
		{"", survived, ""},
	} {
		if f, by, _ := judged(c.output, j); f != c.fate || by != c.by {
			t.Errorf("%q: got %s by %q, want %s by %q", c.output, f, by, c.fate, c.by)
		}
	}
}

func TestAllPassed(t *testing.T) {
	t.Parallel()
	j := judge{"./pkg", []string{"TestA", "TestB"}}
	if err := allPassed("--- PASS: TestA (0.00s)\n--- PASS: TestB (0.00s)\n", j); err != nil {
		t.Error(err)
	}
	for _, output := range []string{
		"--- PASS: TestA (0.00s)\n",
		"--- PASS: TestA (0.00s)\n--- SKIP: TestB (0.00s)\n",
		"--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\n",
		"--- PASS: TestA (0.00s)\n    --- PASS: TestB/sub (0.00s)\n",
	} {
		if err := allPassed(output, j); err == nil {
			t.Errorf("%q passes", output)
		}
	}
}

func TestSelectMutants(t *testing.T) {
	t.Parallel()
	all := []mutant{{name: "a"}, {name: "b"}, {name: "c"}}
	if got, err := selectMutants(all, ""); err != nil || len(got) != 3 {
		t.Errorf("got %d, %v", len(got), err)
	}
	if got, err := selectMutants(all, "c,a"); err != nil || len(got) != 2 || got[0].name != "c" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := selectMutants(all, "a,d"); err == nil || !strings.Contains(err.Error(), `no mutant "d"`) {
		t.Errorf("got %v", err)
	}
}
