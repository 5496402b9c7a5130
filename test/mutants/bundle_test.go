package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// exampleFiles are a module whose test says what each mutant of exampleMutants makes of it.
var exampleFiles = map[string]string{
	"go.mod": "module example\n\ngo 1.26\n",
	"a.go": `package example

const one = 1

const (
	two = one + one // made of a constant that becomes a variable
	Seen = 3
)

var text = join("a", "b")

func join(a, b string) string { return a + b }

func set(to *int) { *to = one }

func pair() (int, error) {
	for i := 0; ; i++ {
		if i == two {
			return i, nil
		}
	}
}

type kind struct{ a int }

func (k kind) value() int { return k.a }
`,
	"a_test.go": `package example

import "testing"

func TestValues(t *testing.T) {
	n := 0
	set(&n)
	i, _ := pair()
	t.Logf("n=%d pair=%d text=%s value=%d", n, i, text, kind{7}.value())
}
`,
}

func exampleMutant(name, old, changed string) *mutant {
	return &mutant{name: name, file: "a.go", edits: change(old, changed), judges: []judge{{".", []string{"TestValues"}}}}
}

// exampleModule writes the module and returns a builder for it.
func exampleModule(t *testing.T) builder {
	t.Helper()
	root := t.TempDir()
	for name, text := range exampleFiles {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return builder{root: root, dir: t.TempDir(), env: append(os.Environ(), "GOFLAGS=-mod=mod"), builds: make(slots, 1), tests: make(slots, 1)}
}

// TestABundleHasEveryMutant, one at a time, and none unless one is selected.
func TestABundleHasEveryMutant(t *testing.T) {
	t.Parallel()
	b := exampleModule(t)
	wants := map[string]string{
		"":          "n=1 pair=2 text=ab value=7",
		"procedure": "n=5 pair=2 text=ab value=7",
		"function":  "n=1 pair=0 text=ab value=7",
		"again":     "n=1 pair=3 text=ab value=7",
		"constant":  "n=4 pair=8 text=ab value=7",
		"variable":  "n=1 pair=2 text=cb value=7",
		"method":    "n=1 pair=2 text=ab value=9",
	}
	mutants := []*mutant{
		exampleMutant("procedure", "*to = one", "*to = 5"), exampleMutant("function", "if i == two", "if i == 0"),
		exampleMutant("again", "return i, nil", "return i + one, nil"), exampleMutant("constant", "one = 1", "one = 4"),
		exampleMutant("variable", `join("a"`, `join("c"`), exampleMutant("method", "return k.a", "return k.a + 2"),
	}
	made := b.bundle(t.Context(), ".", mutants, "example")
	if len(made) != 1 {
		t.Fatalf("%d bundles were made, want one", len(made))
	}
	for name, want := range wants {
		said, err := b.test(t.Context(), testBinary{made[0].binary, name}, mutants[0].judges[0], testLimit)
		if err != nil || !strings.Contains(said, want) {
			t.Errorf("with the mutant %q: %v, %s\nwant %s", name, err, said, want)
		}
	}
}

// TestWhatDoesNotFitABundle stands alone, and does not keep others from being in one.
func TestWhatDoesNotFitABundle(t *testing.T) {
	t.Parallel()
	b := exampleModule(t)
	for name, m := range map[string]*mutant{
		"a type":                                 exampleMutant("x", "struct{ a int }", "struct{ a int16 }"),
		"a signature":                            exampleMutant("x", "func (k kind) value() int {", "func (k kind) value() int {"),
		"a constant that others see":             exampleMutant("x", "Seen = 3", "Seen = 4"),
		"the name of a constant":                 exampleMutant("x", "one = 1", "other = 1"),
		"a text that is not there":               exampleMutant("x", "four", "five"),
		"a text that is there twice":             exampleMutant("x", "one", "two"),
		"a file that is not Go":                  {name: "x", file: "go.mod", edits: change("1.26", "1.25")},
		"two functions, of which one is outside": {name: "x", file: "a.go", edits: []edit{{"return k.a", "return 1"}, {"type kind", "type  kind"}}},
	} {
		if _, err := instrument(b.root, []*mutant{m}); !errors.Is(err, errUnfit) {
			t.Errorf("%s: %v, want that it does not fit", name, err)
		}
	}
	good, better, bad := exampleMutant("good", "*to = one", "*to = 5"), exampleMutant("better", "*to = one", "*to = 6"), exampleMutant("bad", "return k.a", "return k.b")
	made := b.bundle(t.Context(), ".", []*mutant{good, better, bad}, "example")
	has := 0
	for _, one := range made {
		has += len(one.has)
		if one.has["bad"] {
			t.Error("a mutant that does not compile is in a bundle")
		}
	}
	if all := newBundles([]mutant{*good, *better, *bad}); len(all.of["."]) != 3 {
		t.Errorf("%d mutants are judged by the package", len(all.of["."]))
	}
	if has > 2 {
		t.Errorf("%d mutants are in bundles", has)
	}
}
