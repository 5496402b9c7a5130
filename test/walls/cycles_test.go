package walls_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"eventsv2/test/walls"
)

// TestNoLargeCycles measures the modules that make test compiles; that of deploy-check has this test itself.
func TestNoLargeCycles(t *testing.T) {
	t.Parallel()
	for module, least := range map[string]int{".": 20, "bench": 3, "test/attack": 5} {
		large, measured, err := walls.LargeCycles(t.Context(), filepath.Join(root, module))
		if err != nil {
			t.Fatal(err)
		}
		if measured < least {
			t.Errorf("only %d packages were found in %s", measured, module)
		}
		for _, cycle := range large {
			t.Errorf("module %s: %s", module, cycle)
		}
	}
}

// TestEveryKindOfUseIsCounted measures a package in which every kind of use is there.
func TestEveryKindOfUseIsCounted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module example\n\ngo 1.26\n",
		"type.go":     "package p\n\ntype T struct{ field int }\n\nfunc New() *T { return &T{} }\n",
		"receiver.go": "package p\n\nfunc (t *T) Nothing() {}\n",
		"field.go":    "package p\n\nfunc (t *T) Field() int { return t.field }\n",
		"method.go":   "package p\n\nfunc Call() { New().Nothing() }\n",
		"value.go":    "package p\n\nvar made = New()\n\nfunc local() int { local := 1; return local }\n",
		"iface.go":    "package p\n\ntype Doer interface{ Nothing() }\n\nfunc Do(d Doer) { d.Nothing() }\n",
		"a.go":        "package p\n\nfunc a() { b() }\n",
		"b.go":        "package p\n\nfunc b() { c() }\n",
		"c.go":        "package p\n\nfunc c() { a() }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	packages, err := walls.Packages(t.Context(), dir)
	if err != nil || len(packages) != 1 {
		t.Fatalf("%d packages, %v", len(packages), err)
	}
	for file, want := range map[string][]string{
		"type.go":     nil,
		"receiver.go": nil,
		"field.go":    {"type.go"},
		"method.go":   {"receiver.go", "type.go"},
		"value.go":    {"type.go"},
		"iface.go":    nil,
		"a.go":        {"b.go"},
	} {
		if got := packages[0].Uses[file]; !slices.Equal(got, want) {
			t.Errorf("%s uses %v, want %v", file, got, want)
		}
	}
	if cycles := packages[0].Cycles(); len(cycles) != 1 || !slices.Equal(cycles[0], []string{"a.go", "b.go", "c.go"}) {
		t.Errorf("the cycles are %v", cycles)
	}
}
