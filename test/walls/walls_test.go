package walls_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"eventsv2/test/testenv"
	"eventsv2/test/walls"
)

var update = flag.Bool("update", false, "write the picture in docs/architecture.md")

const root = "../.."

// TestPictureShowsTheImports compares what docs/architecture.md shows with what is
// imported; make golden draws it anew.
func TestPictureShowsTheImports(t *testing.T) {
	t.Parallel()
	imports, err := walls.Imports(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(root, "docs", "architecture.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, opens := strings.Cut(string(text), "```mermaid\n")
	picture, after, closes := strings.Cut(rest, "```\n")
	if !opens || !closes {
		t.Fatalf("%s has no picture between ```mermaid and ```", page)
	}
	drawn := walls.Draw(imports)
	if *update {
		if err := os.WriteFile(page, []byte(before+"```mermaid\n"+drawn+"```\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if picture != drawn {
		t.Errorf("%s does not show the imports as they are: run make golden and read the difference. They are\n%s", page, drawn)
	}
}

// TestPictureLeavesOutImpliedImports draws three packages.
func TestPictureLeavesOutImpliedImports(t *testing.T) {
	t.Parallel()
	drawn := walls.Draw(map[string][]string{"a": {"a/b", "c"}, "a/b": {"c", "internal/x"}, "c": nil, "internal/x": nil})
	want := "flowchart BT\n  a[\"a\"]\n  a --> a_b\n  a_b[\"a/b\"]\n  a_b --> c\n  c[\"c\"]\n"
	if drawn != want {
		t.Errorf("drawn is\n%s\nwant\n%s", drawn, want)
	}
}

// forbidden are imports that run the wrong way, one or more for each rule of the linter.
var forbidden = [][2]string{
	{"eventqueue/machine", "eventqueue"},
	{"eventqueue/ratelimit", "eventqueue"},
	{"eventqueue", "eventqueue/worker"},
	{"eventqueue", "eventqueue/pgstore"},
	{"eventqueue", "pubsubnotify"},
	{"eventqueue", "service"},
	{"eventqueue", "internal/setup"},
	{"eventqueue", "eventqueue/minutes"},
	{"eventqueue/minutes", "eventqueue/pgstore"},
	{"eventqueue/locktimeout", "eventqueue/worker"},
	{"eventqueue/worker", "eventqueue/typed"},
	{"eventqueue/worker", "eventqueue/maintenance"},
	{"eventqueue/worker", "eventqueue/pgstore"},
	{"eventqueue/maintenance", "eventqueue/worker"},
	{"eventqueue/operate", "eventqueue/worker"},
	{"eventqueue/typed", "eventqueue/worker"},
	{"eventqueue/inspect", "eventqueue/pgstore"},
	{"eventqueue/inspect", "eventqueue/worker"},
	{"eventqueue/pgstore", "eventqueue/typed"},
	{"eventqueue/pgstore", "pubsubnotify"},
	{"eventqueue/pgstore", "service"},
	{"eventqueue/pgstore", "internal/setup"},
	{"pubsubnotify", "eventqueue/pgstore"},
	{"pubsubnotify", "eventqueue/worker"},
	{"eventqueue/pgnotify", "eventqueue/pgstore"},
	{"cronchecker", "pubsubnotify"},
	{"cronchecker", "eventqueue/worker"},
	{"webhook", "eventqueue/worker"},
	{"pubsubsource", "eventqueue/pgstore"},
	{"cleanup", "eventqueue/worker"},
	{"grid", "eventqueue/worker"},
	{"pubsubnotify", "service"},
	{"eventqueue/httptarget", "service"},
	{"eventqueue/typed", "service"},
	{"eventqueue/worker", "service"},
	{"cronchecker", "service"},
	{"internal/setup", "service"},
	{"httpapi", "eventqueue/worker"},
	{"httpapi", "eventqueue/typed"},
	{"service", "httpapi"},
	{"service", "dashboard"},
	{"service", "access"},
	{"service", "internal/webserver"},
	{"service", "otelevents"},
	{"service", "internal/program"},
	{"service", "internal/cloudsql"},
	{"otelevents", "eventqueue/pgstore"},
	{"access", "eventqueue/operate"},
	{"eventqueue/audit", "eventqueue/operate"},
	{"webhook", "test/testenv"},
	{"eventqueue/operate", "internal/eventctl"},
	{"internal/eventctl", "eventqueue/worker"},
	{"internal/eventctl", "pubsubnotify"},
	{"internal/printing", "eventqueue"},
	{"internal/view", "eventqueue/pgstore"},
	{"eventqueue/operate", "dashboard"},
	{"dashboard", "eventqueue/worker"},
	{"webhook/received", "eventqueue/pgstore"},
	{"otelevents", "eventqueue/pgstore"},
	{"internal/yamlfile", "eventqueue"},
	{"eventqueue/fallback", "eventqueue/pgstore"},
	{"eventqueue/httptarget", "eventqueue/worker"},
	{"eventqueue/notifytest", "pubsubnotify"},
	{"valuecodec", "eventqueue/pgstore"},
}

// rules are the names of the rules about imports.
func rules(t *testing.T, config []byte) []string {
	t.Helper()
	var file struct {
		Linters struct {
			Settings struct {
				Depguard struct{ Rules map[string]any }
			}
		}
	}
	if err := yaml.Unmarshal(config, &file); err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(file.Linters.Settings.Depguard.Rules))
	if len(names) == 0 {
		t.Fatal(".golangci.yml has no rules about imports where this test looks for them")
	}
	return names
}

// TestLinterRefusesForbiddenImports runs the linter on a module of the same layout in which each package has an
// import that it must not have.
func TestLinterRefusesForbiddenImports(t *testing.T) {
	t.Parallel()
	linters, err := filepath.Glob(filepath.Join(root, "bin", "golangci-lint-*"))
	if err != nil || len(linters) == 0 {
		testenv.Missing(t, "bin/golangci-lint-* is not there: make lint installs it, and runs this test")
	}
	linter, err := filepath.Abs(linters[len(linters)-1])
	if err != nil {
		t.Fatal(err)
	}
	module, err := walls.Module(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	write(".golangci.yml", string(config))
	write("go.mod", "module "+module+"\n\ngo 1.26\n")
	for i, f := range forbidden {
		write(f[1]+"/to.go", "package to\n")
		// In a folder of its own, so that no cycle of imports comes about.
		write(fmt.Sprintf("n%d/%s/from.go", i, f[0]), fmt.Sprintf("package from\n\nimport _ %q\n", module+"/"+f[1]))
	}
	lint := exec.CommandContext(t.Context(), linter, "run", "--enable-only", "depguard", "--allow-parallel-runners",
		"--max-issues-per-linter", "0", "--max-same-issues", "0", "--output.text.print-issued-lines=false", "./...")
	lint.Dir = dir
	out, err := lint.CombinedOutput()
	if err == nil {
		t.Error("the linter found nothing")
	}
	for i, f := range forbidden {
		found := strings.Contains(string(out), fmt.Sprintf("n%d/%s/from.go:3:8: import '%s/%s' is not allowed", i, f[0], module, f[1]))
		if !found {
			t.Errorf("the linter lets %s import %s", f[0], f[1])
		}
	}
	for _, rule := range rules(t, config) {
		if !strings.Contains(string(out), "from list '"+rule+"'") {
			t.Errorf("no forbidden import of this test breaks the rule %s of .golangci.yml", rule)
		}
	}
	if t.Failed() {
		t.Logf("the linter said\n%s", out)
	}
}
