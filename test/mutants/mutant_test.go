package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestEveryMutantApplies fails as soon as a text changes that a mutant replaces, long before the gate runs.
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
		if m.breaks == "" || m.old == m.new {
			t.Errorf("the mutant %s lacks an invariant or a change", m.name)
		}
	}
	texts, unfit, err := instrument(root, mutants())
	if err != nil || unfit != nil {
		t.Fatal(unfit, err)
	}
	for name, text := range texts {
		if _, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution); err != nil {
			t.Errorf("a mutant is no Go: %v", err)
		}
	}
	if len(names) < 100 || len(names) > 300 {
		t.Errorf("there are %d mutants: 300 at most encode an invariant, and make mutants-all makes the others", len(names))
	}
}

// TestMutantsChangeTheLastDefinition fails when a later migration makes a function anew: what a mutant changes in the
// one before is then in no migrated database.
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
		before, _, _ := strings.Cut(up, m.old)
		begins := definition.FindAllStringSubmatchIndex(before+m.old, -1)
		if len(begins) == 0 {
			continue
		}
		of := begins[len(begins)-1]
		end := ";\n"
		if strings.HasSuffix((before + m.old)[:of[0]], "-- +goose StatementBegin\n") {
			end = "-- +goose StatementEnd"
		}
		if strings.Contains(before[min(of[0], len(before)):], end) {
			continue // behind the function
		}
		checked++
		if function := (before + m.old)[of[2]:of[3]]; last[function] != m.file {
			t.Errorf("the mutant %s changes %s in %s, and %s makes it anew: move the mutant there", m.name, function, m.file, last[function])
		}
	}
	if checked < 10 {
		t.Errorf("%d edits of functions were found only", checked)
	}
}

func TestMutantGetsItsVerdict(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		output string
		fate   fate
		by     string
	}{
		{"--- PASS: TestA (0.00s)\nPASS\n", survived, ""},
		{"--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/sub (0.00s)\nFAIL\n", killed, "TestA/sub"},
		{"--- FAIL: TestA (0.00s)\n--- FAIL: TestAB (0.00s)\nFAIL\n", killed, "TestA"},
		{"--- SKIP: TestA (0.00s)\nPASS\n", survived, ""},
		{"--- FAIL: TestA (0.00s)\npanic: boom [recovered]\n", panicked, ""},
		{"=== RUN TestA\npanic: test timed out after 1m0s\n", outOfTime, ""},
		{"", survived, ""},
	} {
		if f, by, _ := judged(c.output); f != c.fate || by != c.by {
			t.Errorf("%q: got %s by %q, want %s by %q", c.output, f, by, c.fate, c.by)
		}
	}
	for output, want := range map[string]bool{
		"--- PASS: TestA (0.00s)\n":     true,
		"--- SKIP: TestA (0.00s)\n":     false,
		"--- PASS: TestA/sub (0.00s)\n": false,
		"":                              false,
	} {
		if passed(output, "TestA") != want {
			t.Errorf("%q: passed is not %t", output, want)
		}
	}
}

func TestSelectMutantsFilters(t *testing.T) {
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

func TestSamplesCoverAllMutants(t *testing.T) {
	t.Parallel()
	all, drawn := mutants(), map[string]bool{}
	for seed := range len(all) {
		sample := draw(all, nil, 3, seed)
		if len(sample) != 3 || sample[0].name == sample[1].name || sample[1].name == sample[2].name {
			t.Fatalf("seed %d draws %s", seed, names(sample))
		}
		drawn[sample[0].name] = true
	}
	if len(drawn) != len(all) {
		t.Errorf("of %d mutants %d are ever drawn first", len(all), len(drawn))
	}
	for _, number := range []int{0, len(all), len(all) + 1} {
		if sample := draw(all, nil, number, 7); len(sample) != len(all) {
			t.Errorf("a sample of %d has %d of %d mutants", number, len(sample), len(all))
		}
	}
}
