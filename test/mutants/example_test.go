package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// exampleFiles are a module whose tests say what each mutant of exampleMutants makes of it.
var exampleFiles = map[string]string{
	"go.mod": "module example\n\ngo 1.26\n",
	"a/a.go": `package a

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

func Untested() int { return 7 }

func Once() int { return 9 }
`,
	"a/a_test.go": `package a

import (
	"os"
	"testing"
)

func TestNoticesOnce(t *testing.T) {
	if Once() != 9 && os.Mkdir("once", 0o700) == nil {
		t.Error("it is not 9")
	}
}

func TestValues(t *testing.T) {
	n := 0
	set(&n)
	i, _ := pair()
	if n != 1 || i != 2 || text != "ab" || (kind{7}).value() != 7 {
		t.Errorf("n=%d pair=%d text=%s value=%d", n, i, text, kind{7}.value())
	}
}
`,
	"of/of.go": `package of

import "example/a"

const four = a.Seen + 1

func Four() int { return four }
`,
	"of/of_test.go": `package of

import "testing"

func TestFour(t *testing.T) {
	if Four() != 4 {
		t.Errorf("it is %d", Four())
	}
}
`,
}

func exampleMutant(name, from, to string) mutant {
	return mutant{name: name, breaks: "I1", file: "a/a.go", old: from, new: to}
}

func exampleModule(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range exampleFiles {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestGateRunsTestsOfImportingPackages(t *testing.T) {
	t.Parallel()
	all := []mutant{
		exampleMutant("procedure", "*to = one", "*to = 5"), exampleMutant("function", "if i == two", "if i == 0"),
		exampleMutant("again", "return i, nil", "return i + one, nil"), exampleMutant("constant", "one = 1", "one = 4"),
		exampleMutant("variable", `join("a"`, `join("c"`), exampleMutant("method", "return k.a", "return k.a + 2"),
		exampleMutant("of-others", "Seen = 3", "Seen = 4"), exampleMutant("untested", "return 7", "return 8"), exampleMutant("panicking", "return a + b", `panic("a")`),
		exampleMutant("now-and-then", "return 9", "return 8"),
	}
	b, err := newBuilder(t.Context(), exampleModule(t), t.TempDir(), append(os.Environ(), "GOFLAGS=-mod=mod"), 1, all)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	by := map[string]noticed{"method": {"of", "TestFour"}, "constant": {"a", "TestGone"}} // which notice nothing
	err = gate{builder: b, out: &out, noticed: by}.run(t.Context(), all)
	if !errors.Is(err, errSurvivors) || !strings.Contains(out.String(), "mutants: 10 killed: 7") || strings.Count(out.String(), "\nuntested (I1") != 1 || strings.Count(out.String(), "\npanicking (I1") != 1 ||
		!strings.Contains(out.String(), "TestNoticesOnce failed once") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if by["of-others"] != (noticed{"of", "TestFour"}) || by["method"].test != "TestValues" || by["constant"].test != "TestValues" || len(by) != 7 {
		t.Errorf("noticed by %v", by)
	}
}

// TestInapplicableMutantsAreRefused with a reason, and mutants that do not compile, with their names.
func TestInapplicableMutantsAreRefused(t *testing.T) {
	t.Parallel()
	root := exampleModule(t)
	for want, each := range map[string][]mutant{
		errUnfit.Error(): {
			exampleMutant("a type", "struct{ a int }", "struct{ a int16 }"),
			exampleMutant("a signature", "value() int {", "value() int64 {"),
			exampleMutant("the name of a constant", "one = 1", "other = 1"),
			{name: "a file that is not Go", file: "go.mod", old: "1.26", new: "1.25"},
		},
		"no longer applies": {
			exampleMutant("a text that is not there", "five", "six"),
			exampleMutant("a text that is there twice", "one", "two"),
			{name: "a file that is not there", file: "a/b.go"},
		},
	} {
		for _, m := range each {
			if _, err := newBuilder(t.Context(), root, t.TempDir(), os.Environ(), 1, []mutant{m}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", m.name, err, want)
			}
		}
	}
	bad := exampleMutant("bad", "return k.a", "return k.b")
	b, err := newBuilder(t.Context(), root, t.TempDir(), append(os.Environ(), "GOFLAGS=-mod=mod"), 1, []mutant{bad})
	if err != nil {
		t.Fatal(err)
	}
	if v := b.judge(t.Context(), &bad, noticed{}); v.fate != couldNotJudge || !strings.Contains(v.why, "mutant-bad") {
		t.Errorf("%s: %s", v.fate, v.why)
	}
}
