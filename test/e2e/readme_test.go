package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"eventsv2/test/testenv"
)

// block returns what stands in the first fence of a kind in a page.
func block(t *testing.T, page, kind string) string {
	t.Helper()
	_, rest, opens := strings.Cut(page, "```"+kind+"\n")
	text, _, closes := strings.Cut(rest, "```\n")
	if !opens || !closes {
		t.Fatalf("the page has no ```%s", kind)
	}
	return text
}

// TestProgramOfTheREADMEWorks is built from the page, run after the commands that stand below
// it there, and prints what stands there; and, run once more, the next order.
func TestProgramOfTheREADMEWorks(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, first, _ := strings.Cut(string(page), "```")
	if !strings.HasPrefix(first, "go\npackage main\n") {
		t.Error("the first code of README.md is no whole program")
	}
	source, session := block(t, string(page), "go"), block(t, string(page), "console")
	if lines := strings.Count(source, "\n"); lines > 45 {
		t.Errorf("the program has %d lines, more than 45", lines)
	}
	_, want, shown := strings.Cut(session, "$ go run .\n")
	_, database, created := strings.Cut(session, "$ createdb ")
	database, _, _ = strings.Cut(database, "\n")
	_, table, made := strings.Cut(session, "psql \"$DATABASE_URL\" -c '")
	table, _, _ = strings.Cut(table, "'\n")
	if !shown || !made || !created || !strings.Contains(session, "DATABASE_URL=postgres://localhost/"+database+"\n") {
		t.Fatalf("README.md does not show how the program is run:\n%s", session)
	}

	r := newRig(t)
	if _, err := r.pool.Exec(testenv.Context(t), table); err != nil {
		t.Fatal(err)
	}
	program := buildShown(t, "README.md", source)
	for n, want := range []string{want, strings.Replace(want, " 1\n", " 2\n", 1)} {
		cmd := exec.Command(program)
		cmd.Env = []string{"DATABASE_URL=" + r.environment["DATABASE_URL"], "NOTIFIER=postgres", "PATH=" + os.Getenv("PATH")}
		out, log := newLines(), newLines()
		cmd.Stdout, cmd.Stderr = out, log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		out.await(t, want)
		r.awaitSQL("the event has ended", `SELECT count(*) = 0 FROM events_v2`)
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil || out.String() != want {
			t.Errorf("run %d ended with %v and printed\n%s\nwant\n%s\nits log is\n%s", n+1, err, out, want, log)
		}
	}
	if n := one[int](r, `SELECT count(*) FROM orders`); n != 2 {
		t.Errorf("%d orders", n)
	}
}

// buildShown builds a program that a page shows, as if it stood in this module, and returns its path.
func buildShown(t *testing.T, page, source string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	place, err := filepath.Abs("readmeprogram/main.go")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {place: file}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "program")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, "./readmeprogram")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the program of %s does not build: %v\n%s", page, err, out)
	}
	return binary
}
