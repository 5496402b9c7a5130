package eventstest_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"eventsv2/test/testenv"
)

// TestOfTheREADMEProgramPasses runs the test that README.md shows, beside the program that it shows, as if both stood in this module.
func TestOfTheREADMEProgramPasses(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	dir, replace := t.TempDir(), map[string]string{}
	rest := string(page)
	for _, name := range []string{"main.go", "main_test.go"} {
		_, after, opens := strings.Cut(rest, "```go\n")
		source, after, closes := strings.Cut(after, "```\n")
		if !opens || !closes {
			t.Fatalf("README.md has no %s", name)
		}
		rest = after
		if lines := strings.Count(source, "\n"); name == "main_test.go" && lines > 20 {
			t.Errorf("the test has %d lines, more than 20", lines)
		}
		replace[absolute(t, filepath.Join("readmeprogram", name))] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-o", filepath.Join(dir, "program"), "-overlay", filepath.Join(dir, "overlay.json"), "./readmeprogram")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the program of README.md and its test do not build: %v\n%s", err, out)
	}
	test := exec.CommandContext(t.Context(), filepath.Join(dir, "program"), "-test.v")
	test.Env = append(os.Environ(), "DATABASE_URL="+testenv.EmptyDatabaseURL(t))
	out, err := test.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "mail about order 1\n") || !strings.Contains(string(out), "--- PASS: TestOrderIsMailed") {
		t.Errorf("%v\n%s", err, out)
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
